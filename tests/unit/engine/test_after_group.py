"""When all of a group are acknowledged: due once nothing of it waits, or is to be acknowledged."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.job_counts import Budget
from tests.unit.engine.acknowledging import WAIT, ack, fires, ids, rebuilt, serial
from tests.unit.engine.driver import T0, Driver

MUCH = Budget(1_000, 1_000)


def begun(*members: int, **fields: Any) -> Driver:
    """Members `m0`, `m1`, … of the group `g`, due at these seconds, and `all` behind them."""
    driver = Driver()
    driver.engine.claim(b"settings")
    driver.end(T0)
    for number, second in enumerate(members):
        serial(driver, f"m{number}", T0 + second * 1_000)
    driver.ask(schedule_id="all", kind="AFTER_GROUP", after_group="g", **fields)
    driver.step(T0, fire=False)
    return driver


def walk(driver: Driver, now_ms: int, budget: Budget = MUCH, *, commit: bool = True) -> int:
    """Walk on until nothing is left to walk through; how many steps it took."""
    steps = 0
    while driver.engine.jobs.under_way:
        steps += 1
        effects = driver.engine.advance_jobs(now_ms, budget)
        if not effects.empty:
            driver.end(now_ms, commit=commit)
        assert steps < 1_000, "a walk never ends"
        if not commit:
            break
    return steps


def done(driver: Driver, *seconds: int) -> None:
    """Members fire at these seconds, and each is acknowledged at once."""
    for second in seconds:
        now_ms = T0 + second * 1_000
        walk(driver, now_ms)
        (shot,) = fires(driver, now_ms)
        assert shot.id != "all"
        ack(driver, shot, now_ms)


# m0 ●══● ACK         m1 ●══● ACK
# all                       ● fires: between them m1 still waits
def test_it_fires_when_the_last_of_them_is_acknowledged() -> None:
    driver = begun(1, 2, 3)
    done(driver, 1, 2)
    walk(driver, T0 + 2_500)
    driver.sweep(T0 + 2_500)
    assert driver.run(T0 + 2_999) == []
    done(driver, 3)
    assert driver.engine.jobs.under_way
    walk(driver, T0 + 3_000)
    (found,) = fires(driver, T0 + 3_000)
    assert (found.id, found.header("belfry-scheduled-at")) == ("all", b"2027-01-15T08:00:03.000Z")
    walk(driver, T0 + 4_000)
    driver.sweep(T0 + 4_000)
    assert driver.run(T0 + 999_000) == []


def test_an_empty_group_is_done() -> None:
    driver = begun(ack_delay_ms=2_000)
    walk(driver, T0 + 500)
    assert driver.engine.next_due_ms() == T0 + 2_500
    assert driver.run(T0 + 2_500) == ["all"]


def test_while_the_group_goes_on_nothing_is_walked_through() -> None:
    driver = begun(1, 2)
    walk(driver, T0)
    assert not driver.engine.jobs.under_way
    for second in range(1, 4):
        driver.sweep(T0 + second * 100)
        assert not driver.engine.jobs.under_way
    (shot,) = fires(driver, T0 + 1_000)
    driver.sweep(T0 + 1_500)
    assert not driver.engine.jobs.under_way
    assert shot.id == "m0"


@pytest.mark.parametrize("how", ["time-out", "cancel", "no group"])
def test_who_leaves_the_group_without_an_acknowledgement_holds_nobody(how: str) -> None:
    driver = begun(1)
    walk(driver, T0)
    now_ms = T0 + 500
    if how == "time-out":
        fires(driver, T0 + 1_000)
        now_ms = T0 + 1_000 + WAIT
        assert driver.run(now_ms) == []
    elif how == "cancel":
        driver.ask(action="CANCEL", schedule_id="m0")
    else:
        driver.ask(schedule_id="m0", at=T0 + 999_000)
    driver.step(now_ms, fire=False)
    # Two sweeps: one takes up a round, the next one looks.
    driver.sweep(now_ms + 1_000)
    driver.sweep(now_ms + 2_000)
    walk(driver, now_ms + 2_000)
    assert driver.run(now_ms + 2_000) == ["all"]


def test_members_that_ask_for_no_acknowledgement_are_done_when_they_have_fired() -> None:
    driver = Driver()
    driver.ask(schedule_id="plain", at=T0 + 1_000, group="g")
    driver.ask(schedule_id="all", kind="AFTER_GROUP", after_group="g")
    driver.step(T0, fire=False)
    walk(driver, T0)
    assert driver.run(T0 + 1_000) == ["plain"]
    driver.sweep(T0 + 1_000)
    driver.sweep(T0 + 2_000)
    walk(driver, T0 + 2_000)
    assert driver.run(T0 + 2_000) == ["all"]


def test_what_recurs_counts_by_its_fires() -> None:
    driver = Driver()
    driver.ask(schedule_id="tick", kind="EVERY", interval_ms=60_000, group="g", serial=True)
    driver.step(T0, fire=False)
    (shot,) = fires(driver, T0 + 60_000)
    driver.ask(schedule_id="all", kind="AFTER_GROUP", after_group="g")
    driver.step(T0 + 60_000, fire=False)
    walk(driver, T0 + 60_000)
    assert driver.run(T0 + 60_000) == []
    ack(driver, shot, T0 + 61_000)
    walk(driver, T0 + 61_000)
    assert driver.run(T0 + 61_000) == ["all"]


def test_who_comes_behind_a_walk_that_has_passed_is_seen_by_those_that_come_behind_it() -> None:
    driver = begun(1, 5)
    for number in range(40):
        driver.ask(schedule_id=f"other{number}", at=T0 + 900_000)
    driver.step(T0, fire=False)
    done(driver, 1)
    (shot,) = fires(driver, T0 + 5_000)
    ack(driver, shot, T0 + 5_000)
    # The walk is amid the names, in the pass that has met nobody from the first one on.
    for _ in range(2):
        driver.engine.advance_jobs(T0 + 5_000, Budget(30, 1))
        driver.end(T0 + 5_000)
    serial(driver, "a-new-one", T0 + 9_000)
    driver.ask(schedule_id="all2", kind="AFTER_GROUP", after_group="g")
    driver.step(T0 + 5_000, fire=False)
    walk(driver, T0 + 5_000, Budget(7, 1))
    assert driver.run(T0 + 8_000) == []
    done(driver, 9)
    walk(driver, T0 + 9_000, Budget(7, 1))
    assert sorted(driver.run(T0 + 9_000)) == ["all", "all2"]


def test_a_walk_takes_as_many_steps_as_its_budget_asks_for_and_reads_each_name_about_twice() -> (
    None
):
    driver = begun()
    for number in range(100):
        driver.ask(schedule_id=f"other{number}", at=T0 + 900_000)
    driver.step(T0, fire=False)
    assert walk(driver, T0, Budget(10, 10)) in range(10, 13)
    assert driver.run(T0) == ["all"]


@pytest.mark.parametrize("taken_over", [False, True], ids=["rolled back", "taken over"])
def test_it_fires_once_over_roll_backs_and_take_overs(taken_over: bool) -> None:
    driver = begun(1)
    done(driver, 1)
    if taken_over:
        rebuilt(driver, T0 + 1_000)
    walk(driver, T0 + 2_000, commit=False)
    assert driver.run(T0 + 2_000) == []
    assert driver.engine.jobs.under_way
    walk(driver, T0 + 2_000)
    if taken_over:
        rebuilt(driver, T0 + 2_000)
        walk(driver, T0 + 2_000)
    assert driver.run(T0 + 2_000) == ["all"]
    if taken_over:
        rebuilt(driver, T0 + 3_000)
        walk(driver, T0 + 3_000)
    assert driver.run(T0 + 999_000) == []


def test_at_the_latest_it_fires_while_others_are_out_and_its_own_group_is_refused() -> None:
    driver = begun(1, latest_at=T0 + 20_000)
    driver.ask(schedule_id="me", kind="AFTER_GROUP", after_group="g", group="g")
    assert driver.step(T0, fire=False).codes == ["bad_after_ack"]
    walk(driver, T0)
    assert ids(fires(driver, T0 + 20_000)) == ["m0", "all"]


def test_sweeps_are_awaited_while_somebody_waits_for_a_group() -> None:
    """That a time-out has ended it, they alone see."""
    driver = begun(1)
    assert driver.engine.sweeps_awaited
    walk(driver, T0)
    fires(driver, T0 + 1_000)
    now_ms = T0 + 1_000 + WAIT
    driver.run(now_ms)
    for _ in range(2):
        assert driver.engine.sweeps_awaited
        driver.sweep(now_ms)
    walk(driver, now_ms)
    assert driver.run(now_ms) == ["all"]
    for _ in range(2):
        driver.sweep(now_ms)
    assert not driver.engine.sweeps_awaited
