"""Where many tenants have more due than a step fires, it fires several events of some of them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from belfry.engine.gathering import ENOUGH_EACH, MOST_EACH, WIDE
from belfry.store.schedules import RANGE_FROM
from tests.unit.engine.driver import HOUR, T0, Driver

TENANTS = 40
EACH = 6
STEP = 40


def in_turn(tenants: int = TENANTS, each: int = EACH, apart_ms: int = 0) -> Driver:
    """So many events of so many tenants wait, one of each tenant after the other.

    The first is due at T0 + 1 000, and each of them `apart_ms` after the one before.
    """
    driver = Driver()
    for number in range(tenants * each):
        tenant, due = f"t{number % tenants}", T0 + 1_000 + number * apart_ms
        driver.ask(tenant=tenant, schedule_id=f"{tenant}/{number // tenants}", at=due)
    driver.step(T0)
    return driver


def tenants_of(ids: list[str]) -> set[str]:
    return {each.partition("/")[0] for each in ids}


def assert_each_in_order(ids: list[str], tenants: int = TENANTS, each: int = EACH) -> None:
    """Each event fired once, those of a tenant in their order."""
    found = defaultdict(list)
    for one in ids:
        tenant, _, number = one.partition("/")
        found[tenant].append(int(number))
    assert found == {f"t{number}": list(range(each)) for number in range(tenants)}


@pytest.mark.parametrize("apart_ms", [0, 1], ids=["one instant", "one after the other"])
def test_a_step_has_several_events_of_few_tenants(apart_ms: int) -> None:
    driver = in_turn(apart_ms=apart_ms)
    steps = [driver.step(T0 + HOUR, STEP).ids for _ in range(TENANTS * EACH // STEP)]
    assert [len(ids) for ids in steps] == [STEP] * len(steps)
    assert len(tenants_of(steps[0])) <= STEP // EACH + 1
    assert max(len(tenants_of(ids)) for ids in steps) <= STEP // ENOUGH_EACH
    assert_each_in_order([one for ids in steps for one in ids])
    assert driver.engine.next_due_ms() is None


@pytest.mark.parametrize("at_most", [1, 2, 3, 7, 40, 64, 239])
def test_nothing_is_left_out_and_tenants_keep_their_order(at_most: int) -> None:
    driver = in_turn(apart_ms=1)
    first = driver.step(T0 + HOUR, at_most).ids
    assert len(first) == at_most
    assert_each_in_order(first + driver.run(T0 + HOUR, at_most))
    assert driver.engine.pending == 0


def test_few_tenants_fire_in_due_order() -> None:
    tenants = STEP // ENOUGH_EACH
    driver = in_turn(tenants, 3 * ENOUGH_EACH, apart_ms=1)
    ids = driver.step(T0 + HOUR, STEP).ids
    assert ids == [f"t{n % tenants}/{n // tenants}" for n in range(STEP)]


def test_a_step_with_room_for_all_fires_in_due_order() -> None:
    driver = in_turn(each=2, apart_ms=1)
    ids = driver.step(T0 + HOUR, 2 * TENANTS + 1).ids
    assert ids == [f"t{n % TENANTS}/{n // TENANTS}" for n in range(2 * TENANTS)]


@pytest.mark.parametrize("at_most", [5, 7])
def test_a_small_step_of_two_tenants_is_gathered(at_most: int) -> None:
    driver = in_turn(2, 20, apart_ms=1)
    assert driver.step(T0 + HOUR, at_most).ids == [f"t0/{n}" for n in range(at_most)]


@pytest.mark.parametrize(("topics", "at_most"), [(1, 3), (1, STEP), (STEP // ENOUGH_EACH, STEP)])
def test_tenants_that_share_few_topics_fire_in_due_order(topics: int, at_most: int) -> None:
    driver = Driver()
    for number in range(TENANTS):
        driver.apply(f"t{number}", output_topic=f"for.many.{number % topics}")
    for number in range(2 * TENANTS):
        tenant = f"t{number % TENANTS}"
        driver.ask(tenant=tenant, schedule_id=f"{tenant}/{number // TENANTS}", at=T0 + 1)
    driver.step(T0)
    assert driver.step(T0 + HOUR, at_most).ids == [f"t{n}/0" for n in range(at_most)]


def test_the_watermark_stays_before_what_is_left() -> None:
    driver = in_turn(apart_ms=1)
    ids = driver.step(T0 + HOUR, STEP).ids
    left = min(n for n in range(TENANTS * EACH) if f"t{n % TENANTS}/{n // TENANTS}" not in ids)
    assert driver.engine.manifest.watermark_ms == T0 + 1_000 + left - 1
    assert driver.engine.oldest_due_ms()["firing"] == T0 + 1_000 + left


@pytest.mark.parametrize("apart_ms", [0, 1], ids=["one instant", "one after the other"])
def test_a_new_owner_goes_on(apart_ms: int) -> None:
    driver = in_turn(apart_ms=apart_ms)
    ids = driver.step(T0 + HOUR, STEP).ids
    driver.start(driver.rows)
    assert_each_in_order(ids + driver.run(T0 + HOUR, STEP))


def test_a_step_that_is_rolled_back_is_the_same_again() -> None:
    driver = in_turn(apart_ms=1)
    before = driver.step(T0 + HOUR, STEP, commit=False).ids
    assert driver.step(T0 + HOUR, STEP).ids == before
    assert_each_in_order(before + driver.run(T0 + HOUR, STEP))


def test_no_tenant_takes_more_than_a_few_of_a_step() -> None:
    #  a crowd of one tenant and, between its events, one of each other
    driver = Driver()
    for number in range(TENANTS):
        driver.ask(tenant=f"t{number}", schedule_id=f"t{number}", at=T0 + 1)
        for more in range(2):
            driver.ask(tenant="crowd", schedule_id=f"crowd/{2 * number + more}", at=T0 + 1)
    driver.step(T0)
    ids = driver.step(T0 + HOUR, STEP).ids
    assert len(ids) == STEP
    assert sum(each.startswith("crowd") for each in ids) == MOST_EACH
    rest = driver.run(T0 + HOUR, STEP)
    crowd = [each for each in ids + rest if each.startswith("crowd")]
    assert crowd == [f"crowd/{n}" for n in range(2 * TENANTS)]


def test_what_is_due_first_is_not_passed_over() -> None:
    """The tenants of the first rows are in the next step, however many come due behind them."""
    driver = in_turn(tenants=WIDE * STEP, each=2, apart_ms=1)
    ids = driver.step(T0 + HOUR, STEP).ids
    assert ids[0] == "t0/0"
    for _ in range(4):
        first = driver.engine.manifest.watermark_ms + 1 - T0 - 1_000
        assert f"t{first}/0" == driver.step(T0 + HOUR, STEP).ids[0]


def test_a_cancel_counts_for_what_was_passed_over() -> None:
    driver = in_turn(apart_ms=1)
    ids = driver.step(T0 + HOUR, STEP).ids
    gone = [f"t{TENANTS - 1}/{n}" for n in range(EACH)]
    assert not set(gone) & set(ids)
    for one in gone:
        driver.ask(tenant=f"t{TENANTS - 1}", schedule_id=one, action="CANCEL")
    assert driver.step(T0 + HOUR, fire=False).outcomes == ["CANCELLED"] * EACH
    assert len(ids + driver.run(T0 + HOUR, STEP)) == (TENANTS - 1) * EACH


def test_what_comes_late_fires_though_the_scan_has_looked_beyond_it() -> None:
    driver = in_turn(apart_ms=1)
    ids = driver.step(T0 + HOUR, STEP).ids
    driver.ask(tenant="t0", schedule_id="t0/late", at=T0 + 1_000 + TENANTS * EACH // 2)
    driver.step(T0 + HOUR, fire=False)
    ids += driver.run(T0 + HOUR, STEP)
    assert ids.count("t0/late") == 1
    assert len(ids) == TENANTS * EACH + 1


def test_a_held_tenant_does_not_stop_the_others() -> None:
    driver = in_turn(apart_ms=1)
    driver.tenants.hold("t0", "its topic is missing")
    driver.tenants.hold("t7", "its topic is missing")
    ids = driver.run(T0 + HOUR, STEP)
    assert len(ids) == (TENANTS - 2) * EACH
    driver.tenants.hold("t0", "")
    driver.tenants.hold("t7", "")
    assert_each_in_order(ids + driver.run(T0 + HOUR, STEP))


def test_a_step_that_is_full_by_bytes_leaves_the_rest_in_the_timeline() -> None:
    driver = Driver()
    driver.options = driver.options._replace(step_bytes=8_000)
    driver.start(driver.rows)
    for number in range(2 * TENANTS):
        tenant = f"t{number % TENANTS}"
        schedule_id = f"{tenant}/{number // TENANTS}"
        driver.ask(tenant=tenant, schedule_id=schedule_id, at=T0 + 1, payload=bytes(1_000))
    while driver.engine.pending < 2 * TENANTS:
        driver.step(T0)
    first = driver.step(T0 + HOUR, STEP).ids
    assert 6 <= len(first) <= 9
    assert len(tenants_of(first)) <= len(first) // 2 + 1
    assert_each_in_order(first + driver.run(T0 + HOUR, STEP), each=2)


def test_a_run_that_is_cut_by_bytes_leaves_its_rest_in_the_timeline() -> None:
    driver = Driver()
    for number in range(2 * TENANTS):
        tenant = f"t{number % TENANTS}"
        driver.ask(tenant=tenant, schedule_id=f"{number}", at=T0 + 1, payload=bytes(1_000))
    driver.step(T0)
    driver.engine._step.effects.room = 2_500
    assert driver.step(T0 + HOUR, STEP).ids == ["0", f"{TENANTS}", "1"]
    assert not driver.engine._parts.waiting.backlog


def test_what_backlogs_have_fired_is_room_that_gathering_lacks_once() -> None:
    driver = in_turn(apart_ms=1)
    for number in range(4):
        driver.ask(tenant="z", schedule_id=f"z/{number}", at=T0 - 1)
    driver.step(T0, fire=False)
    ids = driver.step(T0 + HOUR, STEP).ids
    assert ids[:4] == [f"z/{number}" for number in range(4)]
    assert len(ids) == STEP


def test_order_holds_where_groups_recur_amid_the_crowd() -> None:
    driver = Driver()
    for tenant in range(TENANTS):
        fields: dict[str, Any] = {"tenant": f"t{tenant}", "group": "g"}
        driver.ask(
            **fields, schedule_id="r", kind="EVERY", interval_ms=100, start_at=T0 + 100, max_fires=4
        )
        for number in range(4):
            driver.ask(**fields, schedule_id=f"s{number}", at=T0 + 150 + 100 * number)
    driver.step(T0)
    found = defaultdict(list)
    while driver.engine.pending:
        step = driver.step(T0 + 600, STEP)
        for shot in step.shots:
            found[shot.topic].append(shot.id)
    expected = ["r", "s0", "r", "s1", "r", "s2", "r", "s3"]
    assert list(found.values()) == [expected] * TENANTS


def test_a_tenant_with_priorities_is_sorted_before_others_are_gathered() -> None:
    driver = Driver()
    driver.ask(tenant="t0", schedule_id="t0/seen", at=T0 + 1, priority=1)
    driver.step(T0)
    assert driver.run(T0 + 1) == ["t0/seen"]
    driver.ask(tenant="t0", schedule_id="t0/low", at=T0 + 1_000)
    driver.ask(tenant="t0", schedule_id="t0/urgent", at=T0 + 1_030, priority=5)
    for number in range(TENANTS * EACH):
        due = T0 + 1_001 + number
        driver.ask(tenant=f"t{1 + number % TENANTS}", schedule_id=f"{number}", at=due)
    driver.step(T0 + 1)
    ids = driver.run(T0 + HOUR, STEP)
    assert ids.index("t0/urgent") < ids.index("t0/low")


def test_rows_that_fire_nothing_take_room_as_well() -> None:
    """All came too late, so a step tells of as many as it has room for, and not of all it sees."""
    driver = Driver()
    for number in range(TENANTS * EACH):
        late: dict[str, Any] = {"misfire": "SKIP", "max_lateness_ms": 0}
        due = T0 + 1_000 + number
        driver.ask(tenant=f"t{number % TENANTS}", schedule_id=f"{number}", at=due, **late)
    driver.step(T0)
    steps = [driver.step(T0 + 24 * HOUR, STEP) for _ in range(EACH)]
    assert [step.outcomes for step in steps] == [["MISSED"] * STEP] * EACH
    assert driver.engine.pending == 0


def test_a_step_holds_back_as_many_as_it_may_fire() -> None:
    driver = in_turn(apart_ms=1)
    for number in range(TENANTS - 10):
        driver.tenants.hold(f"t{number}", "its topic is missing")
    waiting = driver.engine._parts.waiting
    before, fired = 0, list[str]()
    for _ in range(30):
        fired += driver.step(T0 + HOUR, STEP).ids
        held = sum(waiting.backlog.values())
        assert held - before <= STEP
        before = held
    assert (len(fired), before) == (10 * EACH, (TENANTS - 10) * EACH)
    for number in range(TENANTS - 10):
        driver.tenants.hold(f"t{number}", "")
    assert_each_in_order(fired + driver.run(T0 + HOUR, STEP))


@pytest.mark.parametrize("at_most", [STEP, STEP - 1])
def test_a_step_that_fires_nothing_holds_back_just_as_many_as_it_might_fire(at_most: int) -> None:
    driver = in_turn(apart_ms=1)
    for number in range(TENANTS):
        driver.tenants.hold(f"t{number}", "its topic is missing")
    assert driver.step(T0 + HOUR, at_most).ids == []
    assert sum(driver.engine._parts.waiting.backlog.values()) == at_most


def test_many_rows_that_leave_take_none_along_that_lies_between_them() -> None:
    """A store drops many rows that follow one another as one range; these do not."""
    tenants, each = 300, 3
    driver = in_turn(tenants, each, apart_ms=1)
    first = driver.step(T0 + HOUR, RANGE_FROM + 44).ids
    assert RANGE_FROM < len(first) == 300
    assert_each_in_order(first + driver.run(T0 + HOUR, RANGE_FROM + 44), tenants, each)
