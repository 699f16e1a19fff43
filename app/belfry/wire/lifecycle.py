"""`LifecycleEvent`: the record with the outcome of a request, an occurrence or a delivery.

    about            outcome             fields that it has besides tenant, schedule and instant
    a request        ACCEPTED, …         request_id, version, due_at, code, reason, source_…
    an occurrence    FIRED, MISSED       fire_id (FIRED), version, due_at
    a delivery       DELIVERED, FAILED   fire_id, target, attempt
    a fire without acknowledgement       FAILED with the code ack_timeout, fire_id

`lifecycle_heads.py` has the readers of the head alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final

from belfry.schedules.outcomes import Outcome
from belfry.wire import catalogue
from belfry.wire.catalogue import RecordReader
from belfry.wire.record import Headers

NAME = "LifecycleEvent"


@dataclass(slots=True, kw_only=True)
class LifecycleEvent:
    """Fields of the schema, in its order; instants in epoch milliseconds.

    `generation` is not among them: readers of every release have to read the body, so it travels in
    a header of the record.
    """

    tenant: str
    schedule_id: str
    outcome: Outcome
    request_id: str | None = None
    fire_id: str | None = None
    version: int | None = None
    at: int
    due_at: int | None = None
    code: str | None = None
    reason: str | None = None
    target: str | None = None
    attempt: int | None = None
    source_topic: str | None = None
    source_partition: int | None = None
    source_offset: int | None = None
    generation: int | None = None


# The generation of its schedule that a verdict is about: `schedules.identity.generation_of`, in
# digits.
GENERATION: Final = "belfry-generation"
_FIELDS = tuple(field.name for field in fields(LifecycleEvent) if field.name != "generation")
_NULL: Final = b"\0"
_SOME: Final = b"\2"
# The bytes below 0x80, each as a string of one.
ONE_BYTE: Final = tuple(bytes((number,)) for number in range(0x80))
_MORE_FOLLOWS: Final = tuple(bytes((number | 0x80,)) for number in range(0x80))
_OUTCOME_BYTES: Final = {each: ONE_BYTE[2 * place] for place, each in enumerate(Outcome)}


def record_of(event: LifecycleEvent) -> dict[str, Any]:
    """An event as a record of its schema, instants as epoch milliseconds."""
    return {name: getattr(event, name) for name in _FIELDS}


def headers_of(event: LifecycleEvent) -> Headers:
    """Headers of an event's record."""
    if event.generation is None:
        return []
    return [(GENERATION, b"%d" % event.generation)]


def generation_in(headers: Headers | None) -> int | None:
    """The generation that a record's headers name, or None."""
    for name, value in headers or ():
        if name == GENERATION and value is not None and value.isdigit() and len(value) <= 10:
            return int(value)
    return None


def encode_lifecycle(event: LifecycleEvent) -> bytes:
    """Body of a lifecycle event (no frame), as fastavro writes it, in a third of the time.

    A property test compares both.
    """
    return b"".join(
        (
            _known(event.tenant),
            avro_string(event.schedule_id),
            _OUTCOME_BYTES[event.outcome],
            _NULL if event.request_id is None else _SOME + avro_string(event.request_id),
            _NULL if event.fire_id is None else _SOME + avro_string(event.fire_id),
            _NULL if event.version is None else _SOME + avro_long(event.version),
            avro_instant(event.at),
            _NULL if event.due_at is None else _SOME + avro_long(event.due_at),
            _NULL if event.code is None else _SOME + avro_string(event.code),
            _NULL if event.reason is None else _SOME + avro_string(event.reason),
            _NULL if event.target is None else _SOME + avro_string(event.target),
            _NULL if event.attempt is None else _SOME + avro_long(event.attempt),
            _NULL if event.source_topic is None else _SOME + _known(event.source_topic),
            _NULL if event.source_partition is None else _SOME + avro_long(event.source_partition),
            _NULL if event.source_offset is None else _SOME + avro_long(event.source_offset),
        )
    )


def avro_string(text: str) -> bytes:
    """A text as Avro writes it."""
    encoded = text.encode()
    size = len(encoded)
    return (ONE_BYTE[2 * size] if size < 0x40 else avro_long(size)) + encoded


def avro_long(number: int) -> bytes:
    """Avro's zigzag and base 128, of a number that fits 64 bits."""
    number = number << 1 ^ number >> 63
    if number < 0x80:
        return ONE_BYTE[number]
    if number < 0x4000:
        return _MORE_FOLLOWS[number & 0x7F] + ONE_BYTE[number >> 7]
    return _MORE_FOLLOWS[number & 0x7F] + _MORE_FOLLOWS[number >> 7 & 0x7F] + upper(number >> 14)


def _base_128(number: int) -> bytes:
    """An unsigned number in groups of seven bits, the lowest first."""
    coded = bytearray()
    while number >= 0x80:
        coded.append(number & 0x7F | 0x80)
        number >>= 7
    coded.append(number)
    return bytes(coded)


# Few values: all events of a step have one instant, and there are few tenants and topics.
avro_instant = lru_cache(maxsize=8)(avro_long)
_known = lru_cache(maxsize=1024)(avro_string)
# Offsets rise one by one, and instants within seconds only differ in their lower bits.
upper = lru_cache(maxsize=1024)(_base_128)


def decode_lifecycle(body: bytes, reader: RecordReader | None = None) -> LifecycleEvent:
    """A lifecycle event, written with the schema of `reader` (belfry's own if none is given).

    An outcome that is newer than this release reads as UNKNOWN.  Raises `MalformedError`.
    """
    record = (reader or catalogue.own_reader(NAME)).read(body)
    record["outcome"] = Outcome(record["outcome"])
    return LifecycleEvent(**record)


def encode_record(record: dict[str, Any]) -> bytes:
    """Body of a decoded event, in this release's schema."""
    return catalogue.encode(NAME, record)
