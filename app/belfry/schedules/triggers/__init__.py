"""Triggers: when a schedule is due, by its rule.

    trigger_of(rule bytes) ─► Once      AT, AFTER   nothing after the one
                              Every     EVERY       sums
                              Cron      CRON        expression × zone, see `cron` for changed clocks

Nominal instants are epoch milliseconds, strictly increasing.  The next is found from the one
before, never from now, so that no delay moves a schedule.
"""

from __future__ import annotations

from functools import lru_cache

from belfry.schedules.rule import Rule, decode_rule, without_targets
from belfry.schedules.triggers.cron import Cron
from belfry.schedules.triggers.every import Every
from belfry.schedules.triggers.expression import CronMistake
from belfry.schedules.triggers.once import Once
from belfry.schedules.triggers.trigger import Trigger
from belfry.schedules.triggers.zones import UnknownZone

__all__ = ["CronMistake", "Trigger", "UnknownZone", "trigger_by", "trigger_of"]


def trigger_of(encoded_rule: bytes) -> Trigger:
    """The trigger of a rule as it lies in a pending record; shared, so never change it."""
    return _trigger_of(without_targets(encoded_rule))


@lru_cache(maxsize=65_536)
def _trigger_of(encoded_rule: bytes) -> Trigger:
    return trigger_by(decode_rule(encoded_rule))


def trigger_by(rule: Rule) -> Trigger:
    """The trigger of a rule; raises `CronMistake` or `UnknownZone` for one that is not checked."""
    if rule.kind == "EVERY":
        return Every(rule)
    return Cron(rule) if rule.kind == "CRON" else Once(rule)
