"""Where the request of an event lies: told where the tenant's policy asks for it, else nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.dressing import dress
from belfry.schedules.identity import Homes, partition_of_life
from belfry.store.layout.pending import decode_pending
from belfry.store.recovery import EARLIER_INPUT, of_earlier_input
from belfry.tenants.effective import Delivery
from belfry.wire.record import Headers
from tests.unit.engine.driver import HOUR, T0, Driver

NAME = "belfry-source"
HOOK = {"url": "https://hooks.example/x"}


def traced(partition: int = 0, **policy: Any) -> Driver:
    """A partition with a tenant whose events say where their requests lie."""
    driver = Driver(partition=partition, partitions=4 if partition else 1)
    driver.apply(TENANT, source_header=True, **policy)
    return driver


# A tenant at home on partition 3 of four, and on the only one there is.
TENANT = next(name for name in map("t{}".format, range(99)) if Homes(4).of(name) == 3)


def ask(driver: Driver, **fields: Any) -> int:
    """Send a request of the tenant; its offset."""
    return driver.ask(tenant=TENANT, **fields)


def sources(driver: Driver, now_ms: int) -> list[bytes | None]:
    """What the events that are due say."""
    return [dict(shot.headers).get(NAME) for shot in driver.step(now_ms).shots]


@pytest.mark.parametrize("delivery", Delivery)
def test_an_event_names_topic_partition_and_offset_of_its_request(delivery: Delivery) -> None:
    driver = traced(3, delivery=delivery.value)
    ask(driver, schedule_id="first", at=T0 + HOUR)
    ask(driver, at=T0 + 5)
    driver.step(T0)
    assert sources(driver, T0 + 5) == [b"belfry.schedules/3/1"]
    assert sources(driver, T0 + HOUR) == [b"belfry.schedules/3/0"]


def test_nobody_else_has_the_header() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5)
    driver.ask(schedule_id="b", at=T0 + 5, http_targets=[HOOK])
    driver.step(T0)
    assert sources(driver, T0 + 5) == [None, None]
    assert not driver.tenants.of("demo").enveloped


def test_it_is_the_request_that_changed_the_schedule_last() -> None:
    every = {"kind": "EVERY", "interval_ms": HOUR}
    driver = traced()
    ask(driver, **every, payload=b"1")
    driver.step(T0)
    assert sources(driver, T0 + HOUR) == [b"belfry.schedules/0/0"]
    for fields in ({"payload": b"2"}, {"payload": b"2"}):
        ask(driver, **every, **fields)
    for action in ("PAUSE", "RESUME"):
        ask(driver, action=action)
    driver.step(T0 + HOUR)
    assert sources(driver, T0 + 2 * HOUR) == [b"belfry.schedules/0/1"]
    ask(driver, action="TRIGGER")
    assert sources(driver, T0 + 2 * HOUR) == [b"belfry.schedules/0/1"]


def test_deliveries_have_it_as_the_event_does() -> None:
    driver = traced()
    ask(driver, at=T0 + 5, http_targets=[HOOK])
    driver.step(T0)
    (delivery,) = driver.step(T0 + 5).effects.deliveries
    assert dict(delivery[2])[NAME] == b"belfry.schedules/0/0"


def test_no_user_says_where_a_request_lies() -> None:
    driver = traced()
    forged = [{"name": NAME, "value": b"belfry.schedules/0/4711"}]
    ask(driver, at=T0 + 5, headers=forged)
    driver.step(T0)
    (shot,) = driver.step(T0 + 5).shots
    assert [value for name, value in shot.headers if name == NAME] == [b"belfry.schedules/0/0"]
    driver.apply(TENANT, source_header=False)
    ask(driver, at=T0 + 9, headers=forged)
    driver.step(T0 + 6)
    assert sources(driver, T0 + 9) == [None]


def test_an_event_with_it_may_be_scheduled_anew() -> None:
    given: Headers = [("belfry-tenant", TENANT.encode()), ("belfry-id", b"a"), ("belfry-in", b"1s")]
    driver = traced()
    driver.send(b"v", None, [*given, (NAME, b"belfry.schedules/0/4711")])
    assert driver.step(T0).outcomes == ["ACCEPTED"]
    assert sources(driver, T0 + HOUR) == [b"belfry.schedules/0/0"]


def test_a_request_of_an_earlier_input_is_nowhere() -> None:
    """Its offset is that of another topic: to name it would lead to somebody else's request."""
    driver = traced()
    ask(driver, at=T0 + 5)
    driver.step(T0)
    (record,) = (row for _, row in driver.changelog if row and TENANT.encode() in row)
    row = decode_pending(of_earlier_input(record))
    assert row.seq >= EARLIER_INPUT
    tenant, headers = driver.tenants.of(TENANT), Headers()
    effects: Any = None
    event: Any = row
    assert dress(row, event, tenant, headers, effects) is None
    assert headers == []
    dress(decode_pending(record), event, tenant, headers, effects)
    assert headers == [(NAME, b"belfry.schedules/0/0")]


def test_the_partition_of_a_life_is_that_of_its_first_request() -> None:
    driver = traced(3)
    ask(driver, at=T0 + 5)
    driver.step(T0)
    (record,) = (row for _, row in driver.changelog if row and TENANT.encode() in row)
    assert partition_of_life(decode_pending(record).life) == 3
