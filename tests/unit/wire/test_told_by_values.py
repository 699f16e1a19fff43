"""Every refusal of a value that is no request, word by word, and what a reader knows of schemas."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.rejections import Rejection
from belfry.wire import catalogue, framing
from belfry.wire.framing import VALUE_SCHEMA_ID
from belfry.wire.readings import reading_of
from belfry.wire.record import Headers, SourceRecord
from belfry.wire.requests import RequestReader
from belfry.wire.safety import MAX_VALUE_BYTES

NAME = "ScheduleRequest"
T0 = 1_800_000_000_000
GUID = bytes(range(16))
OURS = catalogue.schema(NAME)
SINGLE = framing.single_object(NAME)
BODY = catalogue.encode(NAME, {"tenant": "demo", "schedule_id": "a", "at": T0, "payload": b"p"})
LATEST = catalogue.fingerprint(NAME).hex()
# Another writer's: what it says is resolved to ours.
OTHER = {**OURS, "fields": [*OURS["fields"], {"name": "more", "type": "string"}]}
NO_FRAME = (
    "The value {}: neither Confluent's prefix (00), nor single-object Avro (c301), nor are there"
    " belfry headers. Write with Confluent's serializer, or set belfry-tenant, belfry-id and one"
    " header such as belfry-in."
)


def record(
    value: bytes | None, headers: Headers | None = None, key: bytes | None = None
) -> SourceRecord:
    return (0, T0, key, value, headers)


@pytest.fixture
def reader() -> RequestReader:
    reader = RequestReader()
    reader.learn(7, OURS)
    reader.learn(8, OTHER)
    return reader


TOLD: list[tuple[SourceRecord, str, str]] = [
    (record(b"{}"), "not_a_request", NO_FRAME.format("starts with '7b7d'")),
    (record(b"hello"), "not_a_request", NO_FRAME.format("starts with '68656c6c'")),
    (record(b""), "not_a_request", NO_FRAME.format("starts with ''")),
    (record(b"\0\0\0\0\7"), "not_a_request",
     NO_FRAME.format("ends within its head, after 5 bytes")),
    (record(SINGLE), "not_a_request", NO_FRAME.format("ends within its head, after 10 bytes")),
    (record(BODY, [("__value_schema_id", b"\1\0")]), "not_a_request",
     NO_FRAME.format("comes with a header __value_schema_id that names no schema")),
    (record(None), "not_a_request",
     "A null value cancels, and its key has to be `tenant/schedule_id`; it is None."),
    (record(None, None, b"demo"), "not_a_request",
     "A null value cancels, and its key has to be `tenant/schedule_id`; it is b'demo'."),
    (record(None, None, b"k" * 100), "not_a_request",
     f"A null value cancels, and its key has to be `tenant/schedule_id`; it is b'{'k' * 78}."),
    (record(None, None, b"\xff/a"), "not_a_request",
     r"A null value cancels, and its key has to be `tenant/schedule_id`; it is b'\xff/a'."),
    (record(SINGLE + bytes(MAX_VALUE_BYTES)), "request_too_large",
     (f"{MAX_VALUE_BYTES + 10} bytes; at most 1048576 are decoded: store the content elsewhere and"
     " schedule its address (claim check).")),
    (record(framing.prefix(7) + BODY[:-1]), "truncated",
     f"{len(BODY) - 1} bytes are no ScheduleRequest of schema 7: they end too soon."),
    (record(framing.prefix(7) + BODY + b"\0\0"), "truncated",
     (f"2 of {len(BODY) + 2} bytes follow the ScheduleRequest: it was written with another schema"
     " than 7, or cut and joined.")),
    (record(SINGLE + BODY + b"\0"), "truncated",
     (f"1 of {len(BODY) + 1} bytes follow the ScheduleRequest: it was written with another schema"
     f" than {LATEST}, or cut and joined.")),
    (record(framing.prefix(7) + b"\x02\xff" + BODY[5:]), "truncated",
     (f"{len(BODY) - 3} bytes are no ScheduleRequest of schema 7: UnicodeDecodeError: 'utf-8' codec"
     " can't decode byte 0xff in position 0: invalid start byte")),
    (record(framing.prefix(9) + BODY), "unknown_schema_id",
     ("The registry knows no schema 9: register ScheduleRequest first, or point producer and belfry"
     " at the same registry.")),
    (record(BODY, [(VALUE_SCHEMA_ID, b"\1" + GUID)]), "unknown_schema_id",
     (f"The registry knows no schema {GUID.hex()}: register ScheduleRequest first, or point"
     " producer and belfry at the same registry.")),
    (record(b"\xc3\x01" + b"8" * 8 + BODY), "unknown_schema_fingerprint",
     ("Fingerprint 3838383838383838 is none of belfry's own schemas: write with the bundled"
     " ScheduleRequest, or with a registry's prefix.")),
]  # fmt: skip


@pytest.mark.parametrize(("given", "code", "reason"), TOLD, ids=lambda each: str(each)[:40])
def test_a_refusal_is_told_word_by_word(
    reader: RequestReader, given: SourceRecord, code: str, reason: str
) -> None:
    assert reader.read_whole(given) == Rejection(code, reason)
    # It is the same with headers of the user's own.
    others: Headers = [("mine", b"1"), *(given[4] or [])]
    assert reader.read((*given[:4], others)) == Rejection(code, reason)


def test_a_writer_whose_fields_are_none_of_ours_is_refused_when_it_is_read(
    reader: RequestReader,
) -> None:
    """It has the names that a request needs, and says something else by them."""
    fields = [{"name": "tenant", "type": "long"}, {"name": "schedule_id", "type": "string"}]
    reader.learn(9, {**OURS, "fields": fields})
    found = reader.read(record(framing.prefix(9) + b"\2\2a"))
    assert isinstance(found, Rejection)
    assert found.code == "schema_not_a_request"
    assert found.reason.startswith("Not readable as ScheduleRequest: ")


def test_what_a_writer_of_no_request_is_told_by() -> None:
    code = "schema_not_a_request"
    tenant, schedule_id, *_ = OURS["fields"]
    for fields, lacks in (
        ([], "schedule_id and tenant"),
        ([tenant], "schedule_id"),
        ([schedule_id], "tenant"),
    ):
        reason = f"The writer's schema is no ScheduleRequest: it lacks {lacks}."
        assert reading_of({**OURS, "fields": fields}) == Rejection(code, reason)
    odd = {**OURS, "fields": [tenant, schedule_id, {"name": "odd"}]}
    assert reading_of(odd) == Rejection(
        "schema_unsafe",
        "The writer's schema is not decoded: it is no valid Avro schema (SchemaParseException:"
        " Record field 'odd' is missing 'type').",
    )
    safe: Any = reading_of({**OURS, "fields": [tenant, schedule_id]})
    assert (safe.ours, safe.bounds.problem(b"\2t\2a")) == (catalogue.plain(NAME), "")


def test_what_fastavro_fails_at_is_told_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_writer: object) -> bytes:
        raise ValueError("odd")

    monkeypatch.setattr(catalogue, "fingerprint_of", fails)
    expected = Rejection("schema_not_a_request", "The writer's schema is unreadable: odd")
    assert reading_of(OURS) == expected


def test_a_value_as_large_as_may_be_is_read_the_quick_way_too(reader: RequestReader) -> None:
    def of(size: int) -> bytes:
        fields = {"tenant": "demo", "schedule_id": "a", "at": T0, "payload": b"p" * size}
        return SINGLE + catalogue.encode(NAME, fields)

    most = MAX_VALUE_BYTES - len(of(MAX_VALUE_BYTES - 100)) + MAX_VALUE_BYTES - 100
    assert len(of(most)) == MAX_VALUE_BYTES
    assert type(reader.read(record(of(most)))) is tuple
    assert type(reader.read(record(of(most), [("mine", b"1")]))) is dict
    assert type(reader.read(record(of(most + 1)))) is Rejection


def test_our_own_schema_is_read_the_quick_way_whatever_it_is_called(reader: RequestReader) -> None:
    for head in (framing.prefix(7), SINGLE):
        assert type(reader.read(record(head + BODY))) is tuple
        # Headers travel with the event, and are read with the rest.
        assert type(reader.read(record(head + BODY, [("mine", b"1")]))) is dict
    more = catalogue.encode(NAME, {"tenant": "demo", "schedule_id": "a", "at": T0}) + b"\x06red"
    assert type(reader.read(record(framing.prefix(8) + more))) is dict
    reader.forget(7)
    assert type(reader.read(record(framing.prefix(7) + BODY))) is Rejection
    reader.settle(7, reading_of(OURS))
    assert type(reader.read(record(framing.prefix(7) + BODY))) is tuple
    # The same number for another schema: what was known of it before counts no more.
    reader.forget(7)
    reader.learn(7, OTHER)
    assert type(reader.read(record(framing.prefix(7) + more))) is dict


def test_ids_of_four_bytes_are_told_apart(reader: RequestReader) -> None:
    for number in (1, 256, 1 << 24, (1 << 32) - 1):
        other = RequestReader()
        other.learn(number, OURS)
        assert type(other.read(record(framing.prefix(number) + BODY))) is tuple
        swapped = int.from_bytes(number.to_bytes(4, "big"), "little")
        found = other.read(record(framing.prefix(swapped) + BODY))
        assert (type(found) is tuple) == (swapped == number)
        other.forget(number)
        assert type(other.read(record(framing.prefix(number) + BODY))) is Rejection


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        (record(framing.prefix(9) + BODY), 9),
        (record(framing.prefix(9) + BODY, [("mine", b"1")]), 9),
        # Of 7, which is known, the lower bytes.
        (record(framing.prefix((1 << 24) + 7) + BODY), (1 << 24) + 7),
        (record(BODY, [(VALUE_SCHEMA_ID, b"\1" + GUID)]), GUID),
        (record(SINGLE + BODY), None),
        (record(b"{}"), None),
        (record(None), None),
        (record(framing.prefix(9) + BODY, [("belfry-tenant", b"t")]), None),
        (record(framing.prefix(9) + bytes(MAX_VALUE_BYTES - 5)), 9),
        (record(framing.prefix(9) + bytes(MAX_VALUE_BYTES - 4)), None),
    ],
)
def test_a_reader_says_which_schema_a_record_needs(
    reader: RequestReader, given: SourceRecord, needed: Any
) -> None:
    assert reader.needed(given) == reader.unknown_schema(given) == needed
    assert reader.unknown_schemas([given]) == ({} if needed is None else {needed: [given]})
    if needed is not None:
        reader.learn(needed, OURS)
        assert reader.unknown_schema(given) is None
        assert reader.unknown_schemas([given]) == {}
        assert reader.needed(given) == needed


def test_records_that_show_an_unknown_schema_are_found_among_others(reader: RequestReader) -> None:
    known, unknown = record(framing.prefix(7) + BODY), record(framing.prefix(9) + BODY)
    by_header = record(BODY, [("mine", b"1"), (VALUE_SCHEMA_ID, b"\1" + GUID)])
    assert reader.unknown_schemas([]) == {}
    assert reader.unknown_schemas([known, record(SINGLE + BODY), record(None)]) == {}
    found = reader.unknown_schemas([known, unknown, by_header, known, unknown])
    assert found == {9: [unknown, unknown], GUID: [by_header]}


def test_more_values_than_a_request_has_are_refused_where_they_take_a_kilobyte(
    reader: RequestReader,
) -> None:
    headers = [{"name": "", "value": None}] * 1_001
    fields = {"tenant": "demo", "schedule_id": "a", "at": T0}
    for count, code in ((1_000, None), (1_001, "bad_fields")):
        body = catalogue.encode(NAME, {**fields, "headers": headers[:count]})
        found = reader.read(record(SINGLE + body))
        assert (found.code if isinstance(found, Rejection) else None) == code


def test_a_tenants_own_topic_makes_no_request_of_what_is_none(reader: RequestReader) -> None:
    stamp = ("belfry-origin-tenant", b"shop")
    found: Any = reader.read(record(None, [stamp], b"demo/a"))
    assert (found["tenant"], found["action"]) == ("shop", "CANCEL")
    assert type(reader.read(record(b"{}", [stamp]))) is Rejection


def test_a_cancel_says_nothing_but_the_name(reader: RequestReader) -> None:
    found: Any = reader.read(record(None, None, b"demo/a/b"))
    named = {"tenant": "demo", "schedule_id": "a/b", "action": "CANCEL", "at": None}
    body = catalogue.encode(NAME, {"tenant": "demo", "schedule_id": "a/b"})
    plain: Any = reader.read_whole(record(SINGLE + body))
    assert found == {**plain, **named}
