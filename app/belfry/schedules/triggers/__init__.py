"""Triggers: when a schedule is due, by its rule.

    trigger_of(rule bytes) ─► Once      AT, AFTER   nothing after the one
                              Every     EVERY       sums
                              Cron      CRON        expression × zone (`clock`: when clocks change)
                              RRule     RRULE       days × times × zone, by the same clock
                              Excepting             one that recurs, without what it leaves out
                              Heeding               one that recurs, as its calendar has it

One module holds all that is known of a kind (`kind.TriggerKind`); `registry` lists them.

Nominal instants are epoch milliseconds, strictly increasing.  The next is found from the one
before, never from now, so that no delay moves a schedule.

What a trigger is asked, with EVERY hour and a schedule that was accepted at 09:00:

    first_ms(09:00)              10:00          when the request is accepted
    after_ms(10:00)              11:00          at each fire
    latest_ms(10:00, 12:30)      12:00, 2       after an outage: the last one missed, and how many

Wrappers answer the same questions, so the engine never asks which of them it has.  The order is
fixed: first the rule, then the minutes left out by `except_cron`, then the calendar.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from belfry.schedules.triggers.cron_text import CronMistake
from belfry.schedules.triggers.encoding import decode_rule, without_targets
from belfry.schedules.triggers.excepting import Excepting
from belfry.schedules.triggers.heeding import NEXT, SKIP, Heeding
from belfry.schedules.triggers.moving import MovingTrigger
from belfry.schedules.triggers.once import Once
from belfry.schedules.triggers.registry import RECURRING
from belfry.schedules.triggers.rule import Rule
from belfry.schedules.triggers.skipping import Skipping
from belfry.schedules.triggers.trigger import Trigger
from belfry.schedules.triggers.zones import UnknownZone

__all__ = ["MOST_RULES", "CronMistake", "Trigger", "UnknownZone", "trigger_by", "trigger_of"]


# Rules that a process keeps ready to fire: a few kB each, so a tenant with a rule for each of its
# schedules takes a hundred MB at most.  The others are compiled again when they fire.
MOST_RULES: Final = 16_384


def trigger_of(encoded_rule: bytes) -> Trigger:
    """The trigger of a rule as it lies in a pending record; shared, so never change it.

    It is remembered by the bytes without targets, so schedules that post to different addresses
    share one.  All threads of a process ask it, and it has no state that matters.
    """
    return _trigger_of(without_targets(encoded_rule))


@lru_cache(maxsize=MOST_RULES)
def _trigger_of(encoded_rule: bytes) -> Trigger:
    return trigger_by(decode_rule(encoded_rule))


def trigger_by(rule: Rule) -> Trigger:
    """The trigger of a rule; raises ValueError (`CronMistake` …) for one that is not checked."""
    kind = RECURRING.get(rule.kind)
    if kind is None:
        return Once(rule)
    found = kind.trigger(rule)
    if rule.except_cron is not None:
        found = Excepting(found)
    return found if rule.packed_days is None else _heeding(found, rule)


def _heeding(whole: Trigger, rule: Rule) -> Heeding:
    """A trigger that heeds the calendar of its rule."""
    assert rule.packed_days is not None, "a rule at rest has the days of its calendar"
    way = rule.on_holiday or SKIP
    if way == SKIP:
        return Skipping(whole, rule.packed_days)
    return MovingTrigger(whole, rule.packed_days, forward=way == NEXT)
