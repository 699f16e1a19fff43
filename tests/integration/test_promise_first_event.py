"""A first event, sent with whatever a stranger has at hand, comes out once and as it was."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from belfry.devstack import Stack
from tests.acceptance.harness.reading import fired_event_of, lifecycle_of, read_all
from tests.acceptance.harness.requests import REQUEST_TEXT, request
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = pytest.mark.slow

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def site(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A belfry with a registry that tells of every outcome."""
    name = f"first-{uuid.uuid4().hex[:8]}"
    told = {"SCHEMA_REGISTRY_URL": stack.schema_registry_url, "LIFECYCLE": "ALL"}
    with Site(stack.bootstrap_servers, name, tmp_path_factory.mktemp("first"), **told) as site:
        site.worker(REGISTRY_AUTO_REGISTER="true").start().wait_ready()
        yield site


def by_confluent(site: Site, url: str, record: dict[str, object]) -> bytes:
    """Bytes of a request by Confluent's own serializer, which registers the schema."""
    context = SerializationContext(site.topic("schedules"), MessageField.VALUE)
    with SchemaRegistryClient({"url": url}) as client:
        made = AvroSerializer(client, REQUEST_TEXT)(record, context)
    assert isinstance(made, bytes)
    return made


def test_avro_by_confluents_own_serializer(site: Site, stack: Stack) -> None:
    due_ms = now_ms() + 500
    record = {
        "tenant": "avro",
        "schedule_id": "order/1",
        "at": due_ms,
        "key": b"\0k",
        "payload": b"\xff\0",
        "headers": [{"name": "n", "value": None}, {"name": "n", "value": b"\xff"}],
        "request_id": "avro-1",
    }
    site.send(by_confluent(site, stack.schema_registry_url, record), key=b"avro")
    (fired,) = site.wait_fired("avro", 1)
    assert (fired.key, fired.value) == (b"\0k", b"\xff\0")
    assert fired.headers[:2] == [("n", None), ("n", b"\xff")]
    assert [name for name, _ in fired.headers[2:]] == [
        "belfry-fire-id",
        "belfry-schedule-id",
        "belfry-scheduled-at",
        "belfry-occurrence",
        "belfry-schedule-tenant",
        "belfry-schedule-version",
    ]
    assert fired.header("belfry-schedule-id") == b"order/1"
    assert fired.header("belfry-occurrence") == b"0"
    told = site.outcome("avro-1")
    assert (told["outcome"], told["version"]) == ("ACCEPTED", 1)


def test_headers_alone(site: Site) -> None:
    site.send(
        b"the value",
        key=b"the key",
        headers=[
            ("belfry-tenant", b"plain"),
            ("belfry-id", b"hello"),
            ("belfry-in", b"500ms"),
            ("mine", b"1"),
            ("mine", None),
        ],
    )
    (fired,) = site.wait_fired("plain", 1)
    assert (fired.key, fired.value) == (b"the key", b"the value")
    assert fired.headers[:2] == [("mine", b"1"), ("mine", None)]


def test_a_null_value_by_headers_schedules_a_tombstone(site: Site) -> None:
    site.send(
        None,
        key=b"row 7",
        headers=[("belfry-tenant", b"tomb"), ("belfry-id", b"x"), ("belfry-in", b"PT0.3S")],
    )
    (fired,) = site.wait_fired("tomb", 1)
    assert (fired.key, fired.value) == (b"row 7", None)


def test_a_null_value_cancels(site: Site) -> None:
    site.ask("nulls", "to/go", at=now_ms() + 2_000, payload=b"never")
    site.ask("nulls", "to/stay", at=now_ms() + 2_500, payload=b"stays")
    site.send(None, key=b"nulls/to/go")
    found = wait_for("the cancel's outcome", lambda: cancelled(site))
    assert found == {"to/go"}
    assert [record.value for record in site.wait_fired("nulls", 1)] == [b"stays"]


def cancelled(site: Site) -> set[str]:
    """Ids of schedules of tenant `nulls` that were cancelled."""
    events = map(lifecycle_of, read_all(site.bootstrap, site.topic("lifecycle")))
    return {
        event["schedule_id"]
        for event in events
        if event["tenant"] == "nulls" and event["outcome"] == "CANCELLED"
    }


def test_single_object_encoding_needs_no_registry(site: Site) -> None:
    site.send(request("single", "s", at=now_ms() + 300, payload=b"1"), key=b"single")
    assert [record.value for record in site.wait_fired("single", 1)] == [b"1"]


def test_an_instant_in_the_past_fires_at_once(site: Site) -> None:
    sent = site.ask("past", "p", at=now_ms() - 86_400_000, payload=b"late")
    (fired,) = site.wait_fired("past", 1)
    assert fired.timestamp_ms - sent.timestamp()[1] < 2_000


def test_a_name_that_kafka_cannot_keep_apart_is_told_at_once(site: Site) -> None:
    """Another worker has made the other topic a moment ago; only the controller knows."""
    site.create_topics([site.topic("fired.pay.eu")], {})
    site.ask("pay_eu", "late", at=now_ms() + HOUR_MS, request_id="late")
    told = site.outcome("late")
    assert (told["outcome"], told["code"]) == ("REJECTED", "tenant_collides")
    site.ask("pay.eu", "first", at=now_ms(), payload=b"paid")
    assert [record.value for record in site.wait_fired("pay.eu", 1)] == [b"paid"]


def test_an_envelope_is_read_by_confluents_own_deserializer(site: Site, stack: Stack) -> None:
    worker = site.workers[0]
    assert worker.stop() == 0
    enveloped = site.worker(REGISTRY_AUTO_REGISTER="true", DEFAULT_DELIVERY="ENVELOPE")
    enveloped.start().wait_ready()
    due_ms = now_ms() + 300
    site.ask("letters", "e", at=due_ms, payload=b"inside", group="g", event_type="t")
    (fired,) = site.wait_fired("letters", 1)
    context = SerializationContext(fired.topic, MessageField.VALUE)
    with SchemaRegistryClient({"url": stack.schema_registry_url}) as client:
        event = AvroDeserializer(client)(fired.value, context)
    assert isinstance(event, dict)
    assert fired.value is not None
    assert event["payload"] == fired_event_of(fired.value)["payload"] == b"inside"
    assert (event["tenant"], event["schedule_id"]) == ("letters", "e")
    assert (event["group"], event["event_type"], event["missed"]) == ("g", "t", 0)
    assert event["fire_id"] == (fired.header("belfry-fire-id") or b"").decode()
    assert round(event["due_at"].timestamp() * 1000) == due_ms
    assert fired.key == b"g"
