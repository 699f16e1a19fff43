"""A request with an id is carried out once, and always told of."""

from __future__ import annotations

import pytest

from belfry.schedules.tenant import Level
from belfry.wire.record import Origin, origin_headers
from tests.unit.engine.driver import HOUR, T0, Driver, request


@pytest.mark.parametrize("level", Level)
def test_a_request_with_an_id_gets_exactly_one_record(level: Level) -> None:
    driver = Driver(level)
    driver.ask(at=T0 + 5, request_id="r1")
    driver.ask(action="CANCEL", request_id="r2")
    driver.ask(action="CANCEL", request_id="r3")
    driver.ask(action="ACK", request_id="r4")
    told = driver.step(T0).effects.lifecycle
    assert [(each.request_id, str(each.outcome)) for each in told] == [
        ("r1", "ACCEPTED"),
        ("r2", "CANCELLED"),
        ("r3", "NOT_FOUND"),
        ("r4", "REJECTED"),
    ]


def test_a_repeat_within_the_hour_is_a_duplicate_with_the_first_result() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5 * HOUR, request_id="r1")
    driver.step(T0)
    driver.ask(at=T0 + 7 * HOUR, request_id="r1")
    step = driver.step(T0 + HOUR - 1)
    (told,) = step.effects.lifecycle
    assert str(told.outcome) == "DUPLICATE"
    assert (told.code, told.version, told.due_at) == ("ACCEPTED", 1, T0 + 5 * HOUR)
    assert driver.engine.next_due_ms() == T0 + 5 * HOUR


def test_after_an_hour_the_id_is_free_again() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5 * HOUR, request_id="r1")
    driver.step(T0)
    driver.ask(at=T0 + 7 * HOUR, request_id="r1", timestamp_ms=T0 + HOUR)
    assert driver.step(T0 + HOUR).outcomes == ["UPDATED"]


def test_the_hour_ends_when_a_repeat_comes_in_however_late_it_is_read() -> None:
    """All owners may be away in between, and what they know be swept when one comes back."""
    driver = Driver()
    driver.ask(at=T0 + 5, request_id="r1")
    driver.step(T0)
    assert driver.run(T0 + 5) == ["a"]
    driver.ask(at=T0 + 5, request_id="r1", timestamp_ms=T0 + HOUR - 1)
    driver.start(driver.rows)
    driver.sweep(T0 + 30 * HOUR)
    assert driver.step(T0 + 30 * HOUR).outcomes == ["DUPLICATE"]
    driver.ask(at=T0 + 5, request_id="r1", timestamp_ms=T0 + HOUR)
    assert driver.step(T0 + 30 * HOUR).outcomes == ["ACCEPTED"]


def test_the_hour_of_what_is_handed_over_ends_where_it_first_came_in() -> None:
    """On a tenant's own topic, an added partition or as a stray it may wait for its way home."""
    driver = Driver()
    driver.ask(at=T0 + 5, request_id="r1")
    driver.step(T0)
    assert driver.run(T0 + 5) == ["a"]
    for came_ms in (T0 + HOUR - 1, T0 + HOUR):
        origin = Origin("belfry.schedules.demo", 0, 5, came_ms, rerouted=False)
        repeat = request(at=T0 + 5, request_id="r1")
        driver.send(repeat, None, origin_headers(origin, None), timestamp_ms=T0 + 9 * HOUR)
    assert driver.step(T0 + 9 * HOUR, take=1).outcomes == ["DUPLICATE"]
    assert driver.step(T0 + 9 * HOUR).outcomes == ["ACCEPTED"]


def test_what_was_rolled_back_has_not_been_read() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5, request_id="r1")
    driver.step(T0)
    assert driver.run(T0 + 5) == ["a"]
    driver.ask(at=T0 + 5, request_id="r1", timestamp_ms=T0 + HOUR - 1)
    driver.ask(action="CANCEL", schedule_id="none", timestamp_ms=T0 + 2 * HOUR)
    driver.step(T0 + 30 * HOUR, commit=False)
    assert b"demo/a" in driver.sweep(T0 + 30 * HOUR).rows
    assert driver.sweep(T0 + 30 * HOUR).empty
    assert driver.step(T0 + 30 * HOUR).outcomes == ["DUPLICATE", "NOT_FOUND"]


def test_a_repeat_in_the_same_batch_is_noticed() -> None:
    driver = Driver()
    for _ in range(3):
        driver.ask(at=T0 + 5, request_id="r1")
    assert driver.step(T0).outcomes == ["ACCEPTED", "DUPLICATE", "DUPLICATE"]


def test_the_repeat_of_a_refused_request_is_none_that_is_judged() -> None:
    driver = Driver()
    driver.ask(at=1_796_115_600, request_id="r1")
    driver.ask(at=T0 + 5, request_id="r1")
    assert driver.step(T0).outcomes == ["REJECTED", "DUPLICATE"]


def test_a_repeated_trigger_fires_once() -> None:
    driver = Driver()
    driver.ask(at=T0 + HOUR)
    for _ in range(2):
        driver.ask(action="TRIGGER", request_id="r1")
    assert len(driver.step(T0).shots) == 1


def test_ids_belong_to_tenants() -> None:
    driver = Driver()
    for tenant in ("t1", "t2"):
        driver.ask(tenant=tenant, at=T0 + 5, request_id="r1")
    assert driver.step(T0).outcomes == ["ACCEPTED", "ACCEPTED"]


def test_a_rolled_back_request_is_no_repeat() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5, request_id="r1")
    assert driver.step(T0, commit=False).outcomes == ["ACCEPTED"]
    assert driver.step(T0).outcomes == ["ACCEPTED"]


def test_an_answer_outlives_its_owner() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5, request_id="r1")
    driver.step(T0)
    driver.start(driver.rows)
    driver.ask(at=T0 + 5, request_id="r1")
    assert driver.step(T0).outcomes == ["DUPLICATE"]
