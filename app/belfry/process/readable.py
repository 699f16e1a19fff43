"""Bytes of other writers, made readable: a request at its place, a payload in Avro.

Both look a writer's schema up in the registry, and decode a bounded number of values: an unsafe
schema is refused, and values are counted before any of them is made. Both raise the errors of
`look`: if a registry does not answer, the schema may still exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any, Final

from confluent_kafka import Message
from fastavro import parse_schema, schemaless_reader

from belfry.api.workers.kept import ReadableValue, UnreadableValue
from belfry.client.decoding import Look
from belfry.kafka.record_headers import headers_of
from belfry.schedules.fields import EMPTY
from belfry.schedules.rejections import Rejection
from belfry.wire import catalogue
from belfry.wire.bounds import Bounds
from belfry.wire.framing import Frame, FrameKind, read_frame
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader
from belfry.wire.safety import MAX_VALUE_BYTES, unsafe_reason

# Fields of one request, not of the schedule that it defines.
_ABOUT_ITSELF: Final = frozenset({"request_id", "expected_version", "fire_id"})


def request_in(message: Message, look: Look | None) -> Mapping[str, Any] | None:
    """The fields of a request that have values; None if the record is not a readable request.

    Instants are epoch milliseconds.
    """
    reader = RequestReader()
    (headers,) = headers_of([message])
    at = message.offset(), message.timestamp()[1]
    record: Any = (*at, message.key(), message.value(), headers)
    _learn(reader, record, look)
    found = reader.read_whole(record)
    if isinstance(found, Rejection):
        return None
    empty: Mapping[str, Any] = EMPTY
    return {
        name: value
        for name, value in found.items()
        if name not in _ABOUT_ITSELF and value not in (None, [], empty.get(name))
    }


def _learn(reader: RequestReader, record: SourceRecord, look: Look | None) -> None:
    reference = reader.unknown_schema(record)
    writer = None if reference is None or look is None else look(reference)
    if reference is not None and writer is not None:
        reader.learn(reference, writer)


def avro_in(value: bytes, look: Look | None) -> ReadableValue:
    """A decoded value, by the Avro schema that its first bytes name; raises `UnreadableValue`."""
    frame = read_frame(value)
    if frame.kind is FrameKind.UNFRAMED:
        raise UnreadableValue("It begins with no id of a schema: neither 00, nor c301.")
    writer = _writer(frame, look)
    if writer is None:
        raise UnreadableValue("Its schema is not known here: no registry has it under this id.")
    unsafe = unsafe_reason(writer)
    if unsafe is not None:
        raise UnreadableValue(f"Its schema is not decoded: {unsafe}.")
    if len(frame.body) > MAX_VALUE_BYTES:
        raise UnreadableValue(f"It has {len(value)} bytes; at most {MAX_VALUE_BYTES} are decoded.")
    return _decoded(frame.body, writer)


def _writer(frame: Frame, look: Look | None) -> Any:
    if isinstance(frame.reference, bytes) and frame.kind is FrameKind.SINGLE_OBJECT:
        # A registry does not know fingerprints.
        return catalogue.by_fingerprint(frame.reference)
    return None if look is None else look(frame.reference)


def _decoded(body: bytes, writer: Any) -> ReadableValue:
    try:
        parsed: Any = parse_schema(catalogue.without_logical_types(writer))
        why = Bounds(parsed).problem(body)
        stream = BytesIO(body)
        found = None if why else schemaless_reader(stream, parsed, None)
    except Exception as error:  # noqa: BLE001  # any error of fastavro for foreign bytes
        raise UnreadableValue(f"It is not what its schema says: {type(error).__name__}.") from None
    left = len(body) - stream.tell()
    if why or left:
        raise UnreadableValue(why or f"{left} bytes follow what its schema says.")
    name = parsed.get("name") if isinstance(parsed, dict) else None
    return ReadableValue(str(name or "a value without a name"), found)
