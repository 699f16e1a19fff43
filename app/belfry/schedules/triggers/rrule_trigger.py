"""The trigger of a recurrence of RFC 5545: its times on the wall, as instants of a zone.

    rrule_text    what a text says                 FREQ=MONTHLY;BYDAY=-1FR
    rrule_days    its days                         30 Jan, 27 Feb, 26 Mar …
    rrule_times   its times of a day               09:00
    rrule_walls   both, for one rule or a set      30 Jan 09:00 on the wall …
    clock         what changed clocks do to them   30 Jan 08:00 UTC …

DTSTART is the field `start_at`, or a line of the text; it says from when on, and fills parts that
the rule leaves out.  If it is no time of the rule it is no occurrence, and COUNT counts from the
first time that is one.  Clocks that change are met as cron meets them (see `clock`); milliseconds
of DTSTART stay.

A DTSTART that the clock shows for the second time is an occurrence of its own, for it was asked for
as an instant.

Nothing is walked through from DTSTART: the next time of a rule that began in 1970 costs as much as
that of one which begins today.  Where the end of a COUNT is too far away to be found within some
milliseconds, `ends_in_sight` says so, and the rule is refused.
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.civil import DAY_S
from belfry.schedules.triggers.clock import Clock
from belfry.schedules.triggers.rrule_cost import looks_a_day
from belfry.schedules.triggers.rrule_sets import Excepted, SetWalls
from belfry.schedules.triggers.rrule_text import read_rule
from belfry.schedules.triggers.rrule_values import Moment, Recurrence, RuleText
from belfry.schedules.triggers.rrule_walls import RuleWalls, Walls
from belfry.schedules.triggers.rule import Rule
from belfry.schedules.triggers.trigger import ZonedTrigger
from belfry.schedules.triggers.zones import END_S, Zone, zone

# Rules differ in their starts, so few ask one clock for the same.
MEMO_SIZE: Final = 8


class RRule(ZonedTrigger):
    """Instants of a recurrence of RFC 5545."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        assert isinstance(rule.when, str), "a checked rule has its text"
        self._text = read_rule(rule.when)
        place = zone(self.zone_name)
        self.start_ms, wall = start_of(self._text, rule, place)
        second, rest_ms = divmod(self.start_ms, 1000)
        self.walls, self.ends_in_sight = walls_of(self._text, wall, place)
        self._clock = Clock(self.walls, place, rest_ms, MEMO_SIZE)
        self._memo = self._clock.memo
        self._end_ms = self._last_ms(rule)
        self.starts_with_its_start = self.walls.next_wall(wall) == wall
        again = wall < place.at(second).fresh and self.walls.fixed and self.starts_with_its_start
        # An instant that the clock would not give: a start that is shown for the second time.
        self._extra_ms = self.start_ms if again else None

    def _last_ms(self, rule: Rule) -> int:
        """No instant is later than this one."""
        end_ms = END_S * 1000 - 1 if rule.end_at is None else rule.end_at
        if not self._text.is_one_rule:
            return end_ms
        until = self._text.rules[0].until
        if until is None or not until.in_utc:
            return end_ms
        return min(end_ms, until.second * 1000 + self._clock.rest_ms)

    @property
    def clock(self) -> Clock:
        """Its times in its zone."""
        return self._clock

    @property
    def looks_a_day(self) -> int:
        """None where all days are alike; of a set as much as it joins."""
        if self.walls.even:
            return 0
        return 1 if self._text.is_one_rule else 1 + looks_a_day(self._text)

    @property
    def zone_name(self) -> str:
        """That of its TZID, or the field's."""
        return self._text.zone or super().zone_name

    def day_pattern(self, nominal_ms: int, from_ms: int, day: int) -> object:  # noqa: ARG002  # EVERY's
        """Its times, which are the same object where they are the same."""
        return self.walls.times_on(day)

    def first_ms(self, accepted_ms: int) -> int | None:
        """The first instant after the acceptance, or from DTSTART and `start_at` on."""
        start_ms = max(self.start_ms, self.rule.start_at or self.start_ms)
        return self.after_ms(max(accepted_ms, start_ms - 1))

    def after_ms(self, nominal_ms: int) -> int | None:
        """The next time on the wall, as an instant."""
        found = self._memo.get(nominal_ms)
        if found is None:
            found = self._clock.remember(nominal_ms)
        if self._extra_ms is not None and nominal_ms < self._extra_ms:
            found = self._extra_ms
        return found if found <= self._end_ms else None

    def latest_ms(self, after_ms: int, until_ms: int) -> tuple[int, int]:
        """Counts days, not occurrences."""
        from_ms, rest_ms = max(after_ms, self.start_ms - 1), self._clock.rest_ms
        after = (from_ms - rest_ms) // 1000
        until = (min(until_ms, self._end_ms) - rest_ms) // 1000
        if until <= after:
            return after_ms, 0
        count = self._clock.count(after, until)
        last_ms = self._clock.last(after, until) * 1000 + rest_ms if count else after_ms
        if self._extra_ms is not None and from_ms < self._extra_ms <= until_ms:
            return max(last_ms, self._extra_ms), count + 1
        return last_ms, count

    @property
    def cadence(self) -> tuple[object, ...]:
        """All that the text says, zone and start."""
        return (self.rule.kind, self._text, self.zone_name, self.start_ms)


def start_of(text: RuleText, rule: Rule, place: Zone) -> tuple[int, int]:
    """DTSTART as an instant, and as a time on the wall, which is shown then for the first time."""
    start_ms = rule.start_at
    if text.start is not None:
        second = text.start.second
        if not text.start.in_utc:
            return first_second(place, second) * 1000, second
        start_ms = second * 1000
    assert start_ms is not None, "a checked rule has its DTSTART"
    second = start_ms // 1000
    return start_ms, second + place.at(second).offset


def first_second(place: Zone, wall: int) -> int:
    """The second of UTC at which the wall clock first shows this one, or shows a later one."""
    stretch = place.at(wall - 2 * DAY_S)
    while wall >= stretch.end + stretch.offset:
        stretch = place.at(stretch.end)
    return max(stretch.start, wall - stretch.offset)


def walls_of(text: RuleText, start: int, place: Zone) -> tuple[Walls, bool]:
    """The times of a text from a wall second on, and whether each COUNT's end could be found."""
    rules = [_rule_walls(each, start, place) for each in text.rules]
    without = [_rule_walls(each, start, place) for each in text.without]
    in_sight = all(each.ends_in_sight for each in (*rules, *without))
    if text.is_one_rule:
        return rules[0], in_sight
    dates = Excepted(
        tuple(_wall(each, place) for each in text.dates),
        frozenset(_wall(each, place) for each in text.without_dates if not each.is_date),
        frozenset(each.second // DAY_S for each in text.without_dates if each.is_date),
    )
    return SetWalls([*rules], [*without], dates), in_sight


def _rule_walls(rule: Recurrence, start: int, place: Zone) -> RuleWalls:
    until = None
    if rule.until is not None:
        until = _wall(rule.until, place) + (DAY_S - 1 if rule.until.is_date else 0)
    return RuleWalls(rule, start, until)


def _wall(moment: Moment, place: Zone) -> int:
    if not moment.in_utc:
        return moment.second
    return moment.second + place.at(min(moment.second, END_S - 1)).offset
