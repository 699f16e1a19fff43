"""A real registry takes our schemas, guards them, and what its clients write is read here."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext

from belfry.devstack import Apicurio as Server
from belfry.registry.answers import (
    Missing,
    RegistryUnreachable,
    RegistryUnreachableError,
    SchemaRefusedError,
    Unusable,
)
from belfry.registry.client import FULL_TRANSITIVE, Registry
from belfry.registry.subjects import check_all, fired_event_id, publish_all, subjects
from belfry.settings import ClusterSettings, Settings
from belfry.wire import catalogue
from belfry.wire.catalogue import RecordReader
from belfry.wire.fired import FiredEvent, encode_fired
from belfry.wire.framing import FrameKind, prefix, read_frame

# The registry of this session counts its ids from 1, so this one is not there.
NOT_THERE = 2_000_000_000


@pytest.fixture
def registry(schema_registry: str) -> Iterator[Registry]:
    registry = Registry(schema_registry)
    yield registry
    registry.close()


@pytest.fixture
def client(schema_registry: str) -> Iterator[SchemaRegistryClient]:
    """Confluent's client, as other applications use it."""
    with SchemaRegistryClient({"url": schema_registry}) as client:
        yield client


@pytest.fixture
def settings(schema_registry: str, unique: Callable[[str], str]) -> Settings:
    """Settings of a belfry whose subjects nobody else has."""
    prefix_of_topics = unique("mine") + "."
    return Settings(
        schema_registry_url=schema_registry,
        cluster=ClusterSettings(topic_prefix=prefix_of_topics),
        registry_auto_register=True,
    )


def with_field(name: str, field: dict[str, Any]) -> str:
    """The text of our schema with one more field."""
    schema = copy.deepcopy(catalogue.schema(name))
    schema["fields"].append(field)
    return json.dumps(schema)


def test_all_subjects_are_published_and_then_fine(registry: Registry, settings: Settings) -> None:
    assert all("does not exist" in problem for problem in check_all(registry, settings))
    assert len(check_all(registry, settings)) == 5
    ids = publish_all(registry, settings)
    assert check_all(registry, settings) == []
    assert publish_all(registry, settings) == ids
    assert set(ids) == set(subjects(settings))
    for subject, name in subjects(settings).items():
        assert registry.writer_schema(ids[subject]) == catalogue.schema(name)
        assert registry.id_of(subject, name) == ids[subject]


def test_every_subject_is_full_transitive(
    registry: Registry, settings: Settings, client: SchemaRegistryClient
) -> None:
    publish_all(registry, settings)
    for subject in subjects(settings):
        assert client.get_compatibility(subject) == FULL_TRANSITIVE


@pytest.mark.parametrize("name", catalogue.names())
def test_a_required_field_is_refused_and_an_optional_one_is_not(
    registry: Registry, client: SchemaRegistryClient, unique: Callable[[str], str], name: str
) -> None:
    subject = unique("topic") + "-value"
    registry.publish(subject, name)
    required = Schema(with_field(name, {"name": "boom", "type": "string"}))
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema(subject, required)
    assert refused.value.http_status_code == 409
    optional = with_field(name, {"name": "fine", "type": ["null", "string"], "default": None})
    assert client.register_schema(subject, Schema(optional)) > 0
    assert registry.check(subject, name) == []


def test_a_new_symbol_is_not_refused(
    registry: Registry, client: SchemaRegistryClient, unique: Callable[[str], str]
) -> None:
    subject = unique("topic") + "-value"
    registry.publish(subject, "LifecycleEvent")
    schema = copy.deepcopy(catalogue.schema("LifecycleEvent"))
    schema["fields"][2]["type"]["symbols"].append("EVAPORATED")
    assert client.register_schema(subject, Schema(json.dumps(schema))) > 0


def test_a_subject_of_somebody_else_is_a_problem_and_a_refusal(
    registry: Registry, client: SchemaRegistryClient, unique: Callable[[str], str]
) -> None:
    subject = unique("topic") + "-value"
    client.register_schema(subject, Schema(catalogue.text("FiredEvent")))
    client.set_compatibility(subject, FULL_TRANSITIVE)
    assert "incompatible" in registry.check(subject, "TenantPolicy")[0]
    with pytest.raises(SchemaRefusedError, match="refuses TenantPolicy"):
        registry.publish(subject, "TenantPolicy")


def test_a_weaker_level_is_a_problem(
    registry: Registry, client: SchemaRegistryClient, unique: Callable[[str], str]
) -> None:
    subject = unique("topic") + "-value"
    registry.publish(subject, "FiredEvent")
    client.set_compatibility(subject, "BACKWARD")
    assert "compatibility BACKWARD instead of" in registry.check(subject, "FiredEvent")[0]
    registry.ensure_compatibility(subject)
    assert registry.check(subject, "FiredEvent") == []


def test_an_unknown_id_is_missing(registry: Registry) -> None:
    assert isinstance(registry.writer_schema(NOT_THERE), Missing)
    assert isinstance(registry.writer_schema(2**32 - 1), Missing)
    assert isinstance(registry.writer_schema_by_guid(bytes(16)), Missing)


def test_a_bomb_is_unusable(
    registry: Registry, client: SchemaRegistryClient, unique: Callable[[str], str]
) -> None:
    tree = {"name": "next", "type": ["null", "ScheduleRequest"], "default": None}
    schema_id = client.register_schema(
        unique("topic") + "-value", Schema(with_field("ScheduleRequest", tree))
    )
    answer = registry.writer_schema(schema_id)
    assert isinstance(answer, Unusable)
    assert "contains itself" in answer.reason


def test_a_wrong_path_is_not_a_missing_schema(schema_registry: str) -> None:
    astray = Registry(schema_registry.replace("/ccompat/v7", "/nowhere"))
    assert isinstance(astray.writer_schema(1), RegistryUnreachable)
    with pytest.raises(RegistryUnreachableError):
        astray.publish("t-value", "FiredEvent")
    astray.close()


@pytest.mark.parametrize("extra", [False, True], ids=["our schema", "a writer of their own"])
def test_confluents_serializer_is_read(
    registry: Registry, client: SchemaRegistryClient, unique: Callable[[str], str], extra: bool
) -> None:
    topic = unique("topic")
    note = {"name": "note", "type": ["null", "string"], "default": None}
    text = with_field("ScheduleRequest", note) if extra else catalogue.text("ScheduleRequest")
    serialize = AvroSerializer(client, text, conf={"subject.name.strategy.type": "TOPIC"})
    at = datetime(2026, 12, 1, 9, 0, 0, 123_000, tzinfo=UTC)
    record = {"tenant": "demo", "schedule_id": "a", "at": at, "payload": b"\x00hello"}
    value = serialize(record, SerializationContext(topic, MessageField.VALUE))
    assert value is not None
    frame = read_frame(value, [])
    assert frame.kind is FrameKind.PREFIX
    assert isinstance(frame.reference, int)
    writer = registry.writer_schema(frame.reference)
    assert isinstance(writer, dict)
    read = RecordReader("ScheduleRequest", writer).read(frame.body)
    assert read["at"] == 1_796_115_600_123
    assert (read["tenant"], read["action"], read["payload"]) == ("demo", "UPSERT", b"\x00hello")


def test_confluents_deserializer_reads_us(
    registry: Registry, client: SchemaRegistryClient, settings: Settings
) -> None:
    topic = settings.topic("fired.demo")
    schema_id = fired_event_id(registry, settings, topic)
    assert schema_id is not None
    event = FiredEvent("demo", "a", "f", 1, 0, 1_000, 2_000, 3_000, payload=b"p")
    value = prefix(schema_id) + encode_fired(event)
    deserialize = AvroDeserializer(client)
    read: Any = deserialize(value, SerializationContext(topic, MessageField.VALUE))
    assert read["due_at"] == datetime.fromtimestamp(2, UTC)
    assert (read["schedule_id"], read["payload"]) == ("a", b"p")


@pytest.mark.slow
def test_a_stopped_registry_is_unreachable_soon_and_what_was_found_stays(tmp_path: Path) -> None:
    server = Server(tmp_path).start().wait_ready()
    try:
        registry = Registry(server.url)
        schema_id = registry.publish("t-value", "ScheduleRequest")
        assert isinstance(registry.writer_schema(schema_id), dict)
        server.stop()
        started = time.perf_counter()
        assert isinstance(registry.writer_schema(NOT_THERE), RegistryUnreachable)
        assert time.perf_counter() - started < 5
        assert isinstance(registry.writer_schema(schema_id), dict)
        with pytest.raises(RegistryUnreachableError):
            registry.check("t-value", "ScheduleRequest")
        server.start().wait_ready()
        assert isinstance(registry.writer_schema(NOT_THERE), Missing)
        registry.close()
    finally:
        server.stop()
