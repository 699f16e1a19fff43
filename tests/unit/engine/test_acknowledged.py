"""Serial groups: the next event leaves when the last one was acknowledged.

T0 +      0     10    20    30          30 s is the time-out of these tests
serial    ●a    b     c                 b and c are due, and wait
ACK a                       ●b          c waits for b
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from belfry.schedules.outcomes import Outcome
from belfry.tenants.effective import Level
from tests.unit.engine.acknowledging import WAIT, ack, fire_id, fires, ids, rebuilt, serial
from tests.unit.engine.driver import T0, Driver, Shot, Watched

# -- serial groups -------------------------------------------------------------------------------


def test_the_next_of_a_serial_group_leaves_when_the_last_was_acknowledged() -> None:
    driver = Driver()
    for number, name in enumerate("abc"):
        serial(driver, name, T0 + number)
    driver.step(T0 - 1)
    (first,) = fires(driver, T0 + 10)
    assert first.id == "a"
    assert fires(driver, T0 + 10_000) == []
    assert ack(driver, first, T0 + 20).outcomes == ["UPDATED"]
    (second,) = fires(driver, T0 + 20)
    assert second.id == "b"
    assert ack(driver, second, T0 + 20).outcomes == ["UPDATED"]
    assert ids(fires(driver, T0 + 20)) == ["c"]
    assert driver.engine.pending == 0


def test_events_of_the_group_that_are_not_serial_wait_and_close_nothing() -> None:
    driver = Driver()
    serial(driver, "a", T0)
    for number in range(500):
        driver.ask(schedule_id=f"n{number:03}", at=T0 + 1 + number // 2, group="g")
    serial(driver, "z", T0 + 200)
    driver.step(T0 - 1)
    (first,) = fires(driver, T0 + 1_000, at_most=40)
    ack(driver, first, T0 + 1_000)
    left = ids(fires(driver, T0 + 1_000, at_most=40))
    # Those that are due before the serial one, and it; the others wait for it.
    assert left == [*(f"n{number:03}" for number in range(400)), "z"]


def test_other_groups_other_tenants_and_those_without_a_group_do_not_wait() -> None:
    driver = Driver()
    serial(driver, "a", T0)
    driver.ask(schedule_id="none", at=T0 + 1)
    driver.ask(schedule_id="other", at=T0 + 1, group="other")
    driver.ask(tenant="other", schedule_id="far", at=T0 + 1, group="g")
    driver.ask(schedule_id="same", at=T0 + 1, group="g")
    driver.step(T0 - 1)
    assert sorted(ids(fires(driver, T0 + 5))) == ["a", "far", "none", "other"]


def test_a_plain_event_behind_a_serial_one_of_the_same_chunk_waits() -> None:
    driver = Driver(Level.FAILURES)
    driver.ask(schedule_id="plain first", at=T0, group="g")
    serial(driver, "serial", T0 + 1)
    driver.ask(schedule_id="plain last", at=T0 + 2, group="g")
    driver.step(T0 - 1)
    assert ids(fires(driver, T0 + 5)) == ["plain first", "serial"]


def test_what_is_asked_for_late_keeps_its_place_in_the_group() -> None:
    driver = Driver()
    serial(driver, "a", T0)
    serial(driver, "c", T0 + 20)
    driver.step(T0 - 1)
    (first,) = fires(driver, T0 + 100)
    serial(driver, "b", T0 + 10)
    driver.step(T0 + 100)
    ack(driver, first, T0 + 100)
    (second,) = fires(driver, T0 + 100)
    assert second.id == "b"


def test_after_the_time_out_the_group_goes_on_and_the_fire_has_failed() -> None:
    driver = Driver()
    serial(driver, "a", T0)
    serial(driver, "b", T0 + 1)
    driver.step(T0 - 1)
    (first,) = fires(driver, T0 + 5)
    assert driver.engine.next_due_ms() == T0 + 5 + WAIT
    step = driver.step(T0 + 5 + WAIT)
    (told,) = [each for each in step.effects.lifecycle if each.outcome == "FAILED"]
    assert (told.schedule_id, told.fire_id, told.code) == ("a", fire_id(first), "ack_timeout")
    assert step.effects.outcomes[Outcome.FAILED] == 1
    (second,) = fires(driver, T0 + 5 + WAIT)
    assert second.id == "b"
    assert ack(driver, first, T0 + 5 + WAIT).outcomes == ["UNCHANGED"]
    assert fires(driver, T0 + 6 + WAIT) == []


def test_a_time_out_comes_where_nobody_waits() -> None:
    driver = Driver()
    serial(driver, "a", T0)
    driver.step(T0 - 1)
    fires(driver, T0)
    assert driver.engine.next_due_ms() == T0 + WAIT
    assert driver.step(T0 + WAIT).effects.outcomes == {"FAILED": 1}
    assert driver.engine.next_due_ms() is None


def test_without_a_time_out_of_its_own_it_is_five_minutes() -> None:
    driver = Driver()
    serial(driver, "a", T0, ack_timeout_ms=None)
    driver.step(T0 - 1)
    fires(driver, T0)
    assert driver.engine.next_due_ms() == T0 + 300_000


@pytest.mark.parametrize("again", ["rebuilt", "started"])
def test_the_next_owner_knows_what_is_awaited(again: str) -> None:
    driver = Driver()
    for number, name in enumerate("abc"):
        serial(driver, name, T0 + number)
    driver.step(T0 - 1)
    (first,) = fires(driver, T0 + 10)
    for expected in "bc":
        if again == "rebuilt":
            rebuilt(driver, T0 + 10)
        else:
            driver.start(driver.rows)
        assert fires(driver, T0 + 10) == []
        ack(driver, first, T0 + 10)
        (first,) = fires(driver, T0 + 10)
        assert first.id == expected


def test_a_new_owner_does_not_read_all_that_is_held() -> None:
    driver = Driver()
    for number in range(300):
        serial(driver, f"a{number}", T0 + number)
    driver.step(T0 - 1)
    assert ids(fires(driver, T0 + 300)) == ["a0"]
    rows = Watched(driver.rows)
    driver.start(rows)
    assert 0 < rows.read < 50
    fires(driver, T0 + 300 + WAIT)
    assert driver.engine.pending == 298


def test_a_rollback_forgets_neither_what_waits_nor_what_is_awaited() -> None:
    driver = Driver()
    for number, name in enumerate("ab"):
        serial(driver, name, T0 + number)
    driver.step(T0 - 1)
    assert driver.step(T0 + 5, take=0, commit=False).ids == ["a"]
    (first,) = fires(driver, T0 + 5)
    driver.ask(action="ACK", schedule_id="a", fire_id=fire_id(first))
    assert driver.step(T0 + 5, commit=False).outcomes == ["UPDATED"]
    assert driver.step(T0 + 5).outcomes == ["UPDATED"]
    assert driver.step(T0 + 5, commit=False).ids == ["b"]
    assert ids(fires(driver, T0 + 5)) == ["b"]


def test_what_waits_can_be_cancelled_paused_and_changed() -> None:
    driver = Driver()
    for number, name in enumerate("abcd"):
        serial(driver, name, T0 + number)
    driver.step(T0 - 1)
    (first,) = fires(driver, T0 + 10)
    driver.ask(schedule_id="b", action="CANCEL")
    driver.ask(schedule_id="c", action="PAUSE")
    serial(driver, "d", T0 + 3, payload=b"changed")
    assert driver.step(T0 + 10).outcomes == ["CANCELLED", "PAUSED", "UPDATED"]
    assert fires(driver, T0 + 10) == []
    ack(driver, first, T0 + 10)
    (second,) = fires(driver, T0 + 10)
    assert (second.id, second.value) == ("d", b"changed")
    driver.ask(schedule_id="c", action="RESUME")
    driver.step(T0 + 10)
    assert fires(driver, T0 + 10) == []
    ack(driver, second, T0 + 10)
    assert ids(fires(driver, T0 + 10)) == ["c"]


@pytest.mark.parametrize("cancelled", ["before", "after"])
def test_who_is_next_may_be_cancelled_at_the_last_moment(cancelled: str) -> None:
    driver = Driver()
    for number, name in enumerate("abc"):
        serial(driver, name, T0 + number)
    driver.step(T0 - 1)
    (first,) = fires(driver, T0 + 10)
    if cancelled == "before":
        driver.ask(schedule_id="b", action="CANCEL")
    driver.ask(action="ACK", schedule_id="a", fire_id=fire_id(first))
    if cancelled == "after":
        driver.ask(schedule_id="b", action="CANCEL")
    driver.step(T0 + 10)
    assert ids(fires(driver, T0 + 10)) == ["c"]


def test_a_cancelled_schedule_can_still_be_acknowledged() -> None:
    driver = Driver()
    driver.ask(schedule_id="a", kind="EVERY", interval_ms=1_000, group="g", serial=True)
    serial(driver, "b", T0 + 1_001)
    driver.step(T0)
    (first,) = fires(driver, T0 + 1_001)
    driver.ask(schedule_id="a", action="CANCEL")
    driver.step(T0 + 1_001)
    assert ack(driver, first, T0 + 1_001).outcomes == ["UPDATED"]
    assert ids(fires(driver, T0 + 1_001)) == ["b"]


def test_a_held_tenant_keeps_what_its_groups_let_go() -> None:
    driver = Driver()
    for number, name in enumerate("abc"):
        serial(driver, name, T0 + number)
    driver.step(T0 - 1)
    (first,) = fires(driver, T0 + 10)
    driver.tenants.hold("demo", "its topic is missing")
    ack(driver, first, T0 + 10)
    for _ in range(5):
        assert driver.step(T0 + 10, take=0).shots == []
    # Nothing can be done about it: the partition rests until what was awaited is over.
    due_ms = driver.engine.next_due_ms()
    assert due_ms is None or due_ms > T0 + 10
    driver.tenants.hold("demo", "")
    assert ids(fires(driver, T0 + 10)) == ["b"]


def test_a_clock_that_goes_back_lets_nothing_leave_early() -> None:
    driver = Driver()
    for number, name in enumerate("ab"):
        serial(driver, name, T0 + number * 10)
    driver.step(T0 - 1)
    (first,) = fires(driver, T0 + 20)
    ack(driver, first, T0 + 5)
    assert ids(fires(driver, T0 + 20)) == ["b"]


# -- the request ---------------------------------------------------------------------------------


def test_an_acknowledgement_of_something_else_changes_nothing() -> None:
    driver = Driver()
    serial(driver, "a", T0)
    serial(driver, "b", T0 + 1)
    driver.ask(schedule_id="free", at=T0)
    driver.step(T0 - 1)
    shots = {shot.id: shot for shot in fires(driver, T0 + 5)}
    asked = {
        "not awaited": ("free", fire_id(shots["free"]), "UNCHANGED"),
        "no such fire": ("a", "0" * 32, "UNCHANGED"),
        "of another schedule": ("b", fire_id(shots["a"]), "UNCHANGED"),
        "no such schedule": ("nobody", fire_id(shots["a"]), "NOT_FOUND"),
    }
    for schedule_id, identity, outcome in asked.values():
        driver.ask(action="ACK", schedule_id=schedule_id, fire_id=identity)
        assert driver.step(T0 + 5).outcomes == [outcome]
    assert fires(driver, T0 + 5) == []


def test_an_acknowledgement_counts_once_and_answers_to_its_id() -> None:
    driver = Driver()
    for number, name in enumerate("abc"):
        serial(driver, name, T0 + number)
    driver.step(T0 - 1)
    (first,) = fires(driver, T0 + 5)
    assert ack(driver, first, T0 + 5, request_id="r").outcomes == ["UPDATED"]
    assert ack(driver, first, T0 + 5, request_id="r").outcomes == ["DUPLICATE"]
    assert ack(driver, first, T0 + 5).outcomes == ["UNCHANGED"]
    assert ids(fires(driver, T0 + 5)) == ["b"]


def test_a_wrong_version_is_a_conflict_unless_there_is_nothing() -> None:
    driver = Driver()
    serial(driver, "a", T0)
    driver.step(T0 - 1)
    (first,) = fires(driver, T0 + 5)
    assert ack(driver, first, T0 + 5, expected_version=2).outcomes == ["CONFLICT"]
    assert ack(driver, first, T0 + 5, expected_version=1).outcomes == ["UPDATED"]
    driver.ask(action="ACK", schedule_id="z", fire_id="0" * 32, expected_version=1)
    assert driver.step(T0 + 5).outcomes == ["NOT_FOUND"]


def test_an_extra_fire_neither_waits_nor_is_awaited() -> None:
    driver = Driver()
    driver.ask(schedule_id="a", kind="EVERY", interval_ms=1_000, overlap="SKIP")
    driver.ask(action="TRIGGER")
    step = driver.step(T0)
    assert step.ids == ["a"]
    assert ack(driver, step.shots[0], T0).outcomes == ["UNCHANGED"]
    assert ids(fires(driver, T0 + 1_000)) == ["a"]


# -- all of it -----------------------------------------------------------------------------------


class Story:
    """Serial and other events of one group, acknowledged or not, at a chance's will."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.driver = Driver(self.chance.choice(list(Level)))
        self.now_ms = T0
        self.due: dict[str, tuple[int, int]] = {}
        self.serial: set[str] = set()
        self.awaited: dict[str, Shot] = {}
        self.fired: list[str] = []
        self.acks = 0

    def ask(self) -> None:
        if len(self.due) < 40:
            name, due_ms = f"s{len(self.due):02}", self.now_ms + self.chance.randrange(-9, 60)
            fields: dict[str, Any] = {}
            if self.chance.random() < 0.5:
                self.serial.add(name)
                fields = {"serial": True, "ack_timeout_ms": self.chance.choice([40, 10_000])}
            seq = self.driver.ask(schedule_id=name, at=due_ms, group="g", **fields)
            self.due[name] = due_ms, seq
        for each in self.awaited.values():
            if self.chance.random() < 0.4:
                self.acks += 1
                self.driver.ask(
                    action="ACK", schedule_id=each.id, fire_id=fire_id(each),
                    request_id=f"ack {self.acks}",
                )  # fmt: skip

    def step(self) -> None:
        known = {name for name, (_, seq) in self.due.items() if seq < self.driver.engine.position}
        commit = self.chance.random() < 0.8
        step = self.driver.step(self.now_ms, self.chance.choice([1, 2, 50]), commit=commit)
        if not commit and not step.effects.empty:
            return
        for told in step.effects.lifecycle:
            if told.outcome == "FAILED":
                del self.awaited[told.schedule_id]
        for shot in step.shots:
            self.fire(shot, known)
        for told in step.effects.lifecycle:
            if told.outcome == "UPDATED":
                del self.awaited[told.schedule_id]

    def fire(self, shot: Shot, known: set[str]) -> None:
        assert not self.awaited, f"{shot.id} fired, and {list(self.awaited)} is awaited"
        assert self.due[shot.id][0] <= self.now_ms
        for other in known - {shot.id, *self.fired}:
            assert self.due[other] > self.due[shot.id], f"{shot.id} overtook {other}"
        if shot.id in self.serial:
            self.awaited[shot.id] = shot
        self.fired.append(shot.id)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_a_serial_group_is_in_order_and_one_at_a_time(seed: int) -> None:
    """With rollbacks, crashes, slow steps and a clock that jumps."""
    story = Story(seed)
    while len(story.fired) < 40:
        assert story.now_ms < T0 + 10**6, f"only {story.fired} fired"
        story.ask()
        story.step()
        if story.chance.random() < 0.1:
            rebuilt(story.driver, story.now_ms)
        story.now_ms += story.chance.choice([0, 1, 5, 30])
    assert sorted(story.fired) == sorted(story.due)
    assert story.driver.engine.pending == 0
