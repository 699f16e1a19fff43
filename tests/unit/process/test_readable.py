"""Bytes of others made readable: requests in any form, Avro by its schema, within bounds."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro
import pytest

from belfry.api.workers.kept import UnreadableValue
from belfry.process import readable
from belfry.process.readable import avro_in, request_in
from belfry.registry.answers import RegistryUnreachableError
from belfry.wire.record import Headers
from tests.acceptance.harness.requests import request

ORDER: Any = {
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [{"name": "id", "type": "string"}, {"name": "raw", "type": "bytes"},
               {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}],
}  # fmt: skip
NOTHINGS: Any = {"type": "array", "items": "null"}
TEXTS: Any = {"type": "array", "items": "string"}

KNOWN: dict[int | bytes, Any] = {7: ORDER, 9: NOTHINGS, 10: TEXTS}


def look_up(reference: int | bytes) -> Any:
    assert isinstance(reference, int) or len(reference) == 16
    return KNOWN.get(reference)


def nobody_answers(_reference: int | bytes) -> Any:
    raise RegistryUnreachableError("nobody answers")


def written(schema: Any, value: Any) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


class Message:
    """A record of the request topic as librdkafka gives it."""

    def __init__(self, value: bytes | None, key: bytes = b"t", headers: Headers | None = None):
        self._parts = value, key, headers or []

    def value(self) -> bytes | None:
        return self._parts[0]

    def key(self) -> bytes:
        return self._parts[1]

    def headers(self) -> Headers:
        return self._parts[2]

    def offset(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int]:
        return 1, 5


@pytest.fixture(autouse=True)
def _headers(monkeypatch: pytest.MonkeyPatch) -> None:
    # `headers_of` maps a method of real messages over them.
    def headers_of(messages: Any) -> Any:
        return [each.headers() for each in messages]

    monkeypatch.setattr(readable, "headers_of", headers_of)


def read(message: Any, look: Any = None) -> Any:
    return request_in(message, look)


def test_a_request_is_told_without_defaults_and_without_what_names_itself() -> None:
    value = request("t", "a", kind="CRON", cron="0 9 * * *", request_id="r", expected_version=3)
    found = read(Message(value))
    assert found["cron"] == "0 9 * * *"
    assert {"request_id", "expected_version", "max_fires", "group"}.isdisjoint(found)


def test_requests_by_headers_and_those_that_are_none() -> None:
    headers: Headers = [("belfry-tenant", b"t"), ("belfry-id", b"a"), ("belfry-in", b"5m")]
    found = read(Message(b"hello", headers=headers))
    assert (found["schedule_id"], found["delay_ms"], found["payload"]) == ("a", 300_000, b"hello")
    assert read(Message(b"no request")) is None
    assert read(Message(b"\0\0\0\0\7x")) is None


def test_avro_is_decoded_by_the_schema_that_its_first_bytes_name() -> None:
    value = {"id": "4711", "raw": b"\xff", "at": 5}
    body = written(ORDER, value)
    found = avro_in(b"\0\0\0\0\7" + body, look_up)
    assert (found.schema, found.value) == ("shop.Order", value)
    own = avro_in(request("t", "a", kind="AT", at=5), None)
    assert (own.schema, own.value["at"]) == ("io.belfry.ScheduleRequest", 5)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"{}", "begins with no id"),
        (b"\0\0\0\0\x08xx", "not known here"),
        # A fingerprint, which no registry is asked for.
        (b"\xc3\x01" + b"f" * 8 + b"xx", "not known here"),
        (
            b"\0\0\0\0\7" + written(ORDER, {"id": "", "raw": b"", "at": 1})[:-1],
            "not what its schema",
        ),
        (b"\0\0\0\0\7" + written(ORDER, {"id": "", "raw": b"", "at": 1}) + b"!", "1 bytes follow"),
        # A few bytes that ask for a hundred million values, and many small ones.
        (b"\0\0\0\0\x09" + b"\x80\x84\xaf\x5f\0", "few bytes can ask for"),
        (b"\0\0\0\0\x0a" + written(TEXTS, [""] * 5_000), "values"),
    ],
)
def test_what_cannot_be_decoded_is_explained(value: bytes, why: str) -> None:
    with pytest.raises(UnreadableValue, match=why):
        avro_in(value, look_up)


def test_a_registry_that_does_not_answer_has_not_said_that_there_is_none() -> None:
    framed = b"\0\0\0\0\7" + written(ORDER, {"id": "", "raw": b"", "at": 1})
    with pytest.raises(RegistryUnreachableError):
        avro_in(framed, nobody_answers)
    with pytest.raises(RegistryUnreachableError):
        read(Message(framed), nobody_answers)
    # These need no registry.
    assert avro_in(request("t", "a", kind="AT", at=5), nobody_answers).value["at"] == 5
    assert read(Message(request("t", "a", kind="AT", at=5)), nobody_answers)["at"] == 5
