"""The clock of CRON: times on the wall, turned into instants over changes of the clock.

The rule, for an expression whose hour and minute hold neither ``*`` nor a step (*fixed*), and for
the others, which have a *cadence*:

                 a wall time that does not exist          a wall time that comes twice
    fixed        once, at the end of the gap              once, the first time
    cadence      not at all; but where that would lose    each time
                 a day's every time: once, at the end

An expression of every hour (``*``) loses no day in any gap that is shorter than one.  Seconds play
no part in which of the two an expression is.  The idea is that of Debian's cron (cron(8)), which
asks whether a job means a time of day or a rhythm.  In Paris, with instants in UTC:

    2026-03-29, 02:00 ─► 03:00 on the wall at 01:00Z          2026-10-25, 03:00 ─► 02:00 at 01:00Z
    30 2 * * *      01:00Z, once, at the end of the gap       00:30Z, the first 02:30
    */30 * * * *    00:30Z 01:00Z 01:30Z: nothing is lost     00:00Z 00:30Z 01:00Z 01:30Z: each time
    */30 2 * * *    01:00Z, for 02:00 and 02:30 are           00:00Z 00:30Z 01:00Z 01:30Z
                    all that the day has

Instants are found stretch by stretch of constant offset (see `zones`), in which wall clock and UTC
run side by side.  Times in a gap are tried at the edge between two stretches; times that come again
are below the stretch's `fresh` second.

Cost: `after_ms` is one look into a memo for all schedules that share an expression, a zone and an
instant, else some microseconds.  `latest_ms` counts days, not occurrences: up to a microsecond for
each day passed over, whatever the expression.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Protocol

from belfry.schedules.civil import DAY_S
from belfry.schedules.triggers.expression import MOST_KEPT, expression
from belfry.schedules.triggers.zones import END_S, Stretch, Zone, zone

MEMO_SIZE: Final = 64
NEVER: Final = 1 << 62


class WallTimes(Protocol):
    """The questions of the clock to a rule: seconds on the wall, as if no clock were ever changed.

    A wall second is the number of seconds from 1970-01-01T00:00:00 *on the wall* to what the wall
    clock shows: that instant in UTC, read as if the wall clock were UTC.  `expression.Expression`
    (cron) and `rrule_walls.Walls` (RFC 5545) answer this.
    """

    @property
    def fixed(self) -> bool:
        """Whether it names its hours and minutes; otherwise it has a cadence."""

    @property
    def every_hour(self) -> bool:
        """Whether it is a cadence of all hours, which loses no day."""

    def next_wall(self, wall: int) -> int | None:
        """The first one from this second on, or None."""

    def last_wall(self, wall: int, from_wall: int) -> int | None:
        """The last one up to this second, not before `from_wall`, or None."""

    def count(self, start: int, end: int) -> int:
        """How many there are from `start` to `end` (exclusive)."""

    def ends_of_day(self, day: int) -> tuple[int, int]:
        """The first and the last one of a day that has some."""

    def on_day(self, day: int) -> bool:
        """Whether a day, counted from 1970-01-01, has some."""


class Clock:
    """The instants of one rule in one zone, in seconds of UTC.

    In milliseconds `rest_ms` is added to each: a rule of RFC 5545 keeps the milliseconds of its
    DTSTART, a cron expression has none.

    Threads share a clock.  The memo is a dictionary that is only ever filled or cleared, and two
    threads that miss the same entry compute the same number, so it needs no lock.
    """

    def __init__(
        self, found: WallTimes, place: Zone, rest_ms: int = 0, memo_size: int = MEMO_SIZE
    ) -> None:
        self.expression = found
        self.zone = place
        self.rest_ms = rest_ms
        # The next instant by instant, both in milliseconds, or `NEVER`; many schedules ask alike.
        self.memo: dict[int, int] = {}
        self._memo_size = memo_size

    def remember(self, instant_ms: int) -> int:
        """The first instant after this one, or `NEVER`, both in milliseconds, for the memo."""
        memo = self.memo
        if len(memo) >= self._memo_size:
            memo.clear()
        found = self.after((instant_ms - self.rest_ms) // 1000)
        memo[instant_ms] = after_ms = NEVER if found is None else found * 1000 + self.rest_ms
        return after_ms

    def after(self, after: int) -> int | None:
        """The first instant after this second, or None.

        Each round looks through one stretch of constant offset.  Where the next time on the wall
        lies behind the stretch's end, the gap at this end may have swallowed one; if not, the next
        stretch is looked through.
        """
        # Begins in the stretch of `after`, so that a gap right behind it is met.
        start, stretch = after + 1, self.zone.at(min(after, END_S))
        while start < END_S:
            wall = self.expression.next_wall(self._from_wall(stretch, start))
            found = None if wall is None else wall - stretch.offset
            if found is not None and found < stretch.end:
                return found
            following = self.zone.at(stretch.end)
            if self.fires_at_gap(stretch, following):
                return stretch.end
            start = self._skip(stretch, start, found)
            stretch = self.zone.at(start)
        return None

    @staticmethod
    def _skip(stretch: Stretch, start: int, found: int | None) -> int:
        """Where to go on when the wall times of a stretch from `start` are used up.

        A day before the stretch's end nothing on the wall can come again, so all up to shortly
        before the next match may be skipped.
        """
        if stretch.end - start < DAY_S:
            return stretch.end
        return max(stretch.end, END_S if found is None else min(END_S, found - 2 * DAY_S))

    def count(self, after: int, until: int) -> int:
        """How many instants lie after `after` and not after `until`, both seconds of UTC."""
        total, start, stretch = 0, after + 1, self.zone.at(after)
        while start <= until:
            end = min(stretch.end, until + 1)
            from_wall = self._from_wall(stretch, start)
            total += self.expression.count(from_wall, end + stretch.offset)
            if end == stretch.end <= until:
                total += self._adds_at_gap(stretch)
            start, stretch = end, self.zone.at(stretch.end)
        return total

    def last(self, after: int, until: int) -> int:
        """The last instant after `after` and not after `until`; there has to be one."""
        stretch = self.zone.at(until)
        while until > after:
            start = max(stretch.start, after + 1)
            from_wall = self._from_wall(stretch, start)
            wall = self.expression.last_wall(until + stretch.offset, from_wall)
            if wall is not None:
                return wall - stretch.offset
            until = stretch.start - 1
            before = self.zone.at(until)
            if stretch.start > after and self.fires_at_gap(before, stretch):
                return stretch.start
            stretch = before
        raise AssertionError("an instant that was counted is not there")

    def _from_wall(self, stretch: Stretch, start: int) -> int:
        """The first wall second of a stretch, from `start` on, that counts."""
        wall = start + stretch.offset
        return max(wall, stretch.fresh) if self.expression.fixed else wall

    def _adds_at_gap(self, stretch: Stretch) -> bool:
        """Whether the end of a stretch is an instant only for times that a gap swallowed."""
        following = self.zone.at(stretch.end)
        wall = stretch.end + following.offset
        return self.fires_at_gap(stretch, following) and self.expression.next_wall(wall) != wall

    def fires_at_gap(self, stretch: Stretch, following: Stretch) -> bool:
        """Whether a gap between two stretches swallows a time that is made up for at its end."""
        start, end = stretch.end + stretch.offset, stretch.end + following.offset
        if end <= start:
            return False
        first = self.expression.next_wall(start)
        if first is None or first >= end:
            return False
        return self.expression.fixed or self._loses_a_day(start, end)

    def _loses_a_day(self, start: int, end: int) -> bool:
        if self.expression.every_hour:
            return False
        for day in range(start // DAY_S, end // DAY_S + 1):
            first, last = self.expression.ends_of_day(day)
            if start <= first and last < end and self.expression.on_day(day):
                return True
        return False


@lru_cache(maxsize=MOST_KEPT)
def clock(text: str, zone_name: str) -> Clock:
    """The clock of a normalized expression in a zone; raises `CronMistake`, `UnknownZone`."""
    return Clock(expression(text), zone(zone_name))
