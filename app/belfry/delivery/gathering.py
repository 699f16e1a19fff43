"""Follow-up records of deliveries, gathered until they are written in one transaction.

A transaction for each delivery would be most of the work, and each of them costs every partition of
the requests one of its own.  So the records of many deliveries are written together:

    12:00:00.000   the first delivery has ended; a retry is to be written
    12:00:00.090   130 more have ended                                  200 ms are not over
    12:00:00.120   one whose schedule waits for its acknowledgement     40 ms are: it is written

A schedule waits for an acknowledgement; a retry may be a little late, being due in a second. If no
work is under way any more, or if many records have gathered, they are written at once.

Positions, records and counts belong together.  All of them go in one commit, and uncommitted ones
are forgotten together, when the term ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from belfry.delivery.answers import Delivered, Failed, Step
from belfry.delivery.follow_ups import Places, Produced, metered
from belfry.delivery.progress import DeliveryPosition
from belfry.delivery.work import Work

GATHER_MS: Final = 200.0
GATHER_AWAITED_MS: Final = 40.0
# A position that moved by the end of a transaction alone waits for others to be written with.
QUIET_MS: Final = 30_000.0
# So many records are written at once.
MUCH: Final = 500

# Gets the committed counts: attempts by outcome, and arrivals by tenant.
Told = Callable[[Counter[str], Counter[str]], None]


def untold(_outcomes: Counter[str], _tenants: Counter[str]) -> None:
    """Ignore the counts."""


class Gathered:
    """The records to be written; `told` gets their counts once they are committed."""

    def __init__(self, places: Places, told: Told) -> None:
        self.moved: set[int] = set()
        self._places = places
        self._told = told
        self._records: list[Produced] = []
        self._counts: Counter[str] = Counter()
        self._delivered: Counter[str] = Counter()
        self._first_ms = self._gather_ms = 0.0
        self._quiet = False

    def count(self, work: Work, step: Step) -> None:
        """Count the result of an attempt."""
        outcome = "DELIVERED" if isinstance(step, Delivered) else "RETRIED"
        self._counts["FAILED" if isinstance(step, Failed) else outcome] += 1
        if isinstance(step, Delivered):
            self._delivered[work.event.tenant] += 1

    def add(self, partition: int, records: list[Produced], now_ms: float, *, awaited: bool) -> None:
        """A record of a partition has ended, and these follow from it.

        `awaited` is whether somebody waits for one of them; `now_ms` is a monotonic clock's.
        """
        if not self.moved or self._quiet:
            self._first_ms, self._gather_ms, self._quiet = now_ms, GATHER_MS, False
        if awaited:
            self._gather_ms = GATHER_AWAITED_MS
        self.moved.add(partition)
        self._records += records

    def begin(self, progress: Mapping[int, DeliveryPosition], now_ms: float) -> None:
        """Partitions are given: the count of removed records is written, and told, at once.

        So is a first position, so that records removed behind it later are counted.
        """
        for partition, each in progress.items():
            if each.removed or not each.kept:
                self.add(partition, [], now_ms, awaited=False)

    def pass_over(
        self, ends: Mapping[int, int], progress: Mapping[int, DeliveryPosition], now_ms: float
    ) -> None:
        """Only ends of transactions are left before these offsets, by partition."""
        for partition, offset in ends.items():
            if not progress[partition].read_to(offset):
                continue
            if not self.moved:
                self._first_ms, self._gather_ms, self._quiet = now_ms, QUIET_MS, True
            self.moved.add(partition)

    def due(self, now_ms: float, *, waits: bool) -> bool:
        """Whether it is time to write; `waits` is whether more may follow soon."""
        if not self.moved:
            return False
        over = now_ms - self._first_ms >= self._gather_ms
        return over or (not waits and not self._quiet) or len(self._records) >= MUCH

    def to_write(self, now_ms: int) -> list[Produced]:
        """All records, with the usage of tenants; `now_ms` is epoch ms."""
        return [*self._records, *metered(self._delivered, self._places, now_ms)]

    def written(self) -> None:
        """It is committed."""
        self._told(self._counts, self._delivered)
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.moved.clear()
        self._records.clear()
        self._counts.clear()
        self._delivered.clear()
