"""A request goes to its home partition, once, whatever its key and where it arrived."""

from __future__ import annotations

import pytest

from belfry.engine.partition import PartitionEngine
from belfry.schedules.identity import Homes
from belfry.wire.record import Headers
from tests.unit.engine.driver import HOUR, T0, Driver, request

PARTITIONS = 4
HOMES = Homes(PARTITIONS)


def tenant_of(home: int) -> str:
    return next(name for name in map("t{}".format, range(99)) if HOMES.of(name) == home)


def at_home(home: int) -> Driver:
    return Driver(partition=home, partitions=PARTITIONS)


@pytest.mark.parametrize("home", range(PARTITIONS))
def test_only_strays_are_re_routed(home: int) -> None:
    driver = at_home(0)
    driver.ask(tenant=tenant_of(home), at=T0 + 5)
    step = driver.step(T0)
    assert [stray.partition for stray in step.effects.rerouted] == ([home] if home else [])
    assert step.outcomes == ([] if home else ["ACCEPTED"])
    assert driver.engine.pending == (home == 0)


def test_a_stray_keeps_key_value_and_headers_and_says_where_it_came_from() -> None:
    driver = at_home(1)
    value = request(tenant=tenant_of(2), at=T0 + 5)
    given: Headers = [("a", b"1"), ("null", None), ("a", b"2")]
    driver.send(b"{}")
    offset = driver.send(value, b"\xff", given, timestamp_ms=T0 - 7)
    (stray,) = driver.step(T0).effects.rerouted
    assert (stray.partition, stray.key, stray.value) == (2, b"\xff", value)
    assert stray.headers == [
        *given,
        ("belfry-origin-topic", b"belfry.schedules"),
        ("belfry-origin-partition", b"1"),
        ("belfry-origin-offset", b"%d" % offset),
        ("belfry-origin-timestamp", b"%d" % (T0 - 7)),
    ]


def hop(value: bytes | None, key: bytes | None, headers: Headers | None, home: int) -> Driver:
    """Send a record to partition 1, and what comes out of it to its home."""
    away = at_home(1)
    away.send(value, key, headers, timestamp_ms=T0)
    (stray,) = away.step(T0 + 1).effects.rerouted
    driver = at_home(home)
    driver.send(stray.value, stray.key, stray.headers, timestamp_ms=T0 + 500)
    return driver


def test_a_delay_counts_from_the_first_arrival() -> None:
    value = request(tenant=tenant_of(2), kind="AFTER", delay_ms=HOUR, request_id="r")
    driver = hop(value, None, None, 2)
    (told,) = driver.step(T0 + 501).effects.lifecycle
    assert (str(told.outcome), told.due_at) == ("ACCEPTED", T0 + HOUR)
    assert (told.source_topic, told.source_partition, told.source_offset) == (
        "belfry.schedules",
        1,
        0,
    )


def test_origin_headers_are_not_the_users() -> None:
    headers: Headers = [
        ("belfry-tenant", tenant_of(2).encode()),
        ("belfry-id", b"a"),
        ("belfry-in", b"5m"),
        ("mine", b"1"),
    ]
    driver = hop(b"v", b"k", headers, 2)
    driver.step(T0 + 501)
    (shot,) = driver.step(T0 + HOUR).shots
    assert shot.headers[0] == ("mine", b"1")
    assert not any(name.startswith("belfry-origin") for name, _ in shot.headers)


def test_a_null_cancel_finds_its_home() -> None:
    tenant = tenant_of(2)
    driver = hop(None, f"{tenant}/a".encode(), None, 2)
    assert driver.step(T0 + 501).outcomes == ["NOT_FOUND"]


def test_one_hop_is_the_limit() -> None:
    driver = hop(request(tenant=tenant_of(2), at=T0 + 5), None, None, 3)
    step = driver.step(T0 + 501)
    assert step.effects.rerouted == []
    assert step.codes == ["misrouted"]


def test_a_spread_tenants_ids_have_homes_of_their_own() -> None:
    driver = at_home(0)
    driver.tenants.of("demo").spread = 8
    for number in range(40):
        driver.ask(schedule_id=f"{number}", at=T0 + 5)
    effects = driver.step(T0).effects
    expected = [HOMES.of("demo", f"{number}", 8) for number in range(40)]
    assert [stray.partition for stray in effects.rerouted] == [home for home in expected if home]
    assert driver.engine.pending == expected.count(0) > 0


def test_a_refused_request_is_not_re_routed() -> None:
    driver = at_home(1)
    driver.ask(tenant=tenant_of(2), at=5)
    step = driver.step(T0)
    assert step.effects.rerouted == []
    assert step.codes == ["instant_in_seconds"]


def test_a_partition_beyond_the_states_only_takes_input() -> None:
    driver = Driver(partition=PARTITIONS, partitions=PARTITIONS)
    assert isinstance(driver.engine, PartitionEngine)
    for home in range(PARTITIONS):
        driver.ask(tenant=tenant_of(home), at=T0 + 5)
    assert [stray.partition for stray in driver.step(T0).effects.rerouted] == [0, 1, 2, 3]


def test_a_stray_that_would_not_fit_is_refused() -> None:
    driver = at_home(1)
    driver.ask(tenant=tenant_of(2), at=T0 + 5, payload=b"x" * 1_010_000)
    step = driver.step(T0)
    assert step.effects.rerouted == []
    assert step.codes == ["request_too_large"]
