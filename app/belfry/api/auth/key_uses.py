"""When each API key was used last, how often and from where; and which of them end soon.

Kept in memory, for each worker since its start: a key that nobody has shown to any worker for weeks
can go. A key has a short name of its own, the beginning of its digest, which tells several keys of
one name apart and opens nothing. The metrics show the same figures, under that name.

    two keys of the name ci, while one takes the other's place
    9f86d081884c    expires tomorrow    uses 40    the last at 11:58    still shown by a caller
    3a7bd3e2360a    expires in a year   uses 12    the last at 11:59
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

import structlog

from belfry.schedules.instants import format_instant
from belfry.telemetry.collectors import KeyFigures

# A key that ends within so long is told of, once in each `SAY_AGAIN_MS`.
SOON_MS: Final = 14 * 86_400_000
SAY_AGAIN_MS: Final = 86_400_000
# Hex digits of a key's short name.
ID_LENGTH: Final = 12
State = Literal["valid", "expiring", "expired"]
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key of the list, and how it was used; instants in epoch milliseconds.

    `refused` are uses after its end.  `workers` are those whose list has it.
    """

    id: str
    name: str
    role: str
    tenants: tuple[str, ...]
    expires_ms: int | None = None
    uses: int = 0
    refused: int = 0
    last_ms: int | None = None
    last_from: str | None = None
    workers: int = 1

    def state(self, now_ms: float) -> State:
        """Whether it opens anything, and for how long."""
        if self.expires_ms is None or now_ms < self.expires_ms - SOON_MS:
            return "valid"
        return "expiring" if now_ms < self.expires_ms else "expired"


@dataclass(slots=True)
class _Use:
    """How one key was used since this worker's start; fields as in `KeyRow`."""

    uses: int = 0
    refused: int = 0
    last_ms: int | None = None
    last_from: str | None = None


def id_of(digest: str) -> str:
    """The short name of a key, from its digest."""
    return digest[:ID_LENGTH]


class KeyUses:
    """Uses of each key at this worker; one event loop writes them, and any thread reads them."""

    def __init__(self) -> None:
        self._uses: dict[str, _Use] = {}
        self._said_ms: dict[str, float] = {}

    def used(self, digest: str, address: str, now_ms: float) -> None:
        """A key was shown, and it is good."""
        use = self._of(digest)
        use.uses += 1
        use.last_ms, use.last_from = int(now_ms), address or None

    def refused(self, digest: str) -> None:
        """A key was shown after its end."""
        self._of(digest).refused += 1

    def _of(self, digest: str) -> _Use:
        # Only digests of the list come here, so callers cannot make it grow.
        found = self._uses.get(digest)
        if found is None:
            found = self._uses[digest] = _Use()
        return found

    def row(self, digest: str, row: KeyRow) -> KeyRow:
        """A key with its uses; `row` itself for a key that no caller has shown yet."""
        use = self._uses.get(digest)
        if use is None:
            return row
        return replace(
            row, uses=use.uses, refused=use.refused, last_ms=use.last_ms, last_from=use.last_from
        )

    def keep(self, digests: Iterable[str]) -> None:
        """Forget keys that are in no list any more."""
        known = set(digests)
        for each in self._uses.keys() - known:
            del self._uses[each]

    def warn(self, rows: Iterable[KeyRow], now_ms: float) -> None:
        """Log which keys end soon, each once a day."""
        for row in rows:
            said_ms = self._said_ms.get(row.id)
            if row.state(now_ms) != "expiring" or row.expires_ms is None:
                self._said_ms.pop(row.id, None)
            elif said_ms is None or now_ms - said_ms >= SAY_AGAIN_MS:
                self._said_ms[row.id] = now_ms
                log.warning(
                    "an API key expires soon: make a new one, and move its callers",
                    name=row.name, key=row.id, expires=format_instant(row.expires_ms),
                )  # fmt: skip


def merged(rows: Iterable[KeyRow]) -> list[KeyRow]:
    """Rows of several workers as one for each key, by name: uses add up, the last one counts."""
    found: dict[str, KeyRow] = {}
    for row in rows:
        known = found.get(row.id)
        found[row.id] = row if known is None else _both(known, row)
    return sorted(found.values(), key=lambda row: (row.name, row.id))


def _both(one: KeyRow, other: KeyRow) -> KeyRow:
    """One row of two workers' rows of the same key: uses add up, the latest use is shown."""
    latest = max(one, other, key=lambda row: row.last_ms or 0)
    return replace(
        one,
        uses=one.uses + other.uses,
        refused=one.refused + other.refused,
        last_ms=latest.last_ms,
        last_from=latest.last_from,
        workers=one.workers + other.workers,
    )


def figures_of(
    rows: Callable[[], list[KeyRow]], now_ms: Callable[[], float]
) -> Callable[[], list[KeyFigures]]:
    """A function for scrapes: it tells the figures of all keys as they are when it is called."""

    def figures() -> list[KeyFigures]:
        at_ms = now_ms()
        return [
            KeyFigures(
                row.id, row.state(at_ms), _seconds(row.expires_ms), _seconds(row.last_ms), row.uses
            )
            for row in rows()
        ]

    return figures


def _seconds(ms: int | None) -> float | None:
    """Epoch ms as seconds since 1970, as Prometheus has instants."""
    return None if ms is None else ms / 1000
