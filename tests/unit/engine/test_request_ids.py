"""A request with an id is carried out once, and always told of."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.rejections import CODES, PASSING, Rejection
from belfry.store.layout import keys
from belfry.store.layout.verdicts import VerdictRow, encode_verdict
from belfry.tenants.effective import EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from belfry.wire.record import REDRIVEN_FROM, Headers, Origin, carried_on, origin_headers
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
    driver.ask(at=T0 + 5 * HOUR, request_id="r1")
    step = driver.step(T0 + HOUR - 1)
    (told,) = step.effects.lifecycle
    assert str(told.outcome) == "DUPLICATE"
    assert (told.code, told.version, told.due_at) == ("ACCEPTED", 1, T0 + 5 * HOUR)
    assert (told.source_topic, told.source_offset) == ("belfry.schedules", 1)
    assert driver.engine.next_due_ms() == T0 + 5 * HOUR


@pytest.mark.parametrize(
    "another",
    [
        {"at": T0 + 7 * HOUR},
        {"at": T0 + 5 * HOUR, "schedule_id": "b"},
        {"at": T0 + 5 * HOUR, "payload": b""},
        {"at": T0 + 5 * HOUR, "key": b"k"},
        {"at": T0 + 5 * HOUR, "group": "g"},
        {"at": T0 + 5 * HOUR, "action": "CREATE"},
        {"at": T0 + 5 * HOUR, "expected_version": 1},
        {"at": T0 + 5 * HOUR, "headers": [{"name": "h", "value": None}]},
        {"at": T0 + 5 * HOUR, "http_targets": [{"url": "http://a.example"}]},
        {"action": "CANCEL"},
        {"at": 1},
        {"kind": "CRON", "cron": "no cron"},
    ],
)
def test_another_request_with_a_used_id_is_a_conflict_and_changes_nothing(
    another: dict[str, Any],
) -> None:
    driver = Driver()
    driver.ask(at=T0 + 5 * HOUR, request_id="r1")
    driver.step(T0)
    driver.ask(request_id="r1", **another)
    (told,) = driver.step(T0).effects.lifecycle
    assert (str(told.outcome), told.code) == ("CONFLICT", "request_id_reused")
    assert told.reason == (
        "request_id 'r1' belongs to another request, UPSERT of 'a', which was answered ACCEPTED"
        " less than an hour before. This one asks for something else and changed nothing: give it"
        " a request_id of its own."
    )
    driver.ask(at=T0 + 5 * HOUR, request_id="r1")
    assert driver.step(T0).outcomes == ["DUPLICATE"]
    assert driver.run(T0 + 9 * HOUR) == ["a"]


def test_a_cancel_with_a_used_id_does_not_say_that_it_cancelled() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5, request_id="r1", schedule_id="b")
    driver.ask(at=T0 + 5)
    driver.ask(action="CANCEL", request_id="r1")
    assert driver.step(T0).outcomes == ["ACCEPTED", "ACCEPTED", "CONFLICT"]
    assert driver.engine.pending == 2


@pytest.mark.parametrize("first", [{"at": T0 + 5}, {"kind": "AFTER", "delay_ms": 300_000}])
def test_a_retry_is_the_same_request_whatever_has_grown_around_it(first: dict[str, Any]) -> None:
    """Another record of the log, a trace of its own, a remark, another place of arrival."""
    driver = Driver()
    driver.ask(request_id="r1", reason="asked", payload=b"v", **first)
    driver.step(T0)
    origin = Origin("belfry.schedules.demo", 3, 5, T0 - 9, rerouted=False)
    driver.send(
        request(request_id="r1", payload=b"v", **first),
        b"another key",
        [("traceparent", b"00-1"), *origin_headers(origin, 1)],
        timestamp_ms=T0 + 7,
    )
    trace = [{"name": "traceparent", "value": b"00-2"}]
    driver.ask(request_id="r1", payload=b"v", headers=trace, timestamp_ms=T0 + 8, **first)
    assert driver.step(T0 + 9).outcomes == ["DUPLICATE", "DUPLICATE"]


def test_headers_and_avro_are_two_doors_to_one_request() -> None:
    driver = Driver()
    headers: Headers = [
        ("belfry-tenant", b"demo"),
        ("belfry-id", b"a"),
        ("belfry-in", b"5m"),
        ("belfry-request-id", b"r1"),
        ("mine", b"1"),
        ("tracestate", b"x"),
    ]
    driver.send(b"v", b"k", headers)
    mine = [{"name": "mine", "value": b"1"}]
    driver.ask(
        kind="AFTER", delay_ms=300_000, request_id="r1", payload=b"v", key=b"k", headers=mine
    )
    driver.send(b"other", b"k", headers)
    assert driver.step(T0).outcomes == ["ACCEPTED", "DUPLICATE", "CONFLICT"]


def test_an_answer_of_an_older_release_takes_every_repeat_for_the_same() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5 * HOUR, request_id="r1")
    driver.step(T0)
    name = keys.NAMED_PREFIX + keys.request_key("demo", "r1")
    driver.rows.write({name: encode_verdict(VerdictRow("ACCEPTED", T0, T0 + 5 * HOUR, 1, ""))})
    driver.ask(action="CANCEL", request_id="r1")
    driver.start(driver.rows)
    assert driver.step(T0).outcomes == ["DUPLICATE"]


def limited(driver: Driver, **limits: Any) -> None:
    driver.tenants.follow(EffectivePolicy(TenantPolicy("demo", lifecycle="ALL", **limits)))


def test_a_repeat_after_too_many_requests_is_judged_again() -> None:
    driver = Driver()
    limited(driver, max_requests_per_second=1)
    for name in ("a", "b"):
        driver.ask(at=T0 + HOUR, schedule_id=name, request_id=name)
    assert driver.step(T0).outcomes == ["ACCEPTED", "REJECTED"]
    driver.ask(at=T0 + HOUR, schedule_id="b", request_id="b", timestamp_ms=T0 + 5_000)
    driver.ask(at=T0 + HOUR, schedule_id="b", request_id="b", timestamp_ms=T0 + 9_000)
    assert driver.step(T0 + 9_000).outcomes == ["ACCEPTED", "DUPLICATE"]


def test_a_repeat_after_too_many_pending_is_judged_again() -> None:
    driver = Driver()
    limited(driver, max_pending=0)
    driver.ask(at=T0 + HOUR, request_id="r1")
    assert driver.step(T0).codes == ["too_many_pending"]
    limited(driver, max_pending=1)
    driver.ask(at=T0 + HOUR, request_id="r1")
    assert driver.step(T0).outcomes == ["ACCEPTED"]


def test_a_repeat_after_a_held_tenant_is_judged_again() -> None:
    driver = Driver()
    driver.ask(at=T0 + HOUR)
    driver.tenants.hold("demo", "its topic is missing")
    driver.ask(action="TRIGGER", request_id="r1")
    assert driver.step(T0).outcomes == ["ACCEPTED", "REJECTED"]
    driver.tenants.hold("demo", "")
    for _ in range(2):
        driver.ask(action="TRIGGER", request_id="r1")
    assert driver.step(T0).outcomes == ["TRIGGERED", "DUPLICATE"]


def test_every_passing_refusal_is_told_once_for_each_request() -> None:
    """What operators change is no property of the request."""
    driver = Driver()
    removed = Rejection("tenant_removed", "It was removed.")
    driver.tenants.follow(EffectivePolicy(TenantPolicy("demo", lifecycle="ALL"), refused=removed))
    driver.ask(at=T0 + HOUR, request_id="r1")
    driver.ask(at=T0 + HOUR, request_id="r1")
    assert driver.step(T0).codes == ["tenant_removed", "tenant_removed"]
    limited(driver)
    driver.ask(at=T0 + HOUR, request_id="r1")
    assert driver.step(T0).outcomes == ["ACCEPTED"]
    assert {"tenant_removed", "too_many_requests"} <= PASSING <= CODES.keys()


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
    assert driver.sweep(T0 + 30 * HOUR).empty
    assert driver.step(T0 + 30 * HOUR).outcomes == ["DUPLICATE", "NOT_FOUND"]


def test_a_repeat_in_the_same_batch_is_noticed() -> None:
    driver = Driver()
    for _ in range(3):
        driver.ask(at=T0 + 5, request_id="r1")
    assert driver.step(T0).outcomes == ["ACCEPTED", "DUPLICATE", "DUPLICATE"]


def test_the_repeat_of_a_refused_request_is_a_duplicate_and_what_was_mended_needs_an_id() -> None:
    driver = Driver()
    driver.ask(at=1_796_115_600, request_id="r1")
    driver.ask(at=1_796_115_600, request_id="r1")
    driver.ask(at=T0 + 5, request_id="r1")
    assert driver.step(T0).outcomes == ["REJECTED", "DUPLICATE", "CONFLICT"]


@pytest.mark.parametrize("hops", [0, 1])
def test_what_was_refused_and_is_redriven_is_judged_anew(hops: int) -> None:
    driver = Driver()
    again: Headers = [(REDRIVEN_FROM, b"belfry.rejected/0@7")]
    if hops:
        origin = Origin("belfry.schedules", 2, 7, T0, rerouted=False)
        again = [*carried_on([*again, *origin_headers(origin)]), *origin_headers(origin)]
    for value in (request(at=1_796_115_600, request_id="r1"), request(at=T0 + 5, request_id="r2")):
        driver.send(value)
        driver.send(value, headers=again)
    assert driver.step(T0).outcomes == ["REJECTED", "REJECTED", "ACCEPTED", "DUPLICATE"]


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


@pytest.mark.parametrize("action", ["CANCEL", "PAUSE", "RESUME", "TRIGGER"])
def test_a_payload_that_came_along_makes_no_other_request_of_what_keeps_none(action: str) -> None:
    """By headers, a record's own key and value are there whether anybody means them or not."""
    driver = Driver()
    driver.ask(action=action, request_id="r1")
    driver.ask(action=action, request_id="r1", payload=b"x", key=b"demo")
    driver.ask(action=action, request_id="r1", expected_version=2)
    first, *others = driver.step(T0).outcomes
    assert (first, others) == ("NOT_FOUND", ["DUPLICATE", "CONFLICT"])
