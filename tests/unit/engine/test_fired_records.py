"""What a fired record looks like: key, value, headers, in both deliveries."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.job_counts import Budget
from belfry.schedules.identity import fire_id, generation_at
from belfry.schedules.jitter import jitter_ms
from belfry.tenants.effective import Delivery, Level
from belfry.tenants.topic_names import TopicNames
from belfry.wire.fired import FiredEvent, decode_fired
from belfry.wire.record import Headers
from tests.unit.engine.driver import HOUR, T0, Driver, Shot, Step

# Of a record batch besides its records.
BATCH_BYTES = 61
BELFRYS = (
    *("belfry-fire-id", "belfry-schedule-id", "belfry-scheduled-at", "belfry-occurrence"),
    *("belfry-schedule-tenant", "belfry-schedule-version"),
)


def fired(delivery: Delivery = Delivery.PAYLOAD, **fields: Any) -> Shot:
    driver = Driver(delivery=delivery)
    driver.ask(**{"at": T0 + 5, **fields})
    driver.step(T0)
    (shot,) = driver.step(T0 + 7).shots
    return shot


def sent(headers: Headers, value: bytes | None = b"v", key: bytes | None = None) -> Shot:
    driver = Driver()
    driver.send(value, key, [("belfry-tenant", b"demo"), ("belfry-id", b"a"), *headers])
    driver.step(T0)
    (shot,) = driver.step(T0 + HOUR).shots
    return shot


@pytest.mark.parametrize("payload", [b"\x00\xff anything", b"", None])
def test_a_payload_comes_out_verbatim(payload: bytes | None) -> None:
    assert fired(payload=payload).value == payload


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({}, b"a"),
        ({"group": "g"}, b"g"),
        ({"group": "g", "key": b"k"}, b"k"),
        ({"key": b"\xff"}, b"\xff"),
        ({"key": b"", "group": "g"}, b""),
        ({"schedule_id": "é"}, "é".encode()),
    ],
)
def test_the_key_is_the_schedules_else_the_group_else_the_id(
    fields: dict[str, Any], key: bytes
) -> None:
    shot = fired(**fields)
    assert shot.key == key
    assert shot.group == (b"g" if "group" in fields else None)


def test_belfrys_headers_say_which_fire_it_is() -> None:
    assert fired().headers == [
        ("belfry-fire-id", fire_id(b"demo/a", generation_at(0, 0), 1, T0 + 5)),
        ("belfry-schedule-id", b"a"),
        ("belfry-scheduled-at", b"2027-01-15T08:00:00.005Z"),
        ("belfry-occurrence", b"0"),
        ("belfry-schedule-tenant", b"demo"),
        ("belfry-schedule-version", b"1"),
    ]


def test_tenant_version_group_and_type_are_on_every_event_that_comes_out() -> None:
    driver = Driver()
    asked: dict[str, Any] = {"kind": "EVERY", "interval_ms": HOUR, "group": "g", "event_type": "t"}
    driver.ask(**asked)
    driver.ask(**asked, payload=b"2")
    driver.step(T0)
    driver.ask(action="TRIGGER")
    shots = [*driver.step(T0).shots, *driver.step(T0 + HOUR).shots]
    assert len(shots) == 2
    for shot in shots:
        assert shot.headers[4:] == [
            ("belfry-schedule-tenant", b"demo"),
            ("belfry-schedule-version", b"2"),
            ("belfry-schedule-group", b"g"),
            ("belfry-schedule-type", b"t"),
        ]


def test_users_headers_keep_order_repeats_and_nulls() -> None:
    given = [("b", b"1"), ("a", None), ("b", b""), ("é", b"\xff")]
    shot = fired(headers=[{"name": name, "value": value} for name, value in given])
    assert shot.headers[:4] == given
    assert tuple(name for name, _ in shot.headers[4:]) == BELFRYS


def test_a_record_with_belfry_headers_schedules_itself() -> None:
    given: Headers = [("b", b"1"), ("a", None), ("b", b"2")]
    shot = sent([("belfry-in", b"5m"), *given], b"its value", b"its key")
    assert (shot.key, shot.value, shot.headers[:3]) == (b"its key", b"its value", given)
    assert tuple(name for name, _ in shot.headers[3:]) == BELFRYS


DECEIVING = ["belfry-fire-id", "belfry-schedule-id", "Belfry-Fire-Id", "belfry-dry-run", "belfry-x"]


@pytest.mark.parametrize("name", DECEIVING)
def test_no_header_of_a_user_is_taken_for_belfrys(name: str) -> None:
    given = [("b", b"1"), (name, b"somebody else's"), ("a", b"belfry-"), (name, None)]
    shot = fired(headers=[{"name": each, "value": value} for each, value in given])
    assert shot.headers[:2] == [("b", b"1"), ("a", b"belfry-")]
    assert tuple(name for name, _ in shot.headers[2:]) == BELFRYS


def test_what_fired_and_is_scheduled_anew_carries_the_headers_of_its_own_fire_alone() -> None:
    before = fired(headers=[{"name": "mine", "value": b"1"}])
    again = sent([("belfry-in", b"5m"), *before.headers])
    assert tuple(name for name, _ in again.headers) == ("mine", *BELFRYS)
    assert again.header("belfry-fire-id") != before.header("belfry-fire-id")


def test_a_retry_keeps_what_says_which_delivery_it_is() -> None:
    header = {"name": "belfry-delivery", "value": b"state"}
    shot = fired(tenant="belfry-deliveries", headers=[header])
    assert shot.header("belfry-delivery") == b"state"


def test_a_null_value_with_belfry_headers_schedules_a_tombstone() -> None:
    shot = sent([("belfry-in", b"5m")], None, b"its key")
    assert (shot.key, shot.value) == (b"its key", None)


def test_the_trace_of_a_request_travels_with_its_event() -> None:
    driver = Driver()
    traced: Headers = [("traceparent", b"00-1"), ("other", b"x"), ("tracestate", b"s")]
    driver.ask(at=T0 + 5)
    offset, timestamp_ms, key, value, _ = driver.source.pop()
    driver.source.append((offset, timestamp_ms, key, value, traced))
    driver.step(T0)
    (shot,) = driver.step(T0 + 5).shots
    assert shot.headers[:2] == [("traceparent", b"00-1"), ("tracestate", b"s")]
    assert len(shot.headers) == 2 + len(BELFRYS)


def test_a_trace_among_the_users_headers_wins() -> None:
    shot = sent([("belfry-in", b"5m"), ("traceparent", b"00-1")])
    assert [name for name, _ in shot.headers].count("traceparent") == 1


def test_an_envelope_is_avro_behind_the_tenants_head() -> None:
    driver = Driver(delivery=Delivery.ENVELOPE)
    driver.note(envelope_head=b"head!")
    driver.ask(at=T0 + 5, payload=b"p", group="g", event_type="t", key=b"k")
    driver.step(T0)
    (shot,) = driver.step(T0 + 7).shots
    assert (shot.key, shot.group) == (b"k", b"g")
    assert shot.value is not None
    assert shot.value[:5] == b"head!"
    identity = shot.header("belfry-fire-id")
    assert identity is not None
    assert decode_fired(shot.value[5:]) == FiredEvent(
        tenant="demo",
        schedule_id="a",
        fire_id=identity.decode(),
        version=1,
        occurrence=0,
        scheduled_at=T0 + 5,
        due_at=T0 + 5,
        fired_at=T0 + 7,
        event_type="t",
        group="g",
        missed=0,
        payload=b"p",
    )


def test_an_envelope_of_nothing_says_null() -> None:
    shot = fired(Delivery.ENVELOPE)
    assert shot.value is not None
    event = decode_fired(shot.value)
    assert (event.payload, event.group, event.event_type) == (None, None, None)


def test_an_extra_fire_is_numbered_minus_one_in_its_envelope() -> None:
    driver = Driver(delivery=Delivery.ENVELOPE)
    driver.ask(at=T0 + HOUR)
    driver.ask(action="TRIGGER")
    (shot,) = driver.step(T0 + 3).shots
    assert shot.value is not None
    event = decode_fired(shot.value)
    assert (event.occurrence, event.scheduled_at, event.due_at) == (-1, T0 + 3, T0 + 3)


def test_jitter_moves_what_is_due_and_not_the_nominal_instant() -> None:
    #  nominal ───jitter───► due
    late_ms = jitter_ms(b"demo/a", T0 + 5, 60_000)
    assert late_ms > 0
    driver = Driver()
    driver.ask(at=T0 + 5, jitter_ms=60_000)
    driver.step(T0)
    assert driver.engine.next_due_ms() == T0 + 5 + late_ms
    assert driver.step(T0 + 5 + late_ms - 1).shots == []
    (shot,) = driver.step(T0 + 5 + late_ms).shots
    assert shot.header("belfry-scheduled-at") == b"2027-01-15T08:00:00.005Z"


def test_a_delay_counts_from_the_timestamp_of_the_record() -> None:
    #  record     taken in    due
    #  T0         T0 + 40     T0 + 100
    driver = Driver()
    driver.ask(kind="AFTER", delay_ms=100, timestamp_ms=T0)
    driver.step(T0 + 40)
    assert driver.engine.next_due_ms() == T0 + 100


def test_a_record_without_timestamp_counts_from_now() -> None:
    for timestamp_ms in (-1, 0):
        driver = Driver()
        driver.ask(kind="AFTER", delay_ms=100, timestamp_ms=timestamp_ms)
        driver.step(T0 + 40)
        assert driver.engine.next_due_ms() == T0 + 140


@pytest.mark.parametrize("timestamp_ms", [-(2**63), 10**12, T0 * 1000, 2**63 - 1])
def test_no_timestamp_ends_a_worker(timestamp_ms: int) -> None:
    driver = Driver()
    driver.ask(kind="AFTER", delay_ms=2**40, timestamp_ms=timestamp_ms, jitter_ms=3)
    assert len(driver.step(T0).outcomes) == 1
    driver.run(T0 + HOUR)


@pytest.mark.parametrize("level", Level)
def test_who_wants_all_is_told_of_fires(level: Level) -> None:
    driver = Driver(level)
    driver.ask(at=T0 + 5)
    told = [str(each.outcome) for each in driver.step(T0).effects.lifecycle]
    assert told == (["ACCEPTED"] if level is not Level.FAILURES else [])
    step: Step = driver.step(T0 + 7)
    if level is Level.ALL:
        (event,) = step.effects.lifecycle
        assert (str(event.outcome), event.due_at, event.at) == ("FIRED", T0 + 5, T0 + 7)
    else:
        assert step.effects.lifecycle == []


def test_lateness_and_ids_are_counted_per_fire() -> None:
    driver = Driver()
    driver.ask(schedule_id="a", at=T0 + 5)
    driver.ask(schedule_id="b", at=T0 + 6)
    driver.step(T0)
    effects = driver.step(T0 + 7).effects
    assert effects.lateness_ms == [2, 1]
    assert effects.fire_ids == [shot.header("belfry-fire-id") for shot in Step(effects).shots]
    assert effects.manifest is not None
    assert effects.manifest.fired == 2


@pytest.mark.parametrize(
    ("name", "value", "is_made"),
    [
        ("content-type", b"application/json", True),
        ("content-type", None, True),
        ("ce_specversion", b"1.0", False),
        ("content-type", b"application/cloudevents+json; charset=UTF-8", False),
        ("Content-Type", b"Application/CloudEvents-batch+json", False),
    ],
)
def test_a_cloudevent_of_the_users_stays_the_only_one(
    name: str, value: bytes | None, is_made: bool
) -> None:
    driver = Driver()
    driver.apply("demo", cloudevents=True)
    driver.ask(at=T0 + 5, headers=[{"name": name, "value": value}])
    driver.step(T0)
    (shot,) = driver.step(T0 + 7).shots
    assert ("ce_id" in dict(shot.headers)) is is_made


@pytest.mark.parametrize("cloudevents", [False, True])
@pytest.mark.parametrize("delivery", Delivery)
def test_what_is_accepted_fits_into_its_topic(delivery: Delivery, cloudevents: bool) -> None:
    """The topic takes `max_record_bytes` and 1 024 bytes besides; a larger record stops its tenant.

    All texts are as long as they may be, and a backfill of as long a name fires it.
    """
    tenant, text, limit = "t" * 100, "x" * 255, 20_000
    driver = Driver(delivery=delivery)
    driver.tenants.names = TopicNames("p" * 60)
    driver.apply(tenant, cloudevents=cloudevents, source_header=True)
    driver.note(tenant, max_record_bytes=limit)
    fields: dict[str, Any] = {
        "tenant": tenant,
        "schedule_id": text,
        "group": text,
        "event_type": text,
        "kind": "EVERY",
        "interval_ms": 1_000,
        "start_at": T0 - 10_000,
    }
    driver.ask(**fields, payload=b"p" * limit)
    (refused,) = driver.step(T0, fire=False).effects.lifecycle
    would_take = int((refused.reason or "").split()[5])
    driver.ask(**fields, payload=b"p" * (2 * limit - would_take))
    span = f'{{"action":"BACKFILL","range_from":{T0 - 5_000},"range_until":{T0}}}'
    driver.ask(tenant=tenant, action="BULK", schedule_id="j" * 255, bulk=span)
    assert driver.step(T0, fire=False).outcomes == ["ACCEPTED", "ACCEPTED"]
    effects = driver.engine.advance_jobs(T0 + 1_000, Budget(10, 10))
    sizes = [_size(Shot(*each)) for each in effects.fired]
    assert max(sizes) <= limit + 1_024 - BATCH_BYTES


def _size(shot: Shot) -> int:
    """Bytes of a record in its batch: its fields, and up to three for each of their lengths."""
    named = sum(len(name) + len(value or b"") + 6 for name, value in shot.headers)
    return len(shot.key or b"") + len(shot.value or b"") + named + 15
