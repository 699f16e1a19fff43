"""When events fire: never early, in due order, in chunks, late ones through the backlog."""

from __future__ import annotations

import pytest

from belfry.store.layout.keys import BACKLOG_END, BACKLOG_PREFIX, TIMELINE_END, TIMELINE_PREFIX
from tests.unit.engine.driver import HOUR, T0, Driver


def waiting(*due: tuple[str, int]) -> Driver:
    """A partition where these ids wait, due at T0 + n, accepted in this order."""
    driver = Driver()
    for schedule_id, after_ms in due:
        driver.ask(schedule_id=schedule_id, at=T0 + after_ms)
    driver.step(T0)
    return driver


def backlog(driver: Driver) -> int:
    return len(list(driver.rows.scan(BACKLOG_PREFIX, BACKLOG_END)))


def test_nothing_fires_before_it_is_due() -> None:
    #  T0  4    5
    #      ·    a
    driver = waiting(("a", 5))
    assert driver.step(T0 + 4).ids == []
    assert driver.engine.next_due_ms() == T0 + 5
    assert driver.step(T0 + 5).ids == ["a"]
    assert driver.engine.next_due_ms() is None


def test_events_leave_in_due_order_and_ties_in_the_order_of_acceptance() -> None:
    #  T0   1   2     60 s   60 s + 1
    #       b   d c   e      a
    driver = waiting(("a", 60_001), ("b", 1), ("d", 2), ("c", 2), ("e", 60_000))
    assert driver.run(T0 + HOUR) == ["b", "d", "c", "e", "a"]


def test_a_replaced_schedule_goes_behind_the_ties_that_were_accepted_before() -> None:
    driver = waiting(("a", 5), ("b", 5))
    driver.ask(schedule_id="a", at=T0 + 5, payload=b"new")
    driver.step(T0)
    assert driver.run(T0 + 5) == ["b", "a"]


@pytest.mark.parametrize("at_most", [1, 2, 3, 4, 7])
def test_chunks_may_end_amid_one_due_instant(at_most: int) -> None:
    #  T0   1    2         3
    #       a    b c d e   f
    driver = waiting(("a", 1), ("b", 2), ("c", 2), ("d", 2), ("e", 2), ("f", 3))
    fired: list[str] = []
    while driver.engine.next_due_ms() is not None:
        step = driver.step(T0 + 5, at_most)
        assert len(step.ids) <= at_most
        fired += step.ids
    assert fired == list("abcdef")


def test_a_chunk_that_ended_amid_an_instant_goes_on_after_a_restart() -> None:
    driver = waiting(("a", 2), ("b", 2), ("c", 2))
    assert driver.step(T0 + 5, 2).ids == ["a", "b"]
    driver.start(driver.rows)
    assert driver.run(T0 + 5) == ["c"]


def test_requests_for_the_instant_that_is_being_fired_are_not_lost() -> None:
    #  T0   2
    #       a b │ c     d arrives for 2 when the chunk ended behind b
    driver = waiting(("a", 2), ("b", 2), ("c", 2))
    driver.ask(schedule_id="d", at=T0 + 2)
    assert driver.step(T0 + 5, 2).ids == ["a", "b"]
    assert driver.run(T0 + 5) == ["c", "d"]


def test_what_is_due_in_the_past_fires_at_once_in_due_order() -> None:
    #  -1 h   -5    T0
    #  c      b a   now
    driver = Driver()
    driver.step(T0)
    for schedule_id, before_ms in (("b", 5), ("a", 5), ("c", HOUR)):
        driver.ask(schedule_id=schedule_id, at=T0 - before_ms)
    driver.step(T0)
    assert backlog(driver) == 3
    assert driver.engine.next_due_ms() == T0
    assert driver.run(T0) == ["c", "b", "a"]
    assert backlog(driver) == 0
    assert driver.engine.next_due_ms() is None


def test_late_events_leave_before_newer_ones_of_their_tenant() -> None:
    #  T0    5          10     20
    #  W     late ×4    a      b
    driver = waiting(("a", 10), ("b", 20))
    driver.step(T0 + 8)
    for schedule_id in "wxyz":
        driver.ask(schedule_id=schedule_id, at=T0 + 5)
    driver.step(T0 + 8)
    assert driver.run(T0 + 30, at_most=2) == ["w", "x", "y", "z", "a", "b"]


def test_the_watermark_without_events_needs_no_transaction() -> None:
    driver = Driver()
    assert driver.step(T0).effects.empty
    driver.ask(at=T0 - 1)
    driver.step(T0)
    assert backlog(driver) == 1
    assert driver.engine.manifest.watermark_ms == T0


def test_a_late_event_can_be_cancelled_while_it_waits() -> None:
    driver = Driver()
    driver.step(T0)
    driver.ask(schedule_id="a", at=T0 - 1)
    driver.ask(schedule_id="b", at=T0 - 1)
    driver.ask(schedule_id="a", action="CANCEL")
    driver.step(T0, fire=False)
    assert driver.run(T0) == ["b"]
    assert driver.step(T0).effects.empty
    assert driver.engine.next_due_ms() is None


def test_a_cancelled_backlog_holds_nothing_up() -> None:
    driver = Driver()
    driver.step(T0)
    driver.ask(schedule_id="a", at=T0 - 1)
    driver.ask(schedule_id="a", action="CANCEL")
    driver.ask(schedule_id="b", at=T0 + 1)
    driver.step(T0, fire=False)
    assert driver.step(T0 + 1).ids == ["b"]


def test_no_tenant_waits_for_the_whole_backlog_of_another() -> None:
    #  backlog  t1: 6 events   t2, t3, t4: 1 each      two of a backlog leave per step
    driver = Driver()
    driver.step(T0)
    for number in range(6):
        driver.ask(tenant="t1", schedule_id=f"{number}", at=T0 - 9)
    for tenant in ("t2", "t3", "t4"):
        driver.ask(tenant=tenant, schedule_id=tenant, at=T0 - 1)
    driver.step(T0)
    first = [each for _ in range(3) for each in driver.step(T0, at_most=4).ids]
    assert {"t2", "t3", "t4"} <= set(first)


def test_many_tenants_with_long_backlogs_take_turns() -> None:
    driver = Driver()
    driver.step(T0)
    tenants = [f"t{number}" for number in range(5)]
    for number in range(20):
        for tenant in tenants:
            driver.ask(tenant=tenant, schedule_id=f"{tenant}/{number}", at=T0 - 1)
    driver.step(T0)
    fired = [each for _ in range(10) for each in driver.step(T0, at_most=2).ids]
    assert {each.partition("/")[0] for each in fired} == set(tenants)


def test_a_clock_that_goes_back_fires_nothing_again_and_nothing_early() -> None:
    #  T0       5        10
    #           now ◄─── W      b is sent for 8: behind the watermark, ahead of now
    driver = waiting(("a", 10))
    assert driver.step(T0 + 10).ids == ["a"]
    driver.ask(schedule_id="b", at=T0 + 8)
    assert driver.step(T0 + 5).ids == []
    assert driver.engine.manifest.watermark_ms == T0 + 10
    assert driver.step(T0 + 7).ids == []
    assert driver.engine.next_due_ms() == T0 + 10
    assert driver.step(T0 + 10).ids == ["b"]


def test_a_clock_that_goes_back_amid_one_instant_fires_nothing_early() -> None:
    #  T0   4        5
    #       now ◄─── a b │ c      a and b were moved aside, the watermark stays before 5
    driver = waiting(("a", 5), ("b", 5), ("c", 5))
    driver.tenants.hold("demo", "its topic is missing")
    driver.step(T0 + 5, at_most=2)
    driver.tenants.hold("demo", "")
    assert driver.step(T0 + 4).ids == []
    assert driver.run(T0 + 5) == ["a", "b", "c"]


def test_many_rows_leave_the_timeline_as_one_range() -> None:
    driver = Driver()
    for number in range(600):
        driver.ask(schedule_id=f"{number}", at=T0 + 1 + number % 3)
    driver.step(T0)
    assert len(driver.run(T0 + 9, at_most=500)) == 600
    assert list(driver.rows.scan(TIMELINE_PREFIX, TIMELINE_END)) == []


def test_a_new_event_within_a_range_that_is_cleared_stays() -> None:
    driver = Driver()
    for number in range(300):
        driver.ask(schedule_id=f"{number}", at=T0 + 1)
    driver.ask(schedule_id="later", at=T0 + 1)
    driver.step(T0)
    driver.ask(schedule_id="0", at=T0 + 1, payload=b"again")
    assert len(driver.step(T0 + 1, at_most=300).ids) == 300
    assert driver.run(T0 + 1) == ["later", "0"]
