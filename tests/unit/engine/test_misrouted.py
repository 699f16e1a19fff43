"""A request goes to its home partition, once, whatever its key and where it arrived."""

from __future__ import annotations

import pytest

from belfry.engine.partition import PartitionEngine
from belfry.schedules.identity import Homes
from belfry.wire.claims import signature
from belfry.wire.record import Headers, Origin, origin_headers, origin_of
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
    # A mirror carries requests that were sent on before the step that sent them.
    assert driver.engine.manifest.sent_on == bool(home)


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
        ("belfry-origin-by", b"1.1"),
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


def retried(retries: int | None) -> Driver:
    """A partition to which another worker sent a request of somebody else's."""
    more = [] if retries is None else [("belfry-origin-retries", b"%d" % retries)]
    away = at_home(1)
    away.send(request(tenant=tenant_of(2), at=T0 + 5), timestamp_ms=T0)
    (stray,) = away.step(T0 + 1).effects.rerouted
    driver = at_home(3)
    driver.send(stray.value, stray.key, [*stray.headers, *more], timestamp_ms=T0 + 500)
    return driver


@pytest.mark.parametrize(("retries", "next_one"), [(None, 1), (1, 2), (999, 1_000)])
def test_what_was_sent_to_the_wrong_partition_begins_its_way_anew(
    retries: int | None, next_one: int
) -> None:
    """Workers that know different policies disagree on the owner for a while."""
    step = retried(retries).step(T0 + 501)
    (stray,) = step.effects.rerouted
    assert (stray.partition, step.codes) == (2, [])
    assert stray.headers[:3] == [
        ("belfry-origin-topic", b"belfry.schedules"),
        ("belfry-origin-partition", b"1"),
        ("belfry-origin-offset", b"0"),
    ]
    assert stray.headers[-1] == ("belfry-origin-retries", b"%d" % next_one)
    driver = at_home(2)
    driver.send(stray.value, stray.key, stray.headers, timestamp_ms=T0 + 900)
    assert driver.step(T0 + 901).outcomes == ["ACCEPTED"]


def test_no_request_goes_round_for_ever() -> None:
    step = retried(1_000).step(T0 + 501)
    assert (step.effects.rerouted, step.codes) == ([], ["misrouted"])


def test_what_began_anew_is_counted_without_an_origin_that_can_be_believed() -> None:
    driver = at_home(3)
    half: Headers = [("belfry-origin-topic", b"x"), ("belfry-origin-retries", b"7")]
    driver.send(request(tenant=tenant_of(2), at=T0 + 5), None, half)
    (stray,) = driver.step(T0).effects.rerouted
    assert stray.headers[-1] == ("belfry-origin-retries", b"8")


@pytest.mark.parametrize("skew_ms", [1, 500, HOUR])
def test_the_origin_is_kept_where_the_first_brokers_clock_is_ahead(skew_ms: int) -> None:
    """The sender waits for the verdict on the record that it wrote; delays count from no later."""
    away = at_home(1)
    value = request(tenant=tenant_of(2), kind="AFTER", delay_ms=HOUR, request_id="r")
    away.send(value, timestamp_ms=T0 + skew_ms)
    (stray,) = away.step(T0).effects.rerouted
    driver = at_home(2)
    driver.send(stray.value, stray.key, stray.headers, timestamp_ms=T0)
    (told,) = driver.step(T0).effects.lifecycle
    assert (told.source_partition, told.source_offset, told.due_at) == (1, 0, T0 + HOUR)


@pytest.mark.parametrize("given_ms", [-1, 0, 10**14, 2**62])
def test_the_origin_of_a_producers_odd_instant_is_believed(given_ms: int) -> None:
    """A topic of a tenant's own may keep the instants that its producers give."""
    origin = Origin("belfry.schedules.demo", 3, 9, given_ms, rerouted=False)
    found = origin_of((1, T0, None, None, origin_headers(origin)), "belfry.schedules", 0)
    assert found[:3] == origin[:3]
    assert 0 < found.timestamp_ms <= T0


@pytest.mark.parametrize("forged", [b"0", b"-5", b"99999999999999999", b"x", b""])
def test_an_instant_that_no_broker_gave_is_no_origin(forged: bytes) -> None:
    headers = origin_headers(Origin("t", 3, 9, T0, rerouted=False))
    headers[3] = ("belfry-origin-timestamp", forged)
    assert origin_of((1, T0, None, None, headers), "here", 0) == ("here", 0, 1, T0, False)


def test_headers_of_later_releases_on_the_way_are_nobodys_business() -> None:
    later = ("belfry-origin-later", b"1")
    driver = at_home(2)
    headers: Headers = [("belfry-tenant", tenant_of(2).encode()), ("belfry-id", b"a")]
    driver.send(b"v", None, [*headers, ("belfry-in", b"1m"), later])
    assert driver.step(T0).outcomes == ["ACCEPTED"]
    (shot,) = driver.step(T0 + HOUR).shots
    assert later not in shot.headers
    secret, value = b"s", request(tenant="x")
    assert signature(secret, "x", None, value, [later]) == signature(secret, "x", None, value, [])


def test_a_spread_tenants_ids_have_homes_of_their_own() -> None:
    driver = at_home(0)
    driver.apply(spread=8)
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
