"""Misfires: what becomes of occurrences that are later than their schedule allows.

    last fire       due ─── limit ──►│ late from here on                                      now
    ──●─────────○─────────○──────────○─────────○─────────○─────────○──────────────────────────┤
                └────────── the late run: due more than the limit ago ──┘    still in time ──┘

FIRE_ONCE fires the last of the run, which stands for the others; SKIP fires none of it; FIRE_ALL
fires each.  What does not fire is *given up*, and counted.  An occurrence that is late by no more
than the limit always fires.
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
    """The jitter of one schedule: its name, and the longest delay."""

    schedule: bytes
    most_ms: int

    def due_ms(self, nominal_ms: int) -> int:
        """When an occurrence is due."""
        if not self.most_ms:
            return nominal_ms
        return nominal_ms + jitter_ms(self.schedule, nominal_ms, self.most_ms)


class LateRun(NamedTuple):
    """Late occurrences one after another: the last, how many, and what comes after them."""

    last_ms: int
    number: int
    following_ms: int | None


def late_run(trigger: Trigger, nominal_ms: int, before_ms: int, spread: Jitter) -> LateRun:
    """The run from a late occurrence to the last that was due before `before_ms`.

    Takes no longer for a year of seconds than for one: the trigger counts them.
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

    With a jitter that is longer than the distance of two occurrences, it need not be the last one.
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
