"""The instant a recurring schedule has passed: up to it nothing fires again by another definition.

    fired     ●                                  the rule of now says which instant came before the
              9            10        11          pending one; where days were taken and freed since,
    changed         ▲ read here                  it may not know 9 any more
    passed          9.5 ─────►                   so what the partition had reached counts as well

A change may arrive before a fire and be read after it.  So a calendar keeps how far its partition
had come when it was changed last: fires before the change lie up to there, and fires after it go by
the days that the schedule has now.

Why it matters: the id of a fire follows from its nominal instant.  An instant that fires twice
would have one id for two events, and consumers would drop the second one, or fail on it.  So an
instant that is derived anew always lies behind all that may have fired, also if an instant is left
out by it.
"""

from __future__ import annotations

from belfry.engine.step import Step
from belfry.schedules.rule import KINDS, RECURRING, has_calendar
from belfry.schedules.triggers import Trigger, trigger_of
from belfry.schedules.triggers.heeding import Heeding
from belfry.store.layout.calendars import CalendarRow
from belfry.store.layout.pending import Pending


def reached_ms(step: Step) -> int:
    """Up to where (epoch ms) something may have fired; all that fires later is behind it."""
    return max(step.now_ms, step.horizon_ms, step.scan.reached_ms)


def nominal_after(before: Trigger, trigger: Trigger, row: Pending, by: CalendarRow) -> int | None:
    """A pending instant by the changed days of a calendar; None: no more.

    An instant up to the arrival of the change stays.  Else the answer is the first instant after
    that, after all that the schedule has passed, and from its `start_at` on.
    """
    nominal_ms = row.nominal_ms
    if nominal_ms <= by.changed_ms:
        return nominal_ms
    assert isinstance(trigger, Heeding), "a rule with days heeds them"
    last_ms = max(before.before_ms(nominal_ms, row.accepted_ms), _up_to(by.reached_ms, row))
    passed_ms = max(last_ms, row.accepted_ms, by.changed_ms)
    if trigger.rule.start_at is not None:
        passed_ms = max(passed_ms, trigger.rule.start_at - 1)
    return trigger.next_ms(nominal_ms, passed_ms)


def nominal_at(row: Pending, ms: int) -> int:
    """The instant at which an imported schedule goes on, by the days that its calendar has here.

    An instant that was due before the request arrived stays, as it does when a calendar changes.
    """
    if ms <= row.accepted_ms or not has_calendar(row.extra):
        return ms
    trigger = trigger_of(row.extra)
    assert isinstance(trigger, Heeding), "a rule with days heeds them"
    found_ms = trigger.next_ms(ms, ms - 1)
    return ms if found_ms is None else found_ms


def passed_ms(old: Pending, calendar_ms: int, come_ms: int) -> int:
    """The last instant of a rhythm that has fired or was given up; 0 if there is no such instant.

    It may be later than the arrival of the request that ends the rhythm, which was read after it.
    `calendar_ms` is how far its partition had come at the last change of its calendar, 0 for none,
    and `come_ms` how far it has come now. What lies behind that has not passed, though the schedule
    may wait for a later one: an older release left out the instant at a `start_at`, if it moves.
    """
    if KINDS[old.kind] not in RECURRING:
        return 0
    trigger = trigger_of(old.extra)
    if not old.occurrence and trigger.first_ms(old.accepted_ms) == old.nominal_ms:
        return 0
    before_ms = trigger.before_ms(old.nominal_ms, old.accepted_ms)
    return max(before_ms if before_ms <= come_ms else 0, _up_to(calendar_ms, old))


def _up_to(ms: int, row: Pending) -> int:
    """This instant, or the one before the pending instant, which has not fired."""
    return min(ms, row.nominal_ms - 1)
