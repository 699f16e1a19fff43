"""From the bytes of a source record to a request, or to the reason for a refusal.

This is the hot path of ingest. Three shapes come in: Avro in one of three frames, the header
protocol, and a null value whose key is ``tenant/schedule_id`` (cancel). Decoding uses the writer's
schema and belfry's; if they are the same, fastavro reads without resolution, and never with logical
types. No input raises: whatever the bytes are, the answer is a `Request` or a `Rejection`.

    record ─► short, no headers, our schema? ─► `quick`: eight times as fast, stays bytes
        │ no
        ├─► headers belfry-…  ─► `headers`
        ├─► null value        ─► CANCEL of the schedule in its key
        └─► a frame           ─► schema known? ─► bounds ─► fastavro

The reader never asks the registry. Its caller finds the references that a batch needs
(`unknown_schemas`), asks for them in the shell, and hands in the answer by `settle`; the engine
sets requests aside that need others. Each reference stands for a reading (`readings`). One
partition has one reader and one thread that uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any, Final

from fastavro import schemaless_reader
from fastavro.read import SchemaResolutionError

from belfry.schedules.fields import EMPTY
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import PlainRequest, Request
from belfry.wire import catalogue, framing
from belfry.wire.bounds import UNCOUNTED_BYTES
from belfry.wire.headers import misspelt_header, read_headers, respelt_header, speaks_protocol
from belfry.wire.quick import read_plain
from belfry.wire.readings import (
    NAME,
    Reading,
    Reference,
    own_schemas,
    reading_of,
    refusal_of,
    shown,
)
from belfry.wire.record import Headers, SourceRecord, stamp_of
from belfry.wire.safety import MAX_VALUE_BYTES
from belfry.wire.unframed import not_a_request
from belfry.wire.unread import refused_unread, too_many

MOST_SCHEMAS: Final = 1_000
_REGISTERED: Final = frozenset({framing.FrameKind.HEADER, framing.FrameKind.PREFIX})


class RequestReader:
    """Decodes records; learns writers' schemas from the shell, which asks the registry."""

    def __init__(self) -> None:
        self._single_object = framing.single_object(NAME)
        self._readings: dict[Reference, Reading] = {catalogue.fingerprint(NAME): own_schemas()}
        # Ids (as they lie in a value) of belfry's own schema: records with these may be plain.
        self._own: set[bytes] = set()

    def unknown_schemas(
        self, records: Sequence[SourceRecord]
    ) -> dict[Reference, list[SourceRecord]]:
        """References to settle (`settle`, `refuse`) before `read`, and the records that have them.

        Only records that cannot be read without are looked at: the header protocol needs no schema.
        """
        heads = {value[:5] for _, _, _, value, _ in records if value and value[0] == 0}
        known = self._readings
        given = [headers for _, _, _, _, headers in records if headers]
        if all(int.from_bytes(head[1:], "big") in known for head in heads) and not any(
            name == framing.VALUE_SCHEMA_ID for headers in given for name, _ in headers
        ):
            return {}
        found: dict[Reference, list[SourceRecord]] = {}
        for record in records:
            reference = _needed(record)
            if reference is not None and reference not in known:
                found.setdefault(reference, []).append(record)
        return found

    def needed(self, record: SourceRecord) -> Reference | None:
        """The reference to a registry's schema without which a record cannot be read, or None."""
        return _needed(record)

    def unknown_schema(self, record: SourceRecord) -> Reference | None:
        """The same, if the reference is not settled yet; else None."""
        reference = _needed(record)
        return None if reference in self._readings else reference

    def settle(self, reference: Reference, reading: Reading) -> None:
        """Read records with this reference so from now on."""
        self._readings[reference] = reading
        own = not isinstance(reading, Rejection) and reading.ours is None
        if own and isinstance(reference, int):
            self._own.add(reference.to_bytes(4, "big"))

    def learn(self, reference: Reference, writer: dict[str, Any]) -> None:
        """`settle` with the writer's schema behind a reference."""
        self.settle(reference, reading_of(writer))

    def refuse(self, reference: Reference, rejection: Rejection) -> None:
        """Reject records with this reference until `forget`."""
        self._readings[reference] = rejection

    def forget(self, reference: Reference) -> None:
        """Ask again for this reference."""
        self._readings.pop(reference, None)
        if isinstance(reference, int):
            self._own.discard(reference.to_bytes(4, "big"))

    def forget_oldest(self) -> None:
        """Keep at most `MOST_SCHEMAS`: a forgotten schema that is met again is asked for again."""
        while len(self._readings) > MOST_SCHEMAS:
            self.forget(next(iter(self._readings)))

    def read(self, record: SourceRecord) -> Request | Rejection | PlainRequest:
        """The request in a record, or why there is none.  Never raises."""
        _, _, _, value, headers = record
        if not headers and value is not None and len(value) <= MAX_VALUE_BYTES:
            plain = self._read_plain(value)
            if plain is not None:
                return plain
        return self.read_whole(record)

    def _read_plain(self, value: bytes) -> PlainRequest | None:
        if value[:1] == b"\0":
            own = value[1:5] in self._own
            return read_plain(value, framing.PREFIX_BYTES) if own else None
        if value.startswith(self._single_object):
            return read_plain(value, framing.SINGLE_OBJECT_BYTES)
        return None

    def read_whole(self, record: SourceRecord) -> Request | Rejection:
        """The request in a record with all of its fields, or why there is none.  Never raises.

        A request that came in on a tenant's own topic is that tenant's, whatever it claims itself.
        """
        request = self._read_claim(record)
        stamp = stamp_of(record[4])
        if stamp is not None and not isinstance(request, Rejection):
            request["tenant"] = stamp
        return request

    def _read_claim(self, record: SourceRecord) -> Request | Rejection:
        _, _, key, value, headers = record
        if headers and (refused := refused_unread(headers) or too_many(headers)):
            return refused
        if headers and speaks_protocol(headers):
            return read_headers(record)
        if value is None:
            return _null(key, headers)
        if len(value) > MAX_VALUE_BYTES:
            return Rejection(
                "request_too_large",
                f"{len(value)} bytes; at most {MAX_VALUE_BYTES} are decoded: store the content"
                " elsewhere and schedule its address (claim check).",
            )
        frame = framing.read_frame(value, headers)
        if frame.kind is framing.FrameKind.UNFRAMED:
            return not_a_request(value, headers)
        return self._decode(frame.reference, frame.body)

    def _decode(self, reference: Reference, body: bytes) -> Request | Rejection:
        reading = self._readings.get(reference) or self._earlier(reference)
        if reading is None:
            return refusal_of(reference)
        if isinstance(reading, Rejection):
            return reading
        if len(body) > UNCOUNTED_BYTES and (why := reading.bounds.problem(body)):
            return Rejection("bad_fields", why)
        stream = BytesIO(body)
        try:
            found: Any = schemaless_reader(stream, reading.writer, reading.ours)
            request: Request = found
        except EOFError:
            # fastavro's own message has an address in memory; a reason must be the same for every
            # owner.
            return Rejection(
                "truncated",
                f"{len(body)} bytes are no {NAME} of schema {shown(reference)}: they end too soon.",
            )
        except SchemaResolutionError as error:
            return Rejection("schema_not_a_request", f"Not readable as {NAME}: {error}")
        except Exception as error:  # noqa: BLE001  # EOF, Index, Unicode: errors of its C code
            return Rejection(
                "truncated",
                f"{len(body)} bytes are no {NAME} of schema {shown(reference)}:"
                f" {type(error).__name__}: {error}",
            )
        left = len(body) - stream.tell()
        if left:
            return Rejection(
                "truncated",
                f"{left} of {len(body)} bytes follow the {NAME}: it was written with another"
                f" schema than {shown(reference)}, or cut and joined.",
            )
        return request

    def _earlier(self, reference: Reference) -> Reading | None:
        """An earlier release's own schema, which single-object encoding refers to."""
        writer = catalogue.by_fingerprint(reference) if isinstance(reference, bytes) else None
        if writer is None:
            return None
        self._readings[reference] = reading = reading_of(writer)
        return reading


def _needed(record: SourceRecord) -> Reference | None:
    """The registry's reference without which a record cannot be read, or None."""
    _, _, _, value, headers = record
    if value is None or len(value) > MAX_VALUE_BYTES or (headers and speaks_protocol(headers)):
        return None
    frame = framing.read_frame(value, headers)
    return frame.reference if frame.kind in _REGISTERED else None


def _null(key: bytes | None, headers: Headers | None) -> Request | Rejection:
    """The cancel that a null value means, unless its headers were to say something else.

    A name of belfry's that it does not know is left to the engine, which refuses the cancel under
    the names in its key.
    """
    found = _cancel(key)
    if isinstance(found, Rejection):
        return misspelt_header(headers) or found
    return respelt_header(headers) or found


def _cancel(key: bytes | None) -> Request | Rejection:
    try:
        tenant, slash, schedule_id = (key or b"").decode().partition("/")
    except UnicodeDecodeError:
        tenant, slash, schedule_id = "", "", ""
    if not slash:
        return Rejection(
            "not_a_request",
            f"A null value cancels, and its key has to be `tenant/schedule_id`; it is {key!r:.80}.",
        )
    fields: dict[str, Any] = {
        **EMPTY,
        "tenant": tenant,
        "schedule_id": schedule_id,
        "action": "CANCEL",
    }
    request: Request = fields  # type: ignore[assignment]
    return request
