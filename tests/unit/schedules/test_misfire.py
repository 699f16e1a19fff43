"""Runs of late occurrences: the example of the module, and walks that look at each of them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from belfry.schedules.fields import FIELDS
from belfry.schedules.misfire import (
    MOST_LOOKED_AT,
    Jitter,
    LateRun,
    due_last,
    late_run,
    policy_of,
    run_up_to,
)
from belfry.schedules.triggers import Trigger, trigger_by
from belfry.schedules.triggers.rule import Rule

TEN = 1_800_000_000_000
HOUR = 3_600_000
MINUTE = 60_000
NONE = Jitter(b"demo/a", 0)


def every(interval_ms: int, end_at: int | None = None) -> Trigger:
    return trigger_by(Rule("EVERY", interval_ms, end_at=end_at))


class Idle(Jitter):
    """A jitter that is always nothing, whatever it might be."""

    __slots__ = ()

    def due_ms(self, nominal_ms: int) -> int:
        return nominal_ms


def walked(trigger: Trigger, nominal_ms: int, before_ms: int, spread: Jitter) -> list[int]:
    """The run, by a look at each occurrence."""
    found = [nominal_ms]
    next_ms = trigger.after_ms(nominal_ms)
    while next_ms is not None and spread.due_ms(next_ms) < before_ms:
        found.append(next_ms)
        next_ms = trigger.after_ms(next_ms)
    return found


#    due    10:00      11:00      12:00      13:00      at 12:30, limit 1 min: late before 12:29
def test_the_example_of_the_module() -> None:
    run = late_run(every(HOUR), TEN, TEN + 149 * MINUTE, NONE)
    assert run == LateRun(TEN + 2 * HOUR, 3, TEN + 3 * HOUR)


def test_what_is_due_at_the_limit_is_in_time() -> None:
    assert late_run(every(HOUR), TEN, TEN + HOUR, NONE) == LateRun(TEN, 1, TEN + HOUR)
    assert late_run(every(HOUR), TEN, TEN + HOUR + 1, NONE).number == 2
    assert run_up_to(every(HOUR), TEN, TEN + HOUR, NONE).number == 2
    assert run_up_to(every(HOUR), TEN, TEN + HOUR - 1, NONE).number == 1


def test_nothing_follows_the_last_one() -> None:
    ends = every(HOUR, end_at=TEN + HOUR)
    assert late_run(ends, TEN, TEN + 9 * HOUR, NONE) == LateRun(TEN + HOUR, 2, None)
    jittered = Jitter(b"demo/a", MINUTE)
    assert late_run(ends, TEN, TEN + 9 * HOUR, jittered) == LateRun(TEN + HOUR, 2, None)


@pytest.mark.parametrize("most_ms", [1, 9_999, 10_000, 45_000, 300_000])
@pytest.mark.parametrize("end_at", [None, TEN + 130_000])
def test_with_jitter_a_run_is_what_a_walk_finds(most_ms: int, end_at: int | None) -> None:
    trigger = every(10_000, end_at)
    for number in range(40):
        spread = Jitter(b"demo/%d" % number, most_ms)
        for before_ms in (TEN + 1, TEN + 60_000, TEN + 123_456, TEN + 500_000):
            found = walked(trigger, TEN, before_ms, spread)
            run = late_run(trigger, TEN, before_ms, spread)
            assert run == LateRun(found[-1], len(found), trigger.after_ms(found[-1]))
            latest = max((spread.due_ms(each), each) for each in found)
            assert due_last(trigger, TEN, run, spread) == latest[1]


def test_no_more_than_a_thousand_are_looked_at_near_the_limit() -> None:
    """All before are counted; what is behind these is judged when it comes up."""
    before_ms, spread = TEN + 20_000, Idle(b"demo/a", 5_000)
    certain = 20_000 - 5_000
    run = late_run(every(1), TEN, before_ms, spread)
    assert run.number == certain + MOST_LOOKED_AT
    assert run.last_ms == TEN + run.number - 1


def test_occurrences_that_overtake_one_another_are_there() -> None:
    """Otherwise `due_last` would be the last one each time, and prove nothing."""
    spread = Jitter(b"demo/a", 45_000)
    dues = [spread.due_ms(TEN + number * 10_000) for number in range(20)]
    assert any(before > after for before, after in pairwise(dues))
    assert all(0 <= due - TEN - number * 10_000 <= 45_000 for number, due in enumerate(dues))


@pytest.mark.parametrize(
    ("said", "default", "once", "recurring"),
    [
        (None, None, "SKIP", "FIRE_ONCE"),
        (None, "FIRE_ALL", "FIRE_ALL", "FIRE_ALL"),
        ("SKIP", "FIRE_ALL", "SKIP", "SKIP"),
    ],
)
def test_the_policy_is_the_schedules_then_the_tenants_then_the_kinds(
    said: str | None, default: str | None, once: str, recurring: str
) -> None:
    assert policy_of(Rule("AT", misfire=said), default) == once
    assert policy_of(Rule("EVERY", HOUR, misfire=said), default) == recurring


def test_the_field_tells_both_defaults() -> None:
    recurring, once = (policy_of(rule, None) for rule in (Rule("EVERY", HOUR), Rule("AT")))
    told = f"else {recurring} for recurring schedules and {once} for one-shots."
    assert told in FIELDS["misfire"].doc
