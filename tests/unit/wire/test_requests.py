"""Records to requests: three frames, the header protocol, null values, and writers' schemas."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.wire import catalogue, framing
from belfry.wire.bounds import UNCOUNTED_BYTES
from belfry.wire.framing import VALUE_SCHEMA_ID
from belfry.wire.quick import expand
from belfry.wire.record import Headers, Origin, origin_headers
from belfry.wire.requests import MOST_SCHEMAS, RequestReader
from tests.unit.wire.test_bounds import zigzag

T0 = 1_800_000_000_000
GUID = bytes(range(16))
FIELDS = {"tenant": "demo", "schedule_id": "a", "at": T0, "payload": b"p"}
BODY = catalogue.encode("ScheduleRequest", FIELDS)
SINGLE = framing.single_object("ScheduleRequest")
OURS = catalogue.schema("ScheduleRequest")


@pytest.fixture
def reader() -> RequestReader:
    """A reader that knows our own schema by an id and a GUID."""
    reader = RequestReader()
    reader.learn(7, OURS)
    reader.learn(GUID, OURS)
    return reader


def read(
    reader: RequestReader,
    value: bytes | None,
    headers: Headers | None = None,
    key: bytes | None = None,
) -> Request:
    """The request in a record, which has to be the same by the quick way, if there is one."""
    record = (0, T0, key, value, headers)
    whole = reader.read_whole(record)
    assert not isinstance(whole, Rejection), whole
    quick: Any = reader.read(record)
    assert (expand(quick) if type(quick) is tuple else quick) == whole
    return whole


def refusal(
    reader: RequestReader,
    value: bytes | None,
    headers: Headers | None = None,
    key: bytes | None = None,
) -> Rejection:
    found = reader.read((0, T0, key, value, headers))
    assert isinstance(found, Rejection), found
    assert found.reason.endswith(".") or ":" in found.reason
    return found


@pytest.mark.parametrize(
    ("value", "headers"),
    [
        (framing.prefix(7) + BODY, None),
        (SINGLE + BODY, None),
        (BODY, [(VALUE_SCHEMA_ID, b"\x01" + GUID)]),
        (BODY, [(VALUE_SCHEMA_ID, framing.prefix(7))]),
        (framing.prefix(7) + BODY, [("mine", b"1")]),
        (SINGLE + BODY, [("mine", None)]),
    ],
)
def test_every_frame_is_read(reader: RequestReader, value: bytes, headers: Headers | None) -> None:
    found: Any = read(reader, value, headers)
    assert found.items() >= FIELDS.items()
    assert (found["action"], found["kind"], found["headers"]) == ("UPSERT", "AT", [])


def test_instants_stay_milliseconds(reader: RequestReader) -> None:
    assert read(reader, SINGLE + BODY)["at"] == T0


def test_a_re_routed_request_reads_the_same(reader: RequestReader) -> None:
    carried = origin_headers(Origin("belfry.schedules", 1, 2, T0, rerouted=False))
    for value in (framing.prefix(7) + BODY, SINGLE + BODY):
        assert read(reader, value, carried) == read(reader, value)
    cancel = read(reader, None, carried, b"demo/a")
    assert cancel["action"] == "CANCEL"


def test_belfry_headers_win_over_an_avro_value(reader: RequestReader) -> None:
    headers: Headers = [("belfry-tenant", b"other"), ("belfry-id", b"b"), ("belfry-in", b"5m")]
    found = read(reader, SINGLE + BODY, headers)
    assert (found["tenant"], found["payload"]) == ("other", SINGLE + BODY)


@pytest.mark.parametrize(
    ("key", "tenant", "schedule_id"),
    [
        (b"demo/a", "demo", "a"),
        (b"demo/a/b", "demo", "a/b"),
        ("d/é".encode(), "d", "é"),
        (b"/", "", ""),
    ],
)
def test_a_null_value_cancels_what_its_key_names(
    reader: RequestReader, key: bytes, tenant: str, schedule_id: str
) -> None:
    found = read(reader, None, None, key)
    assert (found["action"], found["tenant"], found["schedule_id"]) == (
        "CANCEL",
        tenant,
        schedule_id,
    )


@pytest.mark.parametrize("key", [None, b"", b"demo", b"\xff/a"])
def test_a_null_value_needs_a_key_that_names_a_schedule(
    reader: RequestReader, key: bytes | None
) -> None:
    found = refusal(reader, None, None, key)
    assert found.code == "not_a_request"
    assert "tenant/schedule_id" in found.reason


@pytest.mark.parametrize(
    "value", [b"", b"{}", b"\0", b"\0\0\0\0\1", b"\xc3\x01", b"\xc3\x02" + BODY]
)
def test_what_has_no_frame_is_no_request(reader: RequestReader, value: bytes) -> None:
    assert refusal(reader, value).code == "not_a_request"


def test_every_cut_of_a_request_is_refused(reader: RequestReader) -> None:
    for head in (framing.prefix(7), SINGLE):
        whole = head + BODY
        codes = {refusal(reader, whole[:end]).code for end in range(len(head) + 1, len(whole))}
        assert codes == {"truncated"}


def test_what_follows_a_request_is_refused(reader: RequestReader) -> None:
    for head in (framing.prefix(7), SINGLE):
        assert refusal(reader, head + BODY + b"\0").code == "truncated"


def test_a_value_above_the_limit_is_not_decoded(reader: RequestReader) -> None:
    found = refusal(reader, SINGLE + b"x" * 2**20)
    assert found.code == "request_too_large"


def test_a_kilobyte_is_decoded_whatever_it_holds_and_a_byte_more_is_counted(
    reader: RequestReader,
) -> None:
    nulls = [{"name": name, "type": "null"} for name in "bc"]
    dense = {"type": "record", "name": "D", "fields": [{"name": "a", "type": "boolean"}, *nulls]}
    texts = [{"name": name, "type": "string"} for name in ("tenant", "schedule_id")]
    many = {"name": "many", "type": {"type": "array", "items": dense}}
    reader.learn(8, {**OURS, "fields": [*texts, many]})
    for count in (UNCOUNTED_BYTES - 7, UNCOUNTED_BYTES - 6):
        body = b"\2t\2s" + zigzag(count) + b"\1" * count + b"\0"
        assert len(body) == UNCOUNTED_BYTES + (count == UNCOUNTED_BYTES - 6)
        if len(body) == UNCOUNTED_BYTES:
            assert read(reader, framing.prefix(8) + body)["schedule_id"] == "s"
        else:
            assert refusal(reader, framing.prefix(8) + body).code == "bad_fields"


def test_what_has_no_frame_is_told_of_the_header_that_was_meant(reader: RequestReader) -> None:
    found = refusal(reader, b"hello", [("mine", b"1"), ("belfry-att", b"1")])
    assert (found.code, "did you mean belfry-at?" in found.reason) == ("unknown_header", True)
    assert refusal(reader, b"hello", [("mine", b"1")]).code == "not_a_request"


def test_unknown_ids_guids_and_fingerprints_are_told_apart(reader: RequestReader) -> None:
    assert refusal(reader, framing.prefix(8) + BODY).code == "unknown_schema_id"
    other: Headers = [(VALUE_SCHEMA_ID, b"\x01" + GUID[::-1])]
    assert refusal(reader, BODY, other).code == "unknown_schema_id"
    assert refusal(reader, b"\xc3\x01" + b"8" * 8 + BODY).code == "unknown_schema_fingerprint"


# -- writers' schemas ----------------------------------------------------------------------------


def test_what_is_read_without_a_schema_needs_none(reader: RequestReader) -> None:
    protocol: Headers = [("belfry-tenant", b"t"), (VALUE_SCHEMA_ID, b"\x01" + GUID[::-1])]
    needless: list[tuple[bytes | None, Headers | None]] = [
        (framing.prefix(8) + b"their own Avro", [("belfry-tenant", b"t")]),
        (BODY, protocol),
        (framing.prefix(8) + bytes(2**20), None),
        (framing.prefix(8), None),
        (b"\0", None),
        (None, [(VALUE_SCHEMA_ID, b"\x01" + GUID[::-1])]),
    ]
    for value, headers in needless:
        assert reader.unknown_schemas([(0, T0, None, value, headers)]) == {}


def test_only_so_many_schemas_are_kept(reader: RequestReader) -> None:
    for number in range(10, 10 + MOST_SCHEMAS):
        reader.settle(number, Rejection("schema_unsafe", "It is recursive."))
    reader.forget_oldest()
    assert refusal(reader, framing.prefix(10) + BODY).code == "schema_unsafe"
    reader.learn(8, OURS)
    reader.forget_oldest()
    assert refusal(reader, framing.prefix(10) + BODY).code == "unknown_schema_id"
    assert refusal(reader, framing.prefix(7) + BODY).code == "unknown_schema_id"
    assert refusal(reader, framing.prefix(9 + MOST_SCHEMAS) + BODY).code == "schema_unsafe"
    read(reader, framing.prefix(8) + BODY)
    read(reader, SINGLE + BODY)


def test_references_that_are_to_be_settled(reader: RequestReader) -> None:
    records: list[tuple[int, int, bytes | None, bytes | None, Headers | None]] = [
        (0, T0, None, framing.prefix(7) + BODY, None),
        (1, T0, None, framing.prefix(8) + BODY, None),
        (2, T0, None, framing.prefix(8) + BODY, [("mine", b"1")]),
        (3, T0, None, framing.prefix(9) + BODY, [("mine", b"1")]),
        (4, T0, None, BODY, [(VALUE_SCHEMA_ID, b"\x01" + GUID)]),
        (5, T0, None, BODY, [(VALUE_SCHEMA_ID, b"\x01" + GUID[::-1])]),
        (6, T0, None, BODY, [(VALUE_SCHEMA_ID, framing.prefix(10))]),
        (7, T0, None, SINGLE + BODY, None),
        (8, T0, None, None, None),
        (9, T0, None, b"\0\0", None),
        (10, T0, None, b"", [("mine", None)]),
    ]
    found = reader.unknown_schemas(records)
    shown = {8: [1, 2], 9: [3], GUID[::-1]: [5], 10: [6]}
    assert {name: [each[0] for each in by] for name, by in found.items()} == shown


def test_a_refused_reference_is_known_until_it_is_forgotten(reader: RequestReader) -> None:
    reader.refuse(8, Rejection("schema_unavailable", "No answer."))
    record = (0, T0, None, framing.prefix(8) + BODY, None)
    assert reader.unknown_schemas([record]) == {}
    assert refusal(reader, framing.prefix(8) + BODY).code == "schema_unavailable"
    reader.forget(8)
    reader.forget(8)
    assert reader.unknown_schemas([record]) == {8: [record]}


def changed(**replaced: Any) -> dict[str, Any]:
    schema = copy.deepcopy(OURS)
    schema.update(replaced)
    return schema


def test_a_writer_that_knows_fewer_fields_gets_the_defaults(reader: RequestReader) -> None:
    reader.learn(8, changed(fields=OURS["fields"][:5]))
    end = catalogue.encode("ScheduleRequest", {"tenant": "demo", "schedule_id": "a", "at": T0})
    found = read(reader, framing.prefix(8) + end[: -len(OURS["fields"]) + 5])
    assert (found["at"], found["payload"], found["headers"]) == (T0, None, [])


def test_a_writer_that_knows_more_is_read_without_it(reader: RequestReader) -> None:
    more = [*OURS["fields"], {"name": "colour", "type": "string"}]
    reader.learn(8, changed(fields=more))
    found: Any = read(reader, framing.prefix(8) + BODY + b"\x06red")
    assert found.items() >= FIELDS.items()
    assert "colour" not in found


def test_an_action_of_a_newer_writer_is_unknown(reader: RequestReader) -> None:
    fields = copy.deepcopy(OURS["fields"])
    fields[2]["type"]["symbols"].append("EXPLODE")
    reader.learn(8, changed(fields=fields))
    at = BODY.index(b"\x02a") + 2
    index = fields[2]["type"]["symbols"].index("EXPLODE") * 2
    value = framing.prefix(8) + BODY[:at] + bytes([index]) + BODY[at + 1 :]
    assert read(reader, value)["action"] == "UNKNOWN"


@pytest.mark.parametrize(
    ("writer", "code"),
    [
        (
            {"type": "record", "name": "O", "fields": [{"name": "x", "type": "int"}]},
            "schema_not_a_request",
        ),
        ({"type": "string"}, "schema_not_a_request"),
        (
            {"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]},
            "schema_unsafe",
        ),
        ({"type": "array", "items": "null"}, "schema_unsafe"),
        ({"type": "nonsense"}, "schema_unsafe"),
    ],
)
def test_schemas_that_are_none_of_a_request(
    reader: RequestReader, writer: dict[str, Any], code: str
) -> None:
    reader.learn(8, writer)
    assert refusal(reader, framing.prefix(8) + b"\x02\x02\x02").code == code
