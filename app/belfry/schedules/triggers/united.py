"""A union: the instants of several cron expressions and an interval, each of them once.

    0 9 * * MON | @every 90m     06:00   07:30   09:00   10:30   12:00      a Monday, in UTC
    0 9 * * MON                                    ●
    @every 90m                     ●       ●       ●       ●       ●
    fires                          ●       ●       ●       ●       ●        09:00 is both: once

An interval by itself counts from the fire before.  In a union that may be one of another part, so
the interval counts from `start_at`, or from 1970-01-01T00:00Z: every 90 minutes from there on.

Instants that parts have in common are counted once, so they have to be found.  That is done for
each pattern of days alone (`pieces`), and a pattern has few instants, for each part is due once a
minute at most (`union_text`).  The interval is the last part, since its patterns are many: a day of
it is looked at through its own instants, and those are the fewer the more patterns it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from belfry.schedules.triggers.pieces import pieces
from belfry.schedules.triggers.rule import Rule
from belfry.schedules.triggers.trigger import Trigger, ZonedTrigger
from belfry.schedules.triggers.zones import END_S, zone

# Counts of days that are alike.
MEMO_SIZE: Final = 64


class Rhythm(Trigger):
    """Instants `interval_ms` apart, counted from `start_at` or from the epoch."""

    def __init__(self, rule: Rule, interval_ms: int) -> None:
        super().__init__(rule)
        self.interval_ms = interval_ms
        self._origin_ms = rule.start_at or 0
        self._end_ms = END_S * 1000 if rule.end_at is None else rule.end_at

    def first_ms(self, accepted_ms: int) -> int | None:
        """The first instant after the acceptance, or from `start_at` on if that is later."""
        return self.after_ms(max(accepted_ms, self._origin_ms - 1))

    def after_ms(self, nominal_ms: int) -> int | None:
        """The next one, after any instant that it is asked about."""
        found = self._last_ms(nominal_ms) + self.interval_ms
        return found if found <= self._end_ms else None

    def latest_ms(self, after_ms: int, until_ms: int) -> tuple[int, int]:
        """A division."""
        last_ms = self._last_ms(min(until_ms, self._end_ms))
        count = (last_ms - self._last_ms(after_ms)) // self.interval_ms
        return (last_ms, count) if count > 0 else (after_ms, 0)

    def _last_ms(self, ms: int) -> int:
        """The last instant up to this one."""
        return ms - (ms - self._origin_ms) % self.interval_ms

    def day_pattern(self, nominal_ms: int, from_ms: int, day: int) -> object:  # noqa: ARG002  # CRON's
        """How long the day's begin is after an instant."""
        return from_ms - self._last_ms(from_ms)

    @property
    def cadence(self) -> tuple[object, ...]:
        """Interval and start."""
        return ("@every", self.interval_ms, self._origin_ms)


class United(ZonedTrigger):
    """The instants of all of these parts, which are of one zone; an interval is the last part."""

    def __init__(self, rule: Rule, parts: Sequence[Trigger]) -> None:
        super().__init__(rule)
        self.parts = tuple(parts)
        self._zone = zone(self.zone_name)
        self._counted: dict[tuple[object, ...], int] = {}

    def first_ms(self, accepted_ms: int) -> int | None:
        """The first of all."""
        found = [part.first_ms(accepted_ms) for part in self.parts]
        return min((each for each in found if each is not None), default=None)

    def after_ms(self, nominal_ms: int) -> int | None:
        """The next of all."""
        found = [part.after_ms(nominal_ms) for part in self.parts]
        return min((each for each in found if each is not None), default=None)

    def latest_ms(self, after_ms: int, until_ms: int) -> tuple[int, int]:
        """The sum of all parts, less the instants that they have in common."""
        found = [part.latest_ms(after_ms, until_ms) for part in self.parts]
        some = [(last_ms, count) for last_ms, count in found if count]
        if not some:
            return after_ms, 0
        last_ms, total = max(some)[0], sum(count for _, count in some)
        if len(some) > 1:
            total -= self._in_common(after_ms + 1, last_ms + 1)
        return last_ms, total

    def _in_common(self, from_ms: int, end_ms: int) -> int:
        """How many instants of parts are those of a part before them, too."""
        total = 0
        for piece in pieces(self._zone, from_ms, end_ms):
            if not piece.alike:
                total += self._repeated(piece.from_ms, piece.end_ms)
                continue
            pattern = self._patterns(piece.from_ms, piece.day)
            found = self._counted.get(pattern)
            if found is None:
                if len(self._counted) >= MEMO_SIZE:
                    self._counted.clear()
                found = self._counted[pattern] = self._repeated(piece.from_ms, piece.end_ms)
            total += found
        return total

    def _repeated(self, from_ms: int, end_ms: int) -> int:
        """The same, by a look at each instant of the parts behind the first."""
        total = 0
        for place, part in enumerate(self.parts[1:], 1):
            before = self.parts[:place]
            at_ms = part.after_ms(from_ms - 1)
            while at_ms is not None and at_ms < end_ms:
                total += any(each.after_ms(at_ms - 1) == at_ms for each in before)
                at_ms = part.after_ms(at_ms)
        return total

    def day_pattern(self, nominal_ms: int, from_ms: int, day: int) -> object:  # noqa: ARG002  # EVERY's
        """Those of all parts."""
        return self._patterns(from_ms, day)

    def _patterns(self, from_ms: int, day: int) -> tuple[object, ...]:
        return tuple(part.day_pattern(from_ms, from_ms, day) for part in self.parts)

    @property
    def cadence(self) -> tuple[object, ...]:
        """Those of all parts."""
        return (self.rule.kind, *(part.cadence for part in self.parts))
