"""Few bytes cannot ask for many values: they are counted before any is made."""

from __future__ import annotations

import time
from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader
from hypothesis import given
from hypothesis import strategies as st

from belfry.schedules.rejections import Rejection
from belfry.schedules.request import MAX_HEADERS
from belfry.schedules.targets import MAX_HEADERS as MAX_TARGET_HEADERS
from belfry.schedules.targets import MAX_TARGETS
from belfry.wire import catalogue, framing
from belfry.wire.bounds import MOST_VALUES, UNCOUNTED_BYTES, Bounds
from belfry.wire.requests import RequestReader
from belfry.wire.safety import unsafe_reason

NAME = "ScheduleRequest"
FIELDS = [field["name"] for field in catalogue.schema(NAME)["fields"]]
SINGLE = framing.single_object(NAME)
EMPTY = catalogue.encode(NAME, {"tenant": "t", "schedule_id": "s", "at": 10**12})
PLENTY = 499_000


def zigzag(number: int) -> bytes:
    """A number as Avro writes it."""
    value = ((number << 1) ^ (number >> 63)) & (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def request_with(field: str, blocks: bytes) -> bytes:
    """A request whose array of this name is written as these blocks; all behind it is empty."""
    behind = len(FIELDS) - 1 - FIELDS.index(field)
    return EMPTY[: -behind - 1] + blocks + bytes(behind)


HEADER = b"\0\0"
ATTACKS = {
    "headers": request_with("headers", zigzag(PLENTY) + HEADER * PLENTY + b"\0"),
    "headers in blocks with sizes": request_with(
        "headers", (zigzag(-1_000) + zigzag(2_000) + HEADER * 1_000) * 300 + b"\0"
    ),
    "headers one by one": request_with("headers", (b"\2" + HEADER) * 300_000 + b"\0"),
    "as many as there are numbers": request_with("headers", zigzag(-(2**63)) + HEADER * PLENTY),
    "a number of ten bytes": request_with("headers", zigzag(2**62) + HEADER * PLENTY),
    "targets": request_with("http_targets", zigzag(100_000) + bytes(10) * 100_000 + b"\0"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_megabyte_of_tiny_values_is_refused_before_they_are_made(name: str) -> None:
    """It cost half a second and more; the least of several tries counts, as the machine is busy."""
    reader = RequestReader()
    record = (0, 0, None, SINGLE + ATTACKS[name], None)
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        found = reader.read(record)
        seconds.append(time.perf_counter() - began)
        assert isinstance(found, Rejection)
        assert found.code == "bad_fields"
        assert "256 headers" in found.reason
    assert min(seconds) < 0.02


def test_a_number_that_no_writer_writes_cannot_hide_a_count() -> None:
    """Behind ten bytes a number means one thing in Python and another one in C."""
    overlong = b"\x80" * 10 + b"\x08"
    body = request_with("headers", overlong + HEADER * PLENTY + b"\0")
    reader = RequestReader()
    began = time.perf_counter()
    found = reader.read((0, 0, None, SINGLE + body, None))
    assert isinstance(found, Rejection)
    assert time.perf_counter() - began < 0.2


def test_the_largest_request_that_is_allowed_is_read() -> None:
    header = {"name": "n", "value": b"v"}
    target = {
        "url": "https://example.com/",
        "timeout_ms": 10_000,
        "max_attempts": 1,
        "secret_ref": "env:X",
        "headers": [{"name": "n", "value": "v"}] * MAX_TARGET_HEADERS,
    }
    fields = {"tenant": "t", "schedule_id": "s", "at": 10**12, "headers": [header] * MAX_HEADERS}
    body = catalogue.encode(NAME, {**fields, "http_targets": [target] * MAX_TARGETS})
    assert len(body) > UNCOUNTED_BYTES
    found: Any = RequestReader().read((0, 0, None, SINGLE + body, None))
    assert len(found["headers"]) == MAX_HEADERS
    assert [len(each["headers"]) for each in found["http_targets"]] == [32] * 16


def test_a_few_headers_too_many_are_told_to_whoever_asked() -> None:
    """They are decoded, so that tenant and request id are known; the checks refuse them."""
    header = {"name": "name", "value": None}
    fields = {"tenant": "t", "schedule_id": "s", "request_id": "r", "headers": [header] * 700}
    found: Any = RequestReader().read((0, 0, None, SINGLE + catalogue.encode(NAME, fields), None))
    assert (found["request_id"], len(found["headers"])) == ("r", 700)


def record_of(**types: Any) -> dict[str, Any]:
    """A record schema of these fields."""
    fields = [{"name": name, "type": avro} for name, avro in types.items()]
    return {"type": "record", "name": "Top", "fields": fields}


def test_a_schema_of_many_values_without_an_array_is_refused() -> None:
    """Each of them may take a byte, and a text that doubles itself names two million."""
    schema: Any = "boolean"
    for level in range(20):
        fields = [
            {"name": "left", "type": schema},
            {"name": "right", "type": schema if level == 0 else f"R{level - 1}"},
        ]
        schema = {"type": "record", "name": f"R{level}", "fields": fields}
    reason = unsafe_reason(record_of(only=schema))
    assert reason is not None
    assert f"{MOST_VALUES} values" in reason


KINDS = record_of(
    before=["null", "long", "string"],
    fixed={"type": "fixed", "name": "F", "size": 3},
    enum={"type": "enum", "name": "E", "symbols": ["A", "B"]},
    flags={"type": "array", "items": "boolean"},
    by_name={"type": "map", "values": {"type": "array", "items": "int"}},
    again=["null", "E", "F", {"type": "array", "items": "E"}],
    numbers={"type": "array", "items": ["double", "float", "bytes"]},
)
PARSED = parse_schema(KINDS)
MOST = 12
VARINT = st.integers(-(2**63), 2**63 - 1).map(zigzag)
TEXT = st.binary(max_size=3).map(lambda text: zigzag(len(text)) + text)
ENUM = st.sampled_from([0, 1, -1]).map(zigzag)


def either(*branches: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """A union's bytes, by the branch's index from either end."""
    sides = [(place, branch) for place, branch in enumerate(branches)]
    sides += [(place - len(branches), branch) for place, branch in enumerate(branches)]
    return st.one_of([st.tuples(st.just(zigzag(at)), each).map(b"".join) for at, each in sides])


def blocks(item: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """An array's bytes, in blocks with and without sizes, right or wrong ones."""
    items = st.lists(item, min_size=1, max_size=4)
    plain = items.map(lambda each: zigzag(len(each)) + b"".join(each))
    sized = st.tuples(items, VARINT).map(
        lambda each: zigzag(-len(each[0])) + each[1] + b"".join(each[0])
    )
    return st.lists(st.one_of(plain, sized), max_size=2).map(lambda each: b"".join(each) + b"\0")


NULL = st.just(b"")
NUMBER = either(st.binary(min_size=8, max_size=8), st.binary(min_size=4, max_size=4), TEXT)
SOUND = st.tuples(
    either(NULL, VARINT, TEXT),
    st.binary(min_size=3, max_size=3),
    ENUM,
    blocks(st.binary(min_size=1, max_size=1)),
    blocks(st.tuples(TEXT, blocks(VARINT)).map(b"".join)),
    either(NULL, ENUM, st.binary(min_size=3, max_size=3), blocks(ENUM)),
    blocks(NUMBER),
).map(b"".join)
# Sound ones, cut ones, and ones of which a byte is another one.
BODIES = st.one_of(
    SOUND,
    st.tuples(SOUND, st.integers(0, 40), st.binary(max_size=1)).map(
        lambda each: each[0][: each[1]] + each[2] + each[0][each[1] + 1 :]
    ),
)


def counted(found: Any) -> int:
    """Values in the arrays and maps of a decoded value."""
    if isinstance(found, dict):
        return sum(2 + counted(value) for value in found.values())
    return len(found) + sum(map(counted, found)) if isinstance(found, list) else 0


@given(BODIES)
def test_what_is_let_pass_is_no_more_than_is_allowed_and_nothing_else_is_refused(
    body: bytes,
) -> None:
    """The walk reads any bytes as fastavro does."""
    problem = Bounds(PARSED, MOST).problem(body)
    try:
        found: Any = schemaless_reader(BytesIO(body), PARSED, None)
    except Exception:  # noqa: BLE001  # whatever its C code meets
        return
    values = sum(
        counted(found[name]) for name in ("flags", "by_name", "again", "numbers") if found[name]
    )
    if values > MOST:
        assert problem
    elif not found["by_name"]:  # One key may stand for several values.
        assert not problem
