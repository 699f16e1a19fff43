"""Misfires: the outcome of occurrences that are later than their schedule allows.

    last fire       due ─── limit ──►│ late from here on                                      now
    ──●─────────○─────────○──────────○─────────○─────────○─────────○──────────────────────────┤
                └────────── the late run: due more than the limit ago ──┘    still in time ──┘

FIRE_ONCE fires the last of the run, which stands for the others; SKIP fires none of it; FIRE_ALL
fires each.  An occurrence that does not fire is *given up*, and counted.  One that is late by no
more than the limit always fires.

A worked example: EVERY hour, the limit is one minute, and nothing fires from 09:30 to 12:30.

    due              10:00      11:00      12:00      13:00
    late from        10:01      11:01      12:01
    at 12:30         └──────── the run: 3 ────┘       in time

    FIRE_ONCE        gives up 2, fires 12:00 at 12:30
    SKIP             gives up 3
    FIRE_ALL         fires 10:00, 11:00 and 12:00 from 12:30 on, one after another

In all three cases the schedule then waits for 13:00.  The run is judged when its first occurrence
comes up, by the instant of that step.

Cost: a run is counted by the trigger, which needs no longer for a million occurrences than for two.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.schedules.jitter import jitter_ms
from belfry.schedules.rule import Rule
from belfry.schedules.triggers import Trigger

FIRE_ONCE: Final = "FIRE_ONCE"
FIRE_ALL: Final = "FIRE_ALL"
SKIP: Final = "SKIP"

# Jitter makes due instants overtake one another, so near the limit each is looked at.
MOST_LOOKED_AT: Final = 1_000


class Jitter(NamedTuple):
    """The jitter of one schedule: its name, and the longest delay.

    `schedule` is ``tenant/schedule_id`` as bytes; `most_ms` is 0 where there is no jitter.
    """

    schedule: bytes
    most_ms: int

    def due_ms(self, nominal_ms: int) -> int:
        """When an occurrence is due, in epoch milliseconds: its nominal instant and its delay."""
        if not self.most_ms:
            return nominal_ms
        return nominal_ms + jitter_ms(self.schedule, nominal_ms, self.most_ms)


class LateRun(NamedTuple):
    """Late occurrences one after another: the last, how many, and their successor.

    Instants are nominal, in epoch milliseconds.  `number` is at least 1: a run begins with the
    occurrence that was found late.  `following_ms` is None where the rule has nothing after it.
    """

    last_ms: int
    number: int
    following_ms: int | None


def late_run(trigger: Trigger, nominal_ms: int, before_ms: int, spread: Jitter) -> LateRun:
    """The run from a late occurrence to the last that was due before `before_ms`.

    Takes no longer for a year of seconds than for one: the trigger counts them.

    With the example above, `before_ms` is 12:29 (now less the limit), and the answer is the run of
    three: last 12:00, number 3, following 13:00.

    Jitter is a delay, so an occurrence whose nominal instant lies before `before_ms` less the
    longest jitter is late for certain, and is counted.  Only those within one jitter of the limit
    are looked at, at most `MOST_LOOKED_AT` of them; a later one is judged when it comes up.
    """
    last_ms, more = trigger.latest_ms(nominal_ms, before_ms - 1 - spread.most_ms)
    following_ms = trigger.after_ms(last_ms)
    for _ in range(MOST_LOOKED_AT if spread.most_ms else 0):
        if following_ms is None or spread.due_ms(following_ms) >= before_ms:
            break
        last_ms, more, following_ms = following_ms, more + 1, trigger.after_ms(following_ms)
    return LateRun(last_ms, more + 1, following_ms)


def run_up_to(trigger: Trigger, nominal_ms: int, due_ms: int, spread: Jitter) -> LateRun:
    """The run from a late occurrence to the last before one that is due after this instant."""
    return late_run(trigger, nominal_ms, due_ms + 1, spread)


def due_last(trigger: Trigger, nominal_ms: int, run: LateRun, spread: Jitter) -> int:
    """The occurrence of a run, which begins with this one, that is due last; its nominal instant.

    With a jitter that is longer than the distance of two occurrences, it need not be the last one:

        nominal   10:00        10:01        10:02
        due       10:00:40     10:03:10     10:02:20        the one of 10:01 is due last

    The engine asks this for schedules with a group.  There the event that stands for a run takes
    the place of this one, so that earlier events of the group come out before it.
    """
    found = max((spread.due_ms(each), each) for each in (nominal_ms, run.last_ms))
    following_ms, _ = trigger.latest_ms(nominal_ms, run.last_ms - spread.most_ms)
    for _ in range(MOST_LOOKED_AT):
        found = max(found, (spread.due_ms(following_ms), following_ms))
        after_ms = trigger.after_ms(following_ms)
        if after_ms is None or after_ms > run.last_ms:
            break
        following_ms = after_ms
    return found[1]


def policy_of(rule: Rule, tenant_default: str | None) -> str:
    """The misfire policy: the schedule's, else the tenant's, else by kind.

    A recurring schedule then fires once for all that it missed.  A one-shot that says how late it
    may be, and no more, means that it is worth nothing later.
    """
    return rule.misfire or tenant_default or (FIRE_ONCE if rule.recurs else SKIP)
