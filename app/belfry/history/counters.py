"""Counters of a tenant, hour by hour, from its lifecycle records.

    09:12   FIRED, 40 ms late          fires 1, within_1s 1
    09:30   FIRED, 2 s late            fires 2, within_1s 1
    09:45   UPSERT refused             requests 1, accepted 0
    09:50   MISSED, two occurrences    missed 2
    shown   success_rate 0.5           share_within_1s 0.5

An hour is that of the record's instant in UTC.  At rest counters are eight numbers of 64 bits, in
the order of `NAMES`, which is frozen.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from belfry.schedules.outcomes import Outcome

IN_TIME_MS: Final = 1_000
NAMES: Final = (
    *("requests", "accepted", "fires", "within_1s", "missed"),
    *("completed", "delivered", "failed"),
)
_PACKED: Final = Struct(">8Q")
_INDEX: Final = {name: place for place, name in enumerate(NAMES)}
_REFUSED: Final = frozenset(
    {Outcome.REJECTED, Outcome.CONFLICT, Outcome.NOT_FOUND, Outcome.TOO_LATE}
)
_OCCURRENCE_COUNTERS: Final = {
    Outcome.FIRED: "fires",
    Outcome.MISSED: "missed",
    Outcome.COMPLETED: "completed",
    Outcome.DELIVERED: "delivered",
    Outcome.FAILED: "failed",
}


def empty() -> list[int]:
    """Counters that are all zero."""
    return [0] * len(NAMES)


def count(counters: list[int], outcome: Outcome, times: int, *, in_time: bool) -> None:
    """Count so many requests, occurrences or deliveries of an outcome in place.

    `in_time` says that their instants are at most a second after the due instant.
    """
    name = _OCCURRENCE_COUNTERS.get(outcome)
    if name is None:
        counters[_INDEX["requests"]] += times
        counters[_INDEX["accepted"]] += 0 if outcome in _REFUSED else times
        return
    counters[_INDEX[name]] += times
    if outcome is Outcome.FIRED and in_time:
        counters[_INDEX["within_1s"]] += times


def add(counters: list[int], more: list[int]) -> None:
    """Add counters up."""
    for place, value in enumerate(more):
        counters[place] += value


def pack(counters: list[int]) -> bytes:
    """Counters as bytes at rest."""
    return _PACKED.pack(*counters)


def unpack(stored: bytes) -> list[int]:
    """Counters from their bytes at rest."""
    return list(_PACKED.unpack(stored))


def shown(counters: list[int], *, fires_told: bool) -> dict[str, int | float | None]:
    """Counters by name, and two shares from 0 to 1; null where the whole is zero.

    Without `fires_told` not all fires are known, but all misses are: a share would be wrong, so
    both are null.
    """
    found: dict[str, int | float | None] = dict(zip(NAMES, counters, strict=True))
    if not fires_told:
        return {**found, "success_rate": None, "share_within_1s": None}
    fires, missed = counters[_INDEX["fires"]], counters[_INDEX["missed"]]
    found["success_rate"] = _share(fires, fires + missed)
    found["share_within_1s"] = _share(counters[_INDEX["within_1s"]], fires)
    return found


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None
