"""The cost to find the next time of rules of RFC 5545 together: a bound, by their text.

A set joins the times of its rules day by day, and remembers what it has joined for each sort of
day.  A rule by hours, minutes or seconds has as many sorts of days as places where its INTERVAL may
stand at midnight.  Together rules have the product of these:

    RRULE:FREQ=DAILY;BYHOUR=9,17      2 sorts (a day of the rule, or none)     2 times
    RRULE:FREQ=SECONDLY;INTERVAL=7    8 sorts                             12 343 times
    a set of both                    16 sorts × 12 345 times: 197 520 to join

Where an EXRULE takes all away, so many have to be joined before it is known that nothing is left.
A partition computes for all of its tenants, so a set of more than `MOST_JOINED` is refused: that
many take a tenth of a second.  A rule alone joins nothing.
"""

from __future__ import annotations

from math import gcd, prod
from typing import Final

from belfry.schedules.triggers.rrule_days import MOST_KEPT
from belfry.schedules.triggers.rrule_values import Recurrence, RuleText

# Times that may have to be joined to find the next one.
MOST_JOINED: Final = 1_000_000
# Times that are joined while one instant of another rule is found.
JOINED_AT_A_LOOK: Final = 100
# Days of a set that are looked at, where there are more sorts of them than are remembered.
_DAYS: Final = 1_600
# Of a rule with BYSETPOS each day of a year may be another one.
_SORTS_OF_PLACES: Final = 367
_UNITS: Final = {"HOURLY": 24, "MINUTELY": 1_440, "SECONDLY": 86_400}


def joined(text: RuleText) -> int:
    """How many times may have to be joined to find the next one of a text; 0 for a rule alone."""
    if text.is_one_rule:
        return 0
    # A rule that nothing is taken from has its next time on the first day that has any.
    sorts = sorts_of_sets(text) if text.without else 1
    days = sorts if sorts <= MOST_KEPT else _DAYS
    return (days + len(text.dates) + len(text.without_dates)) * times_of_sets(text)


def looks_a_day(text: RuleText) -> int:
    """How much is looked at to count the times of one day of a set, beside the day itself."""
    return 0 if sorts_of_sets(text) <= MOST_KEPT else times_of_sets(text) // JOINED_AT_A_LOOK


def sorts_of_sets(text: RuleText) -> int:
    """How many sorts of days all rules of a text have together."""
    return prod(sorts_of_days(each) + 1 for each in (*text.rules, *text.without))


def times_of_sets(text: RuleText) -> int:
    """How many times all rules of a text have on a day, at most."""
    return sum(times_a_day(each) for each in (*text.rules, *text.without))


def sorts_of_days(rule: Recurrence) -> int:
    """How many sorts of days a rule has, apart from those on which it has no time."""
    units = _UNITS.get(rule.freq)
    if units is not None:
        return rule.interval // gcd(rule.interval, units)
    return _SORTS_OF_PLACES if rule.positions else 1


def times_a_day(rule: Recurrence) -> int:
    """How many times a day of a rule has at most."""
    hours = len(rule.hours) or (24 if rule.within_a_day else 1)
    minutes = len(rule.minutes) or (60 if rule.freq in ("MINUTELY", "SECONDLY") else 1)
    seconds = len(rule.seconds) or (60 if rule.freq == "SECONDLY" else 1)
    within = {"HOURLY": minutes * seconds, "MINUTELY": seconds, "SECONDLY": 1}
    units = _UNITS.get(rule.freq)
    every = hours * minutes * seconds
    return every if units is None else min(every, -(-units // rule.interval) * within[rule.freq])


def looked_at(rule: Recurrence) -> int:
    """How much is looked at to make the times of one day, where they are not remembered."""
    is_range = rule.freq == "SECONDLY" and not (rule.hours or rule.minutes or rule.seconds)
    if is_range or not rule.within_a_day or sorts_of_days(rule) <= MOST_KEPT:
        return 0
    hours, minutes = len(rule.hours) or 24, len(rule.minutes) or 60
    return min(-(-_UNITS[rule.freq] // rule.interval), hours * minutes)
