"""Fires that go to HTTP targets: what is written to the topic of deliveries, and when."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from belfry.schedules.targets import HttpTarget
from belfry.tenants.deliveries import HEADER, DeliveryState, decode_state
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from belfry.wire.fired import decode_fired
from tests.unit.engine.driver import HOUR, T0, Driver, Step

ONE = {"url": "https://one.example.com/hook"}
TWO = {"url": "https://two.example.com/hook", "max_attempts": 3}
TOO_LARGE = (
    r"The delivery takes 99\d{4} bytes; at most 990000 are delivered over HTTP. The event is in"
    r" belfry.fired.demo: store the content elsewhere and schedule its address \(claim check\)."
)


def fired(driver: Driver, **fields: Any) -> Step:
    driver.ask(**{"at": T0 + 5, "payload": b"p", **fields})
    driver.step(T0)
    return driver.step(T0 + 7)


def states(step: Step) -> list[DeliveryState]:
    found = []
    for _, _, headers in step.effects.deliveries:
        name, value = headers[-1]
        assert name == HEADER
        assert value is not None
        found.append(decode_state(value))
    return found


def hooked(**policy: Any) -> Driver:
    driver = Driver()
    targets = (HttpTarget("https://policy.example.com/"),)
    given = TenantPolicy("demo", **{"http_targets": targets, **policy})
    driver.tenants.follow(EffectivePolicy(given))
    return driver


def test_a_fire_without_targets_is_not_delivered() -> None:
    assert fired(Driver()).effects.deliveries == []


def test_a_schedules_targets_each_get_a_delivery_beside_the_fired_record() -> None:
    step = fired(
        Driver(), http_targets=[ONE, TWO], group="g", headers=[{"name": "h", "value": b"1"}]
    )
    assert [shot.value for shot in step.shots] == [b"p"]
    assert [state.targets[0].url for state in states(step)] == [ONE["url"], TWO["url"]]
    assert [(state.number, state.attempts) for state in states(step)] == [(0, 10), (1, 3)]
    key, body, headers = step.effects.deliveries[0]
    event = decode_fired(body)
    assert key == b"demo/g"
    assert (event.payload, event.schedule_id, event.fired_at) == (b"p", "a", T0 + 7)
    assert event.fire_id.encode() == step.effects.fire_ids[0]
    assert headers[:-1] == step.shots[0].headers
    assert ("h", b"1") in headers


def test_targets_that_work_together_share_a_delivery() -> None:
    pair = [{**ONE, "strategy": "FIRST_AVAILABLE"}, {**TWO, "strategy": "FIRST_AVAILABLE"}]
    rest = [{**ONE, "strategy": "ROUND_ROBIN"}, ONE]
    found = states(fired(Driver(), http_targets=[*pair, *rest]))
    assert [state.strategy for state in found] == ["ALL", "FIRST_AVAILABLE", "ROUND_ROBIN"]
    assert [len(state.targets) for state in found] == [1, 2, 1]
    assert [state.number for state in found] == [0, 1, 2]


def test_a_tenants_targets_are_for_schedules_that_name_none() -> None:
    assert [s.targets[0].url for s in states(fired(hooked()))] == ["https://policy.example.com/"]
    assert [s.targets[0].url for s in states(fired(hooked(), http_targets=[ONE]))] == [ONE["url"]]


@pytest.mark.parametrize(
    ("fields", "acks"),
    [
        ({}, False),
        ({"group": "g", "serial": True}, True),
        ({"kind": "EVERY", "at": None, "interval_ms": HOUR, "overlap": "ALLOW"}, False),
        ({"kind": "EVERY", "at": None, "interval_ms": HOUR, "overlap": "QUEUE_ONE"}, True),
    ],
)
def test_a_delivery_acknowledges_what_something_waits_for(
    fields: dict[str, Any], acks: bool
) -> None:
    given = {"start_at": T0 + 5, **fields} if "kind" in fields else fields
    assert [s.acks for s in states(fired(Driver(), http_targets=[ONE], **given))] == [acks]
    assert [s.acks for s in states(fired(hooked(), **given))] == [acks]


def test_an_extra_fires_delivery_acknowledges_nothing() -> None:
    driver = Driver()
    driver.ask(at=T0 + HOUR, group="g", serial=True, http_targets=[ONE])
    driver.ask(action="TRIGGER")
    assert [state.acks for state in states(driver.step(T0))] == [False]


def test_a_policy_says_how_long_to_try_and_which_hosts_are_allowed() -> None:
    policy = {
        "retry_max_attempts": 4,
        "retry_initial_ms": 0,
        "retry_max_ms": 50,
        "retry_max_age_ms": 60_000,
        "allowed_hosts": ("*.example.com",),
    }
    (state,) = states(fired(hooked(**policy)))
    assert (state.attempts, state.initial_ms, state.max_ms, state.age_ms) == (4, 0, 50, 60_000)
    assert state.hosts == ("*.example.com",)


@pytest.mark.parametrize(("level", "tell"), [("ALL", True), ("OUTCOMES", False)])
def test_delivered_is_told_where_everything_is(level: str, tell: bool) -> None:
    (state,) = states(fired(hooked(lifecycle=level)))
    assert state.tell is tell


def test_every_occurrence_of_a_recurring_schedule_is_delivered() -> None:
    driver = Driver()
    driver.ask(kind="EVERY", interval_ms=10, http_targets=[ONE])
    driver.step(T0)
    step = driver.step(T0 + 35)
    events = [decode_fired(body) for _, body, _ in step.effects.deliveries]
    assert [event.occurrence for event in events] == [0, 1, 2]


def test_an_extra_fire_is_delivered_too() -> None:
    driver = Driver()
    driver.ask(at=T0 + HOUR, http_targets=[ONE])
    driver.step(T0)
    driver.ask(action="TRIGGER")
    step = driver.step(T0 + 1)
    assert [decode_fired(body).occurrence for _, body, _ in step.effects.deliveries] == [-1]


def test_targets_survive_a_take_over() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5, http_targets=[ONE, TWO])
    driver.step(T0)
    driver.start(driver.rows)
    assert len(driver.step(T0 + 5).effects.deliveries) == 2


def test_other_targets_are_another_definition() -> None:
    driver = Driver()
    for targets in ([ONE], [ONE], [TWO], []):
        driver.ask(at=T0 + HOUR, http_targets=targets)
    assert driver.step(T0).outcomes == ["ACCEPTED", "UNCHANGED", "UPDATED", "UPDATED"]


def test_a_delivery_that_fits_nowhere_fails_at_once_and_the_event_fires() -> None:
    for size, delivered in ((988_000, 1), (989_500, 0)):
        step = fired(Driver(), payload=b"x" * size, http_targets=[ONE])
        assert len(step.shots) == 1
        assert len(step.effects.deliveries) == delivered
        told = [e for e in step.effects.lifecycle if e.outcome == "FAILED"]
        assert [event.code for event in told] == ["too_large"] * (1 - delivered)
        for event in told:
            assert (event.at, event.due_at, event.version) == (T0 + 7, T0 + 5, 1)
            assert event.fire_id == step.effects.fire_ids[0].decode()
            assert re.fullmatch(TOO_LARGE, event.reason or "")


def test_names_of_headers_count_as_the_bytes_that_they_take() -> None:
    """A delivery that its topic does not take would have the step rolled back for ever."""
    driver = Driver()
    driver.note(max_record_bytes=1_047_564)
    names = [("belfry-tenant", b"demo"), ("belfry-id", b"a"), ("belfry-in", b"5")]
    targets = [("belfry-webhook", b"https://hooks.example/x")]
    users = [("\U00010000" * 250, b"v")] * 200
    driver.send(b"x" * 840_000, None, [*names, *targets, *users])
    driver.step(T0)
    step = driver.step(T0 + 5)
    assert len(step.shots) == 1
    assert step.effects.deliveries == []


def test_a_cloudevent_is_delivered_as_one() -> None:
    step = fired(hooked(cloudevents=True))
    _, _, headers = step.effects.deliveries[0]
    assert ("ce_specversion", b"1.0") in headers


def test_no_effect_of_a_plain_tenant_is_changed() -> None:
    driver = hooked()
    tenant = driver.tenants.of("demo")
    driver.tenants.follow(EffectivePolicy(replace(tenant.effective.policy, http_targets=())))
    assert not driver.tenants.of("demo").enveloped
    assert fired(driver).effects.deliveries == []
