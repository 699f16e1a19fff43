"""A rolled-back step is forgotten at its own cost, however much waits in the partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy

import pytest

from belfry.engine.undo import Tracked, TrackedOrder, UndoLog
from belfry.store.ordered_map import MemoryMap
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from tests.unit.engine.acknowledging import ack, fire_id, fires, serial
from tests.unit.engine.driver import HOUR, T0, Driver

MANY = 3_000


class CountingMap(MemoryMap):
    """Counts the rows that are read one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.scanned = 0

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        for row in super().scan(start, end):
            self.scanned += 1
            yield row


def crowded() -> tuple[Driver, CountingMap]:
    """Thousands wait: of a tenant apart, of one that is held, and behind a gate."""
    driver, rows = Driver(), CountingMap()
    driver.start(rows)
    driver.tenants.follow(EffectivePolicy(TenantPolicy("far", priority=-1)))
    serial(driver, "first", T0)
    for number in range(MANY):
        driver.ask(tenant="far", schedule_id=f"f{number}", at=T0 + HOUR)
        driver.ask(tenant="bad", schedule_id=f"b{number}", at=T0 + 1)
        driver.ask(schedule_id=f"g{number}", at=T0 + 1, group="g")
    driver.step(T0)
    driver.tenants.hold("bad", "its topic is missing")
    fires(driver, T0 + 5, at_most=20_000)
    return driver, rows


def test_a_roll_back_reads_no_backlog() -> None:
    driver, rows = crowded()
    driver.ask(tenant="shop", schedule_id="s", at=T0 + 8)
    driver.ask(tenant="far", schedule_id="late", at=T0 + 1)
    driver.step(T0 + 6)
    for _ in range(3):
        driver.engine.fire_due(T0 + 10, 100)
        driver.engine.seal(owner_epoch=1)
        rows.scanned = 0
        driver.engine.aborted()
        assert rows.scanned <= 2
    assert sorted(driver.run(T0 + 10)) == ["late", "s"]


def test_a_gate_that_was_opened_in_a_rolled_back_step_is_closed_again() -> None:
    driver = Driver()
    serial(driver, "a", T0)
    serial(driver, "b", T0 + 1)
    driver.step(T0)
    (first,) = fires(driver, T0 + 5)
    driver.ask(action="ACK", schedule_id="a", fire_id=fire_id(first))
    driver.step(T0 + 6, commit=False)
    assert fires(driver, T0 + 7) == []
    driver.step(T0 + 7)
    assert [shot.id for shot in fires(driver, T0 + 7)] == ["b"]


def test_a_gate_that_was_closed_in_a_rolled_back_step_is_open_again() -> None:
    driver = Driver()
    serial(driver, "a", T0)
    driver.step(T0 - 1)
    assert driver.step(T0, take=0, commit=False).ids == ["a"]
    assert not driver.engine._parts.waiting.locks.tenants
    (again,) = driver.step(T0, take=0).shots
    assert ack(driver, again, T0 + 1).outcomes == ["UPDATED"]


def test_what_was_changed_goes_back_to_its_last_commit() -> None:
    undo = UndoLog()
    counts = Tracked(undo, {"a": 1, "b": 2})
    counts["a"] += 1
    counts["a"] += 1
    counts["c"] = 5
    del counts["b"]
    counts["b"] = 7
    counts["d"] = 1
    del counts["d"]
    undo.roll_back()
    assert counts == {"a": 1, "b": 2}
    counts["a"] = 9
    del counts["b"]
    undo.forget()
    counts["b"] = 3
    undo.roll_back()
    assert counts == {"a": 9}


def test_what_is_emptied_at_each_end_is_that_of_the_copy_in_a_copy() -> None:
    undo, joined = UndoLog(), {"a": 1}
    undo.scratch(dict.clear, joined)
    copy, its_own = deepcopy((undo, joined))
    copy.forget()
    assert (joined, its_own) == ({"a": 1}, {})
    with pytest.raises(AssertionError, match="belongs to the original"):
        undo.scratch(joined.clear)


def test_it_is_not_changed_behind_its_own_back() -> None:
    undo = UndoLog()
    counts = Tracked(undo, {"a": 1})
    changes: list[Callable[[], object]] = [
        counts.clear,
        counts.popitem,
        lambda: counts.pop("a"),
        lambda: counts.setdefault("b", 1),
        lambda: counts.update(b=2),
    ]
    for change in changes:
        with pytest.raises(AssertionError):
            change()
    with pytest.raises(KeyError):
        del counts["b"]
    undo.roll_back()
    assert counts == {"a": 1}


def test_a_copy_goes_its_own_way() -> None:
    undo = UndoLog()
    counts, scratch = TrackedOrder(undo, {"a": 1}), {"b": 2}
    undo.scratch(dict.clear, scratch)
    other, there, own = deepcopy((undo, scratch, counts))
    own["c"] = 3
    other.roll_back()
    assert (own, there, counts, scratch) == ({"a": 1}, {}, {"a": 1}, {"b": 2})
    counts["d"] = 4
    other.roll_back()
    assert counts == {"a": 1, "d": 4}


class Participant:
    """Keeps something of a step, and something for the step alone."""

    def __init__(self, undo: UndoLog) -> None:
        self.cursor = 1
        self.scratch = ["nothing"]
        undo.scratch(list.clear, self.scratch)


def test_an_attribute_goes_back_to_what_it_was_when_the_step_began() -> None:
    undo = UndoLog()
    one = Participant(undo)
    for cursor in (5, 9):
        undo.attribute(one, "cursor")
        one.cursor = cursor
    undo.roll_back()
    assert one.cursor == 1
    undo.attribute(one, "cursor")
    one.cursor = 7
    undo.forget()
    undo.roll_back()
    assert one.cursor == 7


def test_what_holds_for_a_step_alone_is_forgotten_at_each_end() -> None:
    undo = UndoLog()
    one = Participant(undo)
    undo.forget()
    assert one.scratch == []
    one.scratch.append("more")
    undo.roll_back()
    assert one.scratch == []


def test_a_roll_back_leaves_the_order_of_turns() -> None:
    driver = Driver()
    for tenant, count in (("a", 1), ("b", 5), ("c", 5)):
        for each in range(count):
            driver.ask(tenant=tenant, schedule_id=f"{tenant}{each}", at=T0 - 1)
    driver.step(T0)
    # The last event of `a` fires and comes back, and `a` is not the last in turn for it.
    first = driver.step(T0 + 1, at_most=3, commit=False).ids
    assert first == ["a0", "b0", "c0"]
    assert driver.step(T0 + 1, at_most=3).ids == first


def test_a_roll_back_leaves_the_order_in_which_locks_let_go() -> None:
    driver = Driver()
    for tenant in ("a", "b"):
        for each in range(3):
            serial(driver, f"{tenant}{each}", T0 + each, tenant=tenant)
    driver.step(T0 - 1)
    for shot in fires(driver, T0 + 5):
        driver.ask(action="ACK", tenant=shot.id[0], schedule_id=shot.id, fire_id=fire_id(shot))
    driver.step(T0 + 6, fire=False)
    locks = driver.engine._parts.waiting.locks.releasing
    assert [lock.tenant for lock in locks] == [b"a", b"b"]
    # The lock of `a` is closed anew by a fire that comes back, and is not the last in turn for it.
    assert driver.step(T0 + 7, at_most=1, take=0, commit=False).ids == ["a1"]
    assert [lock.tenant for lock in locks] == [b"a", b"b"]


def test_a_look_at_nothing_is_forgotten_with_the_step() -> None:
    driver = Driver()
    driver.step(T0, fire=False)
    driver.ask(at=T0 + 10)
    driver.step(T0, fire=False)
    driver.engine.fire_due(T0 + 5, 100)
    driver.ask(schedule_id="b", at=T0 + 10)
    driver.step(T0 + 5, fire=False, commit=False)
    assert driver.engine.unsaid == driver.counted[0]


def test_a_new_owner_lets_locks_go_in_the_order_of_their_names() -> None:
    """The order of turns follows from it, and a set of bytes has another one in each process."""
    driver = Driver()
    tenants = [f"t{each:02}" for each in range(20)]
    for tenant in reversed(tenants):
        for each in range(3):
            serial(driver, f"{tenant}-{each}", T0 + each, tenant=tenant)
    driver.step(T0 - 1)
    for shot in fires(driver, T0 + 5):
        name = shot.id.partition("-")[0]
        driver.ask(action="ACK", tenant=name, schedule_id=shot.id, fire_id=fire_id(shot))
    driver.step(T0 + 6, fire=False)
    locks = driver.start(driver.rows)._parts.waiting.locks.releasing
    assert [lock.tenant.decode() for lock in locks] == tenants
