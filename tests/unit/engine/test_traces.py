"""What an engine tells of requests and fires whose trace is sampled.

request 00-t-s-01 ─► TracedRequest          due ─► TracedFire with the same context, however late
request 00-t-s-00 ─► nothing                due ─► nothing
"""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.effects import TracedFire, TracedRequest
from belfry.schedules.outcomes import Outcome
from belfry.wire.record import Headers
from belfry.wire.trace_context import TraceContext
from tests.unit.engine.driver import T0, TOPIC, Driver, Step, request

CONTEXT = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
OTHER = TraceContext("1bf7651916cd43dd8448eb211c80319c", "c7ad6b7169203331")
DAY = 86_400_000


@pytest.fixture
def driver() -> Driver:
    return Driver(traces=True)


def requests_in(step: Step) -> list[TracedRequest]:
    return [each for each in step.effects.traced if isinstance(each, TracedRequest)]


def fires_in(step: Step) -> list[TracedFire]:
    return [each for each in step.effects.traced if isinstance(each, TracedFire)]


def ask(driver: Driver, context: TraceContext = CONTEXT, **fields: Any) -> int:
    return driver.send(request(**fields), headers=context.headers())


def test_a_fire_knows_the_context_of_its_request_days_later(driver: Driver) -> None:
    ask(driver, at=T0 + 3 * DAY)
    (asked,) = driver.step(T0 + 2).effects.traced
    assert isinstance(asked, TracedRequest)
    assert asked.context == CONTEXT
    assert (asked.tenant, asked.schedule_id, asked.action) == ("demo", "a", "UPSERT")
    assert (asked.outcome, asked.code) == (Outcome.ACCEPTED, None)
    assert asked.origin[:4] == (TOPIC, 0, 0, T0)
    step = driver.step(T0 + 3 * DAY + 7)
    (fire,) = step.effects.traced
    assert fire == TracedFire(
        CONTEXT,
        "demo",
        "a",
        step.effects.fire_ids[0].decode(),
        step.effects.fired[0][0],
        0,
        T0,
        T0 + 3 * DAY,
        T0 + 3 * DAY + 7,
    )


def test_what_its_caller_does_not_sample_is_not_told_of(driver: Driver) -> None:
    ask(driver, CONTEXT._replace(sampled=False), at=T0 + 5)
    driver.ask(schedule_id="b", at=T0 + 5)
    assert not driver.step(T0).effects.traced
    step = driver.step(T0 + 5)
    assert (len(step.effects.fired), step.effects.traced) == (2, [])


def test_an_engine_that_does_not_trace_tells_of_nothing() -> None:
    driver = Driver()
    ask(driver, at=T0 + 5)
    assert not driver.step(T0).effects.traced
    step = driver.step(T0 + 5)
    assert (len(step.effects.fired), step.effects.traced) == (1, [])


@pytest.mark.parametrize(
    ("fields", "outcome", "code"),
    [
        ({"at": 5}, Outcome.REJECTED, "instant_in_seconds"),
        ({"at": None, "action": "CANCEL"}, Outcome.NOT_FOUND, "not_found"),
        ({"at": T0 + 5, "tenant": "no tenant"}, Outcome.REJECTED, "bad_tenant"),
    ],
)
def test_a_refused_request_is_told_of(
    driver: Driver, fields: dict[str, Any], outcome: Outcome, code: str | None
) -> None:
    ask(driver, **fields)
    (told,) = driver.step(T0).effects.traced
    assert isinstance(told, TracedRequest)
    assert (told.outcome, told.code) == (outcome, code)


def test_a_record_that_is_no_request_is_told_of_by_its_headers(driver: Driver) -> None:
    named: Headers = [("belfry-tenant", b"demo"), ("belfry-id", b"x"), ("belfry-in", b"soon")]
    driver.send(b"v", None, [*named, *CONTEXT.headers()])
    driver.send(b"nothing", None, CONTEXT.headers())
    protocol, unread = driver.step(T0).effects.traced
    assert isinstance(protocol, TracedRequest)
    assert isinstance(unread, TracedRequest)
    assert (protocol.tenant, protocol.schedule_id) == ("demo", "x")
    assert (unread.tenant, unread.code) == ("", "not_a_request")
    assert {protocol.outcome, unread.outcome} == {Outcome.REJECTED}


def test_repeats_and_conflicts_have_outcomes_of_their_own(driver: Driver) -> None:
    for _ in range(2):
        ask(driver, at=T0 + DAY, request_id="r")
    ask(driver, at=T0 + 2 * DAY, request_id="r")
    told = [each.outcome for each in requests_in(driver.step(T0))]
    assert told == [Outcome.ACCEPTED, Outcome.DUPLICATE, Outcome.CONFLICT]


def test_only_the_first_fire_of_a_schedule_waited_since_its_request(driver: Driver) -> None:
    ask(driver, kind="EVERY", at=None, interval_ms=10_000)
    driver.step(T0)
    told = [fires_in(driver.step(T0 + n * 10_000)) for n in (1, 2)]
    assert [[each.accepted_ms for each in some] for some in told] == [[T0], [None]]
    assert [some[0].occurrence for some in told] == [0, 1]


def test_an_extra_fire_belongs_to_the_request_that_asked_for_it(driver: Driver) -> None:
    ask(driver, at=T0 + DAY)
    driver.step(T0)
    ask(driver, OTHER, at=None, action="TRIGGER")
    step = driver.step(T0 + 9)
    (asked,), (fire,) = requests_in(step), fires_in(step)
    assert asked.outcome is Outcome.TRIGGERED
    assert (fire.context, fire.accepted_ms, fire.fired_ms) == (OTHER, None, T0 + 9)
    assert fire.fire_id == step.effects.fire_ids[0].decode()


def test_the_trace_of_the_schedules_own_headers_wins(driver: Driver) -> None:
    own = [{"name": name, "value": value} for name, value in OTHER.headers()]
    ask(driver, at=T0 + 5, headers=own)
    told = [*driver.step(T0).effects.traced, *driver.step(T0 + 5).effects.traced]
    assert [each.context for each in told] == [OTHER, OTHER]


def test_retries_of_deliveries_are_not_told_of(driver: Driver) -> None:
    ask(driver, tenant="belfry-deliveries", at=T0 + 5)
    assert not driver.step(T0).effects.traced
    step = driver.step(T0 + 5)
    assert (len(step.effects.fired), step.effects.traced) == (1, [])


def test_what_is_rolled_back_is_told_of_once_it_is_done(driver: Driver) -> None:
    ask(driver, at=T0 + 5)
    driver.step(T0, commit=False)
    assert len(driver.step(T0).effects.traced) == 1


def test_one_that_is_sent_on_is_told_of_where_its_verdict_falls() -> None:
    home = next(p for p in range(4) if Driver(partitions=4).place.homes.of("demo") == p)
    stray = Driver(partition=(home + 1) % 4, partitions=4, traces=True)
    ask(stray, at=T0 + 5)
    (sent,) = stray.step(T0).effects.rerouted
    assert not stray.engine._step.effects.traced
    owner = Driver(partition=home, partitions=4, traces=True)
    owner.send(sent.value, sent.key, sent.headers)
    (told,) = owner.step(T0 + 9).effects.traced
    assert isinstance(told, TracedRequest)
    assert told.origin.partition == stray.place.partition
