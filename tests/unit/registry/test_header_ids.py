"""Schema ids in a header, as Confluent's own serializer writes them with its mock registry."""

from __future__ import annotations

from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from belfry.wire import catalogue, framing
from belfry.wire.requests import RequestReader

REQUEST = {"tenant": "demo", "schedule_id": "a", "at": 1_800_000_000_000, "payload": b"p"}


def written() -> tuple[bytes, list[Any]]:
    """Value and headers of a request that somebody else's serializer wrote."""
    registry = SchemaRegistryClient.new_client({"url": "mock://headers"})
    serializer = AvroSerializer(
        registry,
        catalogue.text("ScheduleRequest"),
        conf={"schema.id.serializer": header_schema_id_serializer},
    )
    headers: list[Any] = []
    context = SerializationContext("belfry.schedules", MessageField.VALUE, headers)
    whole = {field["name"]: field.get("default") for field in _fields()} | REQUEST
    return serializer(whole, context), headers


def _fields() -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = catalogue.schema("ScheduleRequest")["fields"]
    return fields


def test_a_request_with_its_schema_in_a_header_is_read() -> None:
    value, headers = written()
    assert framing.read_frame(value, headers).kind is framing.FrameKind.HEADER
    record = (0, 0, None, value, headers)
    reader = RequestReader()
    (reference,) = reader.unknown_schemas([record])
    reader.learn(reference, catalogue.schema("ScheduleRequest"))
    request: Any = reader.read_whole(record)
    assert {name: request[name] for name in REQUEST} == REQUEST
