"""Requests of a tenant's own topic go to where it lives, and are that tenant's."""

from __future__ import annotations

from belfry.engine.effects import Effects
from belfry.engine.forward import TenantInput, forward_requests
from belfry.engine.reports import SourcePartition
from belfry.schedules.identity import Homes
from belfry.wire.record import Headers, SourceRecord
from belfry.wire.unread import unread
from tests.unit.engine.driver import HOUR, T0, Driver, request

PARTITIONS = 4
HOMES = Homes(PARTITIONS)
TOPIC = "belfry.schedules.mine"
INLET = TenantInput(SourcePartition(TOPIC, 0, HOMES), "mine")


def passed_on(
    value: bytes | None, key: bytes | None = None, headers: Headers | None = None
) -> Driver:
    """The home of tenant `mine` after a record came in on the tenant's own topic."""
    record: SourceRecord = (7, T0, key, value, headers)
    (handed,) = forward_requests([record], INLET, T0, Effects()).rerouted
    assert handed.partition == HOMES.of("mine")
    driver = Driver(partition=handed.partition, partitions=PARTITIONS)
    driver.send(handed.value, handed.key, handed.headers, timestamp_ms=T0 + 500)
    return driver


def test_the_topics_tenant_wins_over_what_a_request_claims() -> None:
    driver = passed_on(request(tenant="yours", at=T0 + HOUR, request_id="r"))
    (told,) = driver.step(T0 + 501).effects.lifecycle
    assert (told.tenant, str(told.outcome)) == ("mine", "ACCEPTED")
    (shot,) = driver.step(T0 + HOUR).shots
    assert shot.topic == "belfry.fired.mine"


def test_the_verdict_names_the_first_place_and_a_delay_counts_from_there() -> None:
    driver = passed_on(request(tenant="mine", kind="AFTER", delay_ms=HOUR, request_id="r"))
    (told,) = driver.step(T0 + 501).effects.lifecycle
    assert (told.source_topic, told.source_partition, told.source_offset) == (TOPIC, 0, 7)
    assert told.due_at == T0 + HOUR


def test_headers_need_no_tenant_there() -> None:
    headers: Headers = [("belfry-id", b"a"), ("belfry-in", b"5m"), ("mine", b"1")]
    driver = passed_on(b"v", b"k", headers)
    assert driver.step(T0 + 501).outcomes == ["ACCEPTED"]
    (shot,) = driver.step(T0 + HOUR).shots
    assert (shot.key, shot.value, shot.headers[0]) == (b"k", b"v", ("mine", b"1"))
    assert not any(name.startswith("belfry-origin") for name, _ in shot.headers)


def test_headers_that_claim_another_tenant_do_not_count() -> None:
    headers: Headers = [("belfry-tenant", b"yours"), ("belfry-id", b"a"), ("belfry-in", b"5m")]
    driver = passed_on(b"v", None, headers)
    (told,) = driver.step(T0 + 501).effects.lifecycle
    assert told.tenant == "mine"


def test_a_stamp_that_the_record_brings_does_not_count() -> None:
    forged: Headers = [("belfry-origin-tenant", b"yours"), ("belfry-origin-asked", b"1")]
    driver = passed_on(request(tenant="yours", at=T0 + HOUR, request_id="r"), None, forged)
    (told,) = driver.step(T0 + 501).effects.lifecycle
    assert (told.tenant, told.source_topic) == ("mine", TOPIC)


def test_a_null_value_cancels_a_schedule_of_the_topics_tenant() -> None:
    driver = passed_on(request(tenant="mine", at=T0 + HOUR))
    record: SourceRecord = (8, T0 + 1, b"yours/a", None, None)
    (handed,) = forward_requests([record], INLET, T0, Effects()).rerouted
    driver.send(handed.value, handed.key, handed.headers, timestamp_ms=T0 + 500)
    assert driver.step(T0 + 501).outcomes == ["ACCEPTED", "CANCELLED"]


def test_a_spread_tenants_request_goes_on_to_its_shard_and_stays_its_own() -> None:
    ids = [f"{number}" for number in range(40)]
    away = next(each for each in ids if HOMES.of("mine", each, 8) != HOMES.of("mine"))
    driver = passed_on(request(tenant="yours", schedule_id=away, at=T0 + HOUR, request_id="r"))
    driver.apply("mine", spread=8)
    (stray,) = driver.step(T0 + 501).effects.rerouted
    shard = Driver(partition=stray.partition, partitions=PARTITIONS)
    shard.apply("mine", spread=8)
    shard.send(stray.value, stray.key, stray.headers, timestamp_ms=T0 + 600)
    (told,) = shard.step(T0 + 601).effects.lifecycle
    assert (told.tenant, str(told.outcome), told.source_topic) == ("mine", "ACCEPTED", TOPIC)


def test_after_the_hand_over_a_request_may_begin_its_way_anew() -> None:
    ids = [f"{number}" for number in range(40)]
    away = next(each for each in ids if HOMES.of("mine", each, 8) != HOMES.of("mine"))
    driver = passed_on(request(schedule_id=away, at=T0 + HOUR))
    driver.apply("mine", spread=8)
    (stray,) = driver.step(T0 + 501).effects.rerouted
    elsewhere = (stray.partition + 1) % PARTITIONS
    lost = Driver(partition=elsewhere, partitions=PARTITIONS)
    lost.apply("mine", spread=8)
    lost.send(stray.value, stray.key, stray.headers, timestamp_ms=T0 + 600)
    step = lost.step(T0 + 601)
    (again,) = step.effects.rerouted
    assert (again.partition, step.codes) == (HOMES.of("mine", away, 8), [])
    assert again.headers[-1] == ("belfry-origin-retries", b"1")


def test_what_is_too_large_to_go_on_is_refused_with_a_verdict() -> None:
    value = request(tenant="yours", at=T0 + HOUR, payload=b"x" * 1_010_000, request_id="r")
    effects = forward_requests([(7, T0, None, value, None)], INLET, T0, Effects())
    assert not effects.rerouted
    (refused,) = effects.rejected
    assert ("belfry-error-code", b"request_too_large") in refused.headers
    assert ("belfry-error-topic", TOPIC.encode()) in refused.headers
    (told,) = effects.lifecycle
    assert (told.tenant, told.request_id, told.code) == ("mine", "r", "request_too_large")


def test_what_its_reader_could_not_unpack_goes_no_further() -> None:
    """The reader kept the first bytes of it, and says so in a header."""
    headers: Headers = [unread("unreadable_batch", "No codec of belfry's unpacks it.")]
    effects = forward_requests([(7, T0, b"k", b"half", headers)], INLET, T0, Effects())
    assert not effects.rerouted
    (refused,) = effects.rejected
    assert ("belfry-error-code", b"unreadable_batch") in refused.headers
    assert ("belfry-error-reason", b"No codec of belfry's unpacks it.") in refused.headers
