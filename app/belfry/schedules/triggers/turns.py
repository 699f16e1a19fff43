"""The effect of changed clocks on an expression: told before they are changed.

    30 2 * * *, Europe/Paris, asked in January 2026

    clock_gap      2026-03-29 02:30 on the wall does not exist; it fires once, at
                   2026-03-29T01:00:00.000Z, when the clock has gone forward.
    clock_repeat   2026-10-25 02:30 on the wall comes twice; it fires the first time only.

The next three changes that touch the expression are told, at most 400 days ahead, so each of the
two changes of a year is met once.  `clock` decides about these times; nothing here does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from belfry.schedules.instants import format_instant
from belfry.schedules.triggers.clock import Clock
from belfry.schedules.triggers.kind import Warned
from belfry.schedules.triggers.trigger import Trigger
from belfry.schedules.triggers.zones import END_S, Stretch

LONGEST_S: Final = 400 * 86_400
MOST_TOLD: Final = 3
MINUTE_S: Final = 60
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Effect(StrEnum):
    """The treatment of the times that a change of the clock touches."""

    MADE_UP = "made up"  # They do not exist; one instant at the end of the gap stands for all.
    PASSED_OVER = "passed over"  # They do not exist, and nothing stands for them.
    ONCE = "once"  # They come twice and count the first time.
    TWICE = "twice"  # They come twice and count each time.


class ZoneTransition(NamedTuple):
    """A change of the clock at `second` of UTC.

    `wall` is the first time on the wall, of those that the rule allows, that the change touches.
    """

    second: int
    wall: int
    effect: Effect


_EFFECTS: Final = {
    Effect.MADE_UP: "does not exist; it fires once, at {instant}, when the clock has gone forward",
    Effect.PASSED_OVER: "does not exist; it is passed over, and the cadence goes on",
    Effect.ONCE: "comes twice; it fires the first time only",
    Effect.TWICE: "comes twice; it fires each time",
}


def turn_warnings(clock: Clock, now_ms: int, trigger: Trigger) -> Iterator[Warned]:
    """The next changes of the clock that matter to a trigger with this clock, in words."""
    end_ms = trigger.rule.end_at
    until = 1 << 60 if end_ms is None else end_ms // 1000
    for turn in turns(clock, now_ms // 1000, until, trigger.shows)[:MOST_TOLD]:
        when = (_EPOCH + timedelta(seconds=turn.wall)).strftime("%Y-%m-%d %H:%M")
        effect = _EFFECTS[turn.effect].format(instant=format_instant(turn.second * 1000))
        gone = turn.effect in (Effect.MADE_UP, Effect.PASSED_OVER)
        yield Warned("clock_gap" if gone else "clock_repeat", f"{when} on the wall {effect}.")


def turns(
    clock: Clock, from_second: int, until_second: int, shows: Callable[[int], bool]
) -> list[ZoneTransition]:
    """The changes of the clock in this time that touch an instant, at most 400 days ahead.

    `shows` says of a second on the wall whether anything fires then.
    """
    found: list[ZoneTransition] = []
    until = min(until_second, from_second + LONGEST_S, END_S)
    stretch = clock.zone.at(from_second)
    while stretch.end < until:
        following = clock.zone.at(stretch.end)
        turn = _turn(clock, stretch, following, shows)
        if turn is not None:
            found.append(turn)
        stretch = following
    return found


def _turn(
    clock: Clock, stretch: Stretch, following: Stretch, shows: Callable[[int], bool]
) -> ZoneTransition | None:
    old, new = stretch.end + stretch.offset, stretch.end + following.offset
    first = clock.expression.next_wall(min(old, new))
    if new < old:
        # A minute is left out both times that it comes; a gap is judged by the gap's end.
        while first is not None and first < old and not shows(first):
            first = clock.expression.next_wall(first - first % MINUTE_S + MINUTE_S)
    if first is None or first >= max(old, new):
        return None
    if new < old:
        effect = Effect.ONCE if clock.expression.fixed else Effect.TWICE
    elif not clock.fires_at_gap(stretch, following):
        effect = Effect.PASSED_OVER
    elif shows(new):
        effect = Effect.MADE_UP
    else:
        return None
    return ZoneTransition(stretch.end, first, effect)
