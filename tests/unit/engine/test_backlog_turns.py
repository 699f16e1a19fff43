"""What a step takes from backlogs and the timeline: no more than it may, and all that it may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from belfry.engine import firing
from tests.unit.engine.acknowledging import WAIT, ack, fires, serial
from tests.unit.engine.driver import HOUR, T0, Driver

LONG = bytes(500)


def backlogs(driver: Driver) -> int:
    """How many wait in backlogs."""
    return sum(driver.engine._parts.waiting.backlog.values())


def held(*tenants: str, each: int) -> Driver:
    """So many events of each tenant wait in its backlog."""
    driver = Driver()
    driver.step(T0)
    for number in range(each):
        for tenant in tenants:
            driver.ask(tenant=tenant, schedule_id=f"{tenant}/{number}", at=T0 - 1)
    driver.step(T0)
    assert backlogs(driver) == each * len(tenants)
    return driver


@pytest.mark.parametrize("at_most", [1, 2, 3, 4, 7, 10, 19])
def test_backlogs_together_fire_no_more_than_a_step_may(at_most: int) -> None:
    driver = held(*"abcde", each=4)
    assert len(driver.step(T0, at_most).ids) == at_most
    fired = at_most
    while driver.engine.pending:
        ids = driver.step(T0, at_most).ids
        assert 0 < len(ids) <= at_most
        fired += len(ids)
    assert fired == 20


def test_tenants_share_a_step_and_what_one_leaves_goes_on() -> None:
    driver = held("a", "b", "c", each=2)
    for number in range(9):
        driver.ask(tenant="d", schedule_id=f"d/{number}", at=T0 - 1)
    driver.step(T0, fire=False)
    ids = driver.step(T0, 12).ids
    assert Counter(each[0] for each in ids) == {"a": 2, "b": 2, "c": 2, "d": 6}


def test_backlogs_leave_the_timeline_its_half_of_a_step_and_no_more() -> None:
    driver = Driver()
    for number in range(6):
        driver.ask(tenant="b", schedule_id=f"b/{number}", at=T0 + 1)
    driver.step(T0)
    for number in range(6):
        driver.ask(tenant="a", schedule_id=f"a/{number}", at=T0 - 1)
    driver.step(T0, fire=False)
    assert driver.step(T0 + 1, 4).ids == ["a/0", "a/1", "b/0", "b/1"]


def test_a_share_is_of_all_levels_together() -> None:
    driver = Driver()
    driver.step(T0)
    for name, priority, number in (("low", 1, 5), ("urgent", 5, 3)):
        for each in range(number):
            driver.ask(schedule_id=f"{name}{each}", at=T0 - 1, priority=priority)
    driver.step(T0)
    assert driver.step(T0, 4).ids == ["urgent0", "urgent1", "urgent2", "low0"]
    assert driver.step(T0, 4).ids == ["low1", "low2", "low3", "low4"]


def recurring_in_a_group(payload: bytes = b"") -> Driver:
    """Nine occurrences, each 100 ms after the one before, of which the first waits in a backlog."""
    driver = Driver()
    every: dict[str, Any] = {"kind": "EVERY", "interval_ms": 100, "start_at": T0 + 100}
    driver.ask(group="g", max_fires=9, payload=payload, **every)
    driver.step(T0)
    driver.tenants.hold("demo", "its topic is missing")
    driver.step(T0 + 100)
    assert backlogs(driver) == 1
    driver.tenants.hold("demo", "")
    return driver


@pytest.mark.parametrize("at_most", [1, 2, 3, 8])
def test_what_comes_again_amid_a_turn_counts_for_its_share(at_most: int) -> None:
    driver = recurring_in_a_group()
    fired = []
    while driver.engine.pending:
        fired.append(len(driver.step(T0 + HOUR // 100, at_most).ids))
    assert sum(fired) == 9
    assert set(fired[:-1]) == {at_most}


def test_what_comes_again_amid_a_turn_fills_the_step_with_its_bytes() -> None:
    driver = recurring_in_a_group(LONG)
    # Its row has room in it, and the second event does not.
    driver.engine._step.effects.room = len(LONG) + 200
    assert len(driver.step(T0 + 1_000).ids) < 4


def test_what_comes_again_amid_a_turn_fires_up_to_now_and_not_beyond() -> None:
    driver = recurring_in_a_group()
    assert len(driver.step(T0 + 400, take=0).ids) == 4
    assert driver.step(T0 + 499).ids == []
    assert driver.engine.next_due_ms() == T0 + 500
    assert len(driver.step(T0 + 500).ids) == 1


def test_what_comes_again_lets_rows_of_the_timeline_pass_that_are_due_before_it() -> None:
    #  T0 +   100   120 … 170   200   300
    #         r     s0 … s5     r     r        a step has room for two of them
    driver = Driver()
    driver.ask(
        schedule_id="r", kind="EVERY", interval_ms=100, start_at=T0 + 100, max_fires=3, group="g"
    )
    for number in range(6):
        driver.ask(schedule_id=f"s{number}", at=T0 + 120 + 10 * number, group="g")
    driver.step(T0)
    assert driver.run(T0 + 1_000, 2) == ["r", *(f"s{n}" for n in range(6)), "r", "r"]


def test_a_run_of_late_ones_waits_behind_a_lock_where_its_last_one_is_due() -> None:
    #  T0 +   1 min … 17    17.5       17.8    18         19   20 min, the first step since
    #         r missed      s1 locks   n       r for all   r    r
    driver = Driver()
    minute = HOUR // 60
    driver.ask(schedule_id="r", kind="EVERY", interval_ms=minute, start_at=T0 + minute, group="g")
    serial(driver, "s1", T0 + 35 * minute // 2)
    driver.ask(schedule_id="n", at=T0 + 89 * minute // 5, group="g")
    driver.step(T0)
    (shot,) = fires(driver, T0 + 20 * minute)
    assert shot.id == "s1"
    ack(driver, shot, T0 + 20 * minute)
    assert driver.run(T0 + 20 * minute) == ["n", "r", "r", "r"]


# -- the timeline --------------------------------------------------------------------------------


def sorted_tenant() -> Driver:
    """A tenant `s` that has used priorities, so a step sorts what is due of it before it fires."""
    driver = Driver()
    driver.ask(tenant="s", schedule_id="seen", at=T0, priority=1)
    driver.step(T0 - 1)
    assert driver.run(T0) == ["seen"]
    return driver


def test_a_step_with_room_for_all_sorts_nothing() -> None:
    driver = sorted_tenant()
    for number in range(5):
        driver.ask(tenant="s", schedule_id=f"{number}", at=T0 + 1_000 + number, priority=number)
    driver.step(T0 + 1)
    assert driver.step(T0 + HOUR, 10).ids == [f"{number}" for number in range(5)]


@pytest.mark.parametrize("at_most", [1, 10])
def test_a_step_moves_at_most_twice_as_many_as_it_may_fire(at_most: int) -> None:
    driver = sorted_tenant()
    for number in range(100):
        driver.ask(tenant="s", schedule_id=f"{number}", at=T0 + 1_000 + number)
    driver.step(T0 + 1)
    assert driver.step(T0 + HOUR, at_most).ids == []
    assert backlogs(driver) == firing.MOST_MOVED * at_most


def test_the_scan_goes_on_behind_what_it_moves_until_the_step_is_full() -> None:
    driver = sorted_tenant()
    for number in range(40):
        tenant = "ps"[number % 2]
        driver.ask(tenant=tenant, schedule_id=f"{tenant}{number}", at=T0 + 1_000 + number)
    driver.step(T0 + 1)
    assert driver.step(T0 + HOUR, 10).ids == [f"p{number}" for number in range(0, 20, 2)]
    assert backlogs(driver) == 9


@pytest.mark.parametrize(("policy", "at_once"), [({}, 12), ({"max_fires_per_second": 1e3}, 5)])
def test_where_an_isolated_tenant_waits_a_step_is_short(
    monkeypatch: pytest.MonkeyPatch, policy: dict[str, Any], at_once: int
) -> None:
    monkeypatch.setattr(firing, "SHORT_STEP", 5)
    driver = Driver()
    driver.apply("slow", **policy)
    driver.ask(tenant="slow", schedule_id="s", at=T0 + HOUR)
    for number in range(20):
        driver.ask(schedule_id=f"{number}", at=T0 + 1)
    driver.step(T0)
    assert driver.step(T0 + 1, 12).ids == [f"{number}" for number in range(at_once)]


@pytest.mark.parametrize("from_backlog", [False, True])
def test_a_step_that_only_puts_a_row_behind_a_lock_is_committed(from_backlog: bool) -> None:
    driver = Driver()
    serial(driver, "s1", T0 + 1)
    driver.ask(schedule_id="n2", at=T0 + 2, group="g")
    driver.step(T0)
    assert driver.step(T0 + 1).ids == ["s1"]
    if from_backlog:
        driver.tenants.hold("demo", "its topic is missing")
        driver.step(T0 + 2)
        driver.tenants.hold("demo", "")
    step = driver.step(T0 + 2)
    assert step.ids == []
    assert not step.effects.empty
    assert backlogs(driver) == 0
    assert driver.engine.next_due_ms() == T0 + 1 + WAIT


# -- the room of a step, in bytes ----------------------------------------------------------------


def in_timeline(driver: Driver) -> int:
    """Events of one tenant that are due."""
    for number in range(9):
        driver.ask(schedule_id=f"{number}", at=T0 + 1, payload=LONG)
    driver.step(T0)
    return T0 + 1


def in_backlog(driver: Driver) -> int:
    """Events of one tenant that came too late for the timeline."""
    driver.step(T0 + 1)
    for number in range(9):
        driver.ask(schedule_id=f"{number}", at=T0 + 1, payload=LONG)
    driver.step(T0 + 1)
    return T0 + 1


def in_backlogs(driver: Driver) -> int:
    """One event each of several tenants that came too late for the timeline."""
    driver.step(T0 + 1)
    for number in range(9):
        driver.ask(tenant=f"t{number}", schedule_id=f"{number}", at=T0 + 1, payload=LONG)
    driver.step(T0 + 1)
    return T0 + 1


def in_levels(driver: Driver) -> int:
    """Events of one tenant, each of another priority, that came too late for the timeline."""
    driver.step(T0 + 1)
    for number in range(9):
        driver.ask(schedule_id=f"{number}", at=T0 + 1, payload=LONG, priority=9 - number)
    driver.step(T0 + 1)
    return T0 + 1


def of_many_tenants(driver: Driver) -> int:
    """So many tenants that a step gathers."""
    for number in range(40):
        driver.ask(tenant=f"t{number + 10}", schedule_id=f"{number + 10}", at=T0 + 1, payload=LONG)
    driver.step(T0)
    return T0 + 1


def in_catch_up(driver: Driver) -> int:
    """Occurrences that were missed."""
    every: dict[str, Any] = {"kind": "EVERY", "interval_ms": 1_000, "misfire": "FIRE_ALL"}
    driver.ask(payload=LONG, **every)
    driver.step(T0)
    driver.step(T0 + HOUR, take=0)
    return T0 + HOUR + 1_000


# Of one tenant, a step reads no more rows than their own bytes leave room for.
ONE_QUEUE = (in_timeline, in_backlog, in_levels)
SEVERAL = (in_backlogs, of_many_tenants, in_catch_up)
FULL = [(wait, spare, 2) for wait in ONE_QUEUE + SEVERAL for spare in (-1, 0)]


@pytest.mark.parametrize(("wait", "spare", "fit"), [*FULL, *((wait, 1, 3) for wait in SEVERAL)])
def test_a_step_is_full_when_its_last_byte_is_used(
    wait: Callable[[Driver], int], spare: int, fit: int
) -> None:
    driver = Driver()
    now_ms = wait(driver)
    given = driver.engine._step.effects.room
    step = driver.step(now_ms, 10, take=0, commit=False)
    size = (given - step.effects.room) // len(step.ids)
    driver.engine._step.effects.room = 2 * size + spare
    assert len(driver.step(now_ms, 10, take=0).ids) == fit


def test_where_bytes_are_short_no_lower_level_passes_an_urgent_one() -> None:
    driver = Driver()
    driver.step(T0)
    for number in range(3):
        driver.ask(schedule_id=f"urgent{number}", at=T0 - 1, payload=LONG, priority=5)
        driver.ask(schedule_id=f"low{number}", at=T0 - 1, payload=b"x", priority=1)
    driver.step(T0)
    driver.engine._step.effects.room = len(LONG) + 1
    assert driver.step(T0).ids == ["urgent0"]
    assert driver.step(T0).ids == ["urgent1", "urgent2", "low0", "low1", "low2"]
