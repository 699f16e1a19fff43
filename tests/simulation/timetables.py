"""Timetables: rules by the clock on the wall, and their instants as an oracle finds them.

    CRON    * * * * * *                       fields, of which a day, an hour, a second is matched
    union   5 * * * * * | @every 1m           all of the parts, and what they share once
    RRULE   FREQ=SECONDLY;INTERVAL=2          rules, dates, and what is left out of them

A world lasts for seconds, so the oracle looks at each second of it: what the wall shows, by the
`tzdata` wheel, and whether the rule has that time.  Cron expressions are read by the cron oracle,
times of an RRULE by `recurrences`.  Nothing here is belfry's.  What changed clocks do is
docs/schedules.md's rule:

    fixed     a time that does not exist counts once, right after the gap; of two the first counts
    cadence   what the wall shows counts; a day whose every time a gap swallows counts once
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cache
from typing import Any, Final, NamedTuple

from tests.property.cron_oracle import made_up, numbers, read, wall_clock
from tests.simulation.recurrences import Recurrence

SECOND: Final = timedelta(seconds=1)
Instants = list[int]


class Shown(NamedTuple):
    """A second of UTC, what the wall shows then, and what it showed a second before."""

    second: int
    wall: datetime
    before: datetime

    @property
    def is_new(self) -> bool:
        """Whether the wall shows it for the first time."""
        return not self.wall.fold

    @property
    def ends_a_gap(self) -> bool:
        """Whether times on the wall are missing just before."""
        return self.wall - self.before > SECOND


def shown(zone: str, from_ms: int, until_ms: int) -> list[Shown]:
    """Each whole second of a range and what the wall shows."""
    seconds = range(from_ms // 1000, until_ms // 1000 + 1)
    return [Shown(each, wall(zone, each), wall(zone, each - 1)) for each in seconds]


@cache
def wall(zone: str, second: int) -> datetime:
    """What the wall shows at a second of UTC; `fold` is 1 where it does for the second time."""
    return datetime.fromtimestamp(second, wall_clock(zone)).replace(tzinfo=None)


def is_left_out(text: str | None, zone: str, at_ms: int) -> bool:
    """Whether an instant lies in a minute that `except_cron` names: the wall decides."""
    if text is None:
        return False
    at, meaning = wall(zone, at_ms // 1000), read(text)
    return at.hour * 60 + at.minute in meaning.minutes and meaning.on_day(at.date())


@dataclass(frozen=True, slots=True)
class CronTable:
    """One cron expression of five or six fields, or a union of some with one interval."""

    parts: tuple[str, ...]
    zone: str
    start_ms: int | None = None
    left_out: str | None = None
    # A part of the union, in whole minutes.
    every_min: int | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of its request."""
        parts = [*self.parts, *([f"@every {self.every_min}m"] if self.every_min else [])]
        return {
            "kind": "CRON",
            "cron": " | ".join(parts),
            "timezone": self.zone,
            "start_at": self.start_ms,
            "except_cron": self.left_out,
        }

    def instants(self, accepted_ms: int, until_ms: int) -> Instants:
        """Second by second, and the interval by arithmetic."""
        from_ms = max(accepted_ms + 1, self.start_ms or 0)
        found = {
            each.second * 1000
            for each in shown(self.zone, from_ms, until_ms)
            if any(_cron_counts(part, each) for part in self.parts)
        }
        if self.every_min:
            step, origin_ms = self.every_min * 60_000, self.start_ms or 0
            first_ms = from_ms + (origin_ms - from_ms) % step
            found.update(range(first_ms, until_ms + 1, step))
        kept = {at for at in found if not is_left_out(self.left_out, self.zone, at)}
        return sorted(at for at in kept if from_ms <= at <= until_ms)


def _cron_counts(text: str, at: Shown) -> bool:
    seconds, rest = _cron(text)
    meaning = read(rest)
    minute = at.wall.hour * 60 + at.wall.minute
    is_time = at.wall.second in seconds and minute in meaning.minutes
    if is_time and (at.is_new or not meaning.fixed) and meaning.on_day(at.wall.date()):
        return True
    return at.ends_a_gap and made_up(meaning, at.before.replace(second=0), at.wall)


@cache
def _cron(text: str) -> tuple[set[int], str]:
    fields = text.split()
    seconds = fields.pop(0) if len(fields) == 6 else "0"
    return numbers(seconds, 0), " ".join(fields)


@dataclass(frozen=True, slots=True)
class RuleTable:
    """Recurrences of RFC 5545, as one rule from `start_at` on, or as lines."""

    rules: tuple[Recurrence, ...]
    zone: str
    start_ms: int
    left_out: str | None = None
    # Lines, where there are some: then DTSTART is one of them.
    lines: bool = False
    without: tuple[Recurrence, ...] = ()
    dates: tuple[datetime, ...] = ()
    without_dates: tuple[datetime, ...] = ()

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of its request."""
        return {
            "kind": "RRULE",
            "rrule": "\n".join(self._lines()) if self.lines else self.rules[0].text,
            "timezone": None if self.lines else self.zone,
            "start_at": None if self.lines else self.start_ms,
            "except_cron": self.left_out,
        }

    def _lines(self) -> Iterator[str]:
        yield f"DTSTART;TZID={self.zone}:{_local(self._begin)}"
        yield from (f"RRULE:{rule.text}" for rule in self.rules)
        yield from (f"EXRULE:{rule.text}" for rule in self.without)
        yield from (f"RDATE:{_local(each)}" for each in self.dates)
        yield from (f"EXDATE:{_local(each)}" for each in self.without_dates)

    @property
    def _begin(self) -> datetime:
        return wall(self.zone, self.start_ms // 1000).replace(fold=0)

    @property
    def _fixed(self) -> bool:
        return all(rule.fixed for rule in self.rules)

    def instants(self, accepted_ms: int, until_ms: int) -> Instants:
        """Second by second; a rule without lines keeps the milliseconds of its start."""
        rest_ms = 0 if self.lines else self.start_ms % 1000
        from_ms = max(accepted_ms + 1, self.start_ms // 1000 * 1000 + rest_ms)
        seconds = shown(self.zone, from_ms - rest_ms, until_ms - rest_ms)
        found = {each.second * 1000 + rest_ms for each in seconds if self._counts(each)}
        again = self._fixed and wall(self.zone, self.start_ms // 1000).fold
        if again and self._holds(self._begin):
            # A start that the wall shows for the second time was asked for as an instant.
            found.add(self.start_ms)
        kept = {at for at in found if not is_left_out(self.left_out, self.zone, at)}
        return sorted(at for at in kept if from_ms <= at <= until_ms)

    def _holds(self, at: datetime) -> bool:
        """Whether a time on the wall is one of the table's."""
        begin = self._begin
        if at in self.without_dates or any(rule.holds(at, begin) for rule in self.without):
            return False
        return at in self.dates or any(rule.holds(at, begin) for rule in self.rules)

    def _counts(self, at: Shown) -> bool:
        if self._holds(at.wall) and (at.is_new or not self._fixed):
            return True
        if not at.ends_a_gap:
            return False
        size = (at.wall - at.before) // SECOND
        lost = [at.before + each * SECOND for each in range(1, size)]
        gone = {each.date() for each in lost if self._holds(each)}
        return bool(gone) and (self._fixed or any(self._is_lost(day, at) for day in gone))

    def _is_lost(self, date: date, gap: Shown) -> bool:
        """Whether a gap has swallowed all times of a day."""
        day, ends = datetime.combine(date, time.min), (gap.before, gap.wall)
        minutes = {minute for rule in self.rules for minute in rule.minutes_of(day)}
        seconds = (minute + each * SECOND for minute in sorted(minutes) for each in range(60))
        there = (at for at in (*self.dates, *seconds) if at.date() == date)
        return not any(self._holds(at) for at in there if not ends[0] < at < ends[1])


def _local(at: datetime) -> str:
    return f"{at:%Y%m%dT%H%M%S}"
