"""The objectives of a period, from its slots: availability, reach, and the share within a second.

    availability   registered / all slots       whether a request is accepted before it is due
    reach          fired / accepted             whether an accepted event fires at all
    within 1 s     in time / accepted           whether a reader has it a second after it is due

A slot that was not asked for counts against availability, from the first slot that was ever asked
for.  A fired event was accepted, even where no process noted that.  An hour has the shortest
interval that any process used in it; an hour without rows has the interval of the hour before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from belfry.canary.slots import HOUR_MS, CanarySlots, HourRow, Place

# An event is judged once it had so long to fire.
GRACE_MS: Final = 30_000


class Goal(NamedTuple):
    """A share that belfry promises itself."""

    name: str
    share: float


# The goals that docs/slo.md promises.
AVAILABILITY: Final = Goal("availability", 0.9995)
REACH: Final = Goal("reach", 0.9999)
WITHIN_1S: Final = Goal("within_1s", 0.9995)


class Attainment(NamedTuple):
    """The number of good events of all, against a goal."""

    goal: Goal
    # Of `of` events these met the goal.
    good: int
    of: int

    @property
    def share(self) -> float | None:
        """The share that was good; None where there was no event to judge."""
        return self.good / self.of if self.of else None

    @property
    def met(self) -> bool:
        """Whether the goal is met."""
        return self.share is None or self.share >= self.goal.share

    @property
    def budget_left(self) -> float | None:
        """The rest of the failures that the goal allows: 1 all, 0 none, below 0 overdrawn."""
        if not self.of:
            return None
        return 1 - (self.of - self.good) / ((1 - self.goal.share) * self.of)


@dataclass(slots=True)
class Report:
    """The counts from `first_ms` until `until_ms`; `asked_ms` is the last slot asked for.

    Instants are epoch ms; the other figures are numbers of slots, so of events.
    """

    first_ms: int
    until_ms: int
    asked_ms: int
    slots: int = 0
    asked: int = 0
    registered: int = 0
    accepted: int = 0
    fired: int = 0
    in_time: int = 0

    def objectives(self) -> tuple[Attainment, ...]:
        """The counts against the goals."""
        return (
            Attainment(AVAILABILITY, self.registered, self.slots),
            Attainment(REACH, self.fired, self.accepted),
            Attainment(WITHIN_1S, self.in_time, self.accepted),
        )


def report(rows: Iterable[HourRow], from_ms: int, until_ms: int) -> Report | None:
    """The counts of a period by these rows; None where no event was asked for by its end.

    `rows` may overlap and come in any order. Events of the last `GRACE_MS` are not judged, if
    `until_ms` lies so far back.
    """
    slots = CanarySlots(rows)
    asked = [_instants(row) for row in slots.rows.values() if row.asked]
    first_ms = max(from_ms, min((first for first, _ in asked), default=until_ms))
    if first_ms >= until_ms:
        return None
    found = Report(first_ms, until_ms, max(last for _, last in asked))
    partitions = range(max(max(row.partitions, row.partition + 1) for row in slots.rows.values()))
    for hour, interval_ms in _hours(slots.rows, first_ms, until_ms):
        wanted = _bits(hour, interval_ms, first_ms, until_ms)
        for partition in partitions:
            _count(found, slots.rows.get((partition, hour, interval_ms)), wanted)
    return found


def _count(found: Report, row: HourRow | None, wanted: int) -> None:
    """Add one hour of one partition; `wanted` are the bits of the slots that count."""
    found.slots += wanted.bit_count()
    if row is None:
        return
    registered, fired = row.registered | row.in_time, row.fired | row.in_time
    found.asked += (row.asked & wanted).bit_count()
    found.registered += (registered & wanted).bit_count()
    found.accepted += ((registered | fired) & wanted).bit_count()
    found.fired += (fired & wanted).bit_count()
    found.in_time += (row.in_time & wanted).bit_count()


def _instants(row: HourRow) -> tuple[int, int]:
    """The begins of the first and the last slot that were asked for, in epoch ms."""
    lowest = (row.asked & -row.asked).bit_length() - 1
    begin_ms = row.hour * HOUR_MS
    last = row.asked.bit_length() - 1
    return begin_ms + lowest * row.interval_ms, begin_ms + last * row.interval_ms


def _hours(places: Iterable[Place], first_ms: int, until_ms: int) -> Iterator[tuple[int, int]]:
    """The hours of a period, and the interval of each."""
    intervals: dict[int, int] = {}
    for _, hour, interval_ms in places:
        intervals[hour] = min(interval_ms, intervals.get(hour, interval_ms))
    first = first_ms // HOUR_MS
    before = [hour for hour in intervals if hour <= first]
    interval_ms = intervals[max(before)] if before else intervals[min(intervals)]
    for hour in range(first, (until_ms - 1) // HOUR_MS + 1):
        interval_ms = intervals.get(hour, interval_ms)
        yield hour, interval_ms


def _bits(hour: int, interval_ms: int, first_ms: int, until_ms: int) -> int:
    """The slots of an hour that begin within a period, as bits."""
    begin_ms = hour * HOUR_MS
    first = max(0, -((begin_ms - first_ms) // interval_ms))
    last = min(HOUR_MS // interval_ms, -((begin_ms - until_ms) // interval_ms))
    return (1 << last) - (1 << first) if last > first else 0
