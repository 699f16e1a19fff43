"""Usage of a tenant, as it stands in the metering topic: JSON under the tenant's name.

    {"v":1,"tenant":"acme","from":"2026-12-01T09:00:00.000Z","until":"2026-12-01T10:00:00.000Z",
     "accepted":120,"fired":118,"delivered":0,"held_byte_ms":7203600000,"partition":2}

Records add up: a tenant's usage in an hour is the sum of its records of that hour. A partition
writes one record when the hour is over, or one for many hours in which a tenant only waited; a
dispatcher writes its deliveries as it makes them. The transaction that carries out the counted work
also writes the record, so each record is there once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson

from belfry.schedules.instants import format_instant, parse_instant

FORMAT: Final = 1
HOUR_MS: Final = 3_600_000
COUNTS: Final = ("accepted", "fired", "delivered", "held_byte_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The usage of a tenant from one instant to another, epoch ms.

    `held_byte_ms` is bytes times milliseconds; `partition` is None for deliveries.
    """

    tenant: str
    from_ms: int
    until_ms: int
    accepted: int = 0
    fired: int = 0
    delivered: int = 0
    held_byte_ms: int = 0
    partition: int | None = None

    @property
    def held_byte_hours(self) -> float:
        """Bytes that waited, times hours."""
        return self.held_byte_ms / HOUR_MS


def period_of(now_ms: int, length_ms: int) -> tuple[int, int]:
    """Begin and end of the period around an instant."""
    from_ms = now_ms - now_ms % length_ms
    return from_ms, from_ms + length_ms


def encode_usage(usage: Usage) -> bytes:
    """The value of a record of the metering topic."""
    found = asdict(usage)
    ends = {"from": format_instant(usage.from_ms), "until": format_instant(usage.until_ms)}
    counts = {name: found[name] for name in COUNTS}
    return orjson.dumps(
        {"v": FORMAT, "tenant": usage.tenant, **ends, **counts, "partition": usage.partition}
    )


def decode_usage(value: bytes | None) -> Usage | None:
    """The usage in a record, or None if this release cannot read it."""
    try:
        found: dict[str, Any] = orjson.loads(value or b"")
        if found["v"] != FORMAT:
            return None
        return Usage(
            tenant=str(found["tenant"]),
            from_ms=parse_instant(found["from"]),
            until_ms=parse_instant(found["until"]),
            **{name: int(found[name]) for name in COUNTS},
            partition=found["partition"],
        )
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError):
        return None


def summed(found: Iterable[Usage]) -> list[Usage]:
    """One usage for each tenant and period, in their order: the sums of its records."""
    sums: dict[tuple[int, int, str], list[int]] = {}
    for each in found:
        counts = sums.setdefault((each.from_ms, each.until_ms, each.tenant), [0] * len(COUNTS))
        for at, name in enumerate(COUNTS):
            counts[at] += getattr(each, name)
    return [
        Usage(
            tenant=tenant,
            from_ms=from_ms,
            until_ms=until_ms,
            **dict(zip(COUNTS, sums[from_ms, until_ms, tenant], strict=True)),
        )
        for from_ms, until_ms, tenant in sorted(sums)
    ]
