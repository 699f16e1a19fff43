"""Values are taken apart as Confluent's and Avro's own libraries put them together."""

from __future__ import annotations

from io import BytesIO
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import (
    header_schema_id_serializer,
    prefix_schema_id_serializer,
)
from confluent_kafka.schema_registry.common.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext

from belfry.wire import catalogue
from belfry.wire.framing import VALUE_SCHEMA_ID, Frame, FrameKind, prefix, read_frame, single_object

GUID = UUID("c7d0d4a0-5a1f-4e8f-9a55-2f1c6f3f9d10")


def test_prefix_form() -> None:
    value = b"\x00\x00\x00\x01\x02body"
    assert read_frame(value) == Frame(FrameKind.PREFIX, 258, b"body")
    assert read_frame(value, [("other", b"x"), ("null", None)]).kind is FrameKind.PREFIX


def test_the_largest_id_is_unsigned() -> None:
    assert read_frame(b"\x00\xff\xff\xff\xffb").reference == 2**32 - 1


def test_prefix_is_confluents() -> None:
    theirs = prefix_schema_id_serializer(b"body", None, SchemaId("AVRO", schema_id=258))
    assert prefix(258) + b"body" == theirs


def test_header_form_is_confluents() -> None:
    headers: list[tuple[str, bytes | None]] = [("mine", b"1")]
    context = SerializationContext("t", MessageField.VALUE, headers)  # type: ignore[arg-type]
    value = header_schema_id_serializer(b"body", context, SchemaId("AVRO", guid=str(GUID)))
    assert headers[-1][0] == VALUE_SCHEMA_ID
    assert read_frame(value, headers) == Frame(FrameKind.HEADER, GUID.bytes, b"body")


def test_a_body_with_a_header_may_begin_like_any_frame() -> None:
    headers = [(VALUE_SCHEMA_ID, b"\x01" + GUID.bytes)]
    for body in (b"\x00\x00\x00\x00\x01b", single_object("TenantPolicy") + b"b"):
        assert read_frame(body, headers) == Frame(FrameKind.HEADER, GUID.bytes, body)


def test_an_id_in_the_header_leaves_the_value_whole() -> None:
    for number in (7, 1 << 24):
        headers = [(VALUE_SCHEMA_ID, prefix(number))]
        assert read_frame(b"body", headers) == Frame(FrameKind.PREFIX, number, b"body")


def test_single_object_form() -> None:
    head = single_object("ScheduleRequest")
    assert head[:2] == b"\xc3\x01"
    frame = read_frame(head + b"body")
    assert frame == Frame(
        FrameKind.SINGLE_OBJECT, catalogue.fingerprint("ScheduleRequest"), b"body"
    )


@pytest.mark.parametrize(
    "value",
    [b"", b"\x00", b"\x00\x00\x00\x00\x01", b"{}", b"\xc3\x01", single_object("FiredEvent")],
)
def test_anything_else_is_unframed_and_whole(value: bytes) -> None:
    assert read_frame(value, None) == Frame(FrameKind.UNFRAMED, b"", value)


@pytest.mark.parametrize(
    "given", [None, b"", b"\x01short", b"\x02" + GUID.bytes, b"\x00" * 17, b"\x02" + b"\x00" * 4]
)
def test_a_damaged_header_is_unframed(given: Any) -> None:
    value = b"\x00\x00\x00\x00\x01b"
    found = read_frame(value, [(VALUE_SCHEMA_ID, given)])
    assert found == Frame(FrameKind.UNFRAMED, b"", value)


def test_confluents_reader_agrees_on_what_it_accepts() -> None:
    theirs = SchemaId("AVRO")
    rest = theirs.from_bytes(BytesIO(prefix(99) + b"body"))
    ours = read_frame(prefix(99) + b"body")
    assert (ours.reference, ours.body) == (theirs.id, rest.read())
