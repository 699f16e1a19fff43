"""Schemas that could turn few bytes into much memory are refused; ordinary ones are not."""

from __future__ import annotations

import resource
import time
from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader

from belfry.wire import catalogue
from belfry.wire.catalogue import MalformedError
from belfry.wire.safety import FREE_VALUES, MAX_VALUE_BYTES, unsafe_reason


def record(name: str, **types: Any) -> dict[str, Any]:
    """A record schema of these fields."""
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": avro} for field, avro in types.items()],
    }


def array(items: Any) -> dict[str, Any]:
    """An array schema."""
    return {"type": "array", "items": items}


def zigzag(number: int) -> bytes:
    """A number as Avro writes it."""
    value = (number << 1) ^ (number >> 63)
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def doubling(depth: int, innermost: Any) -> dict[str, Any]:
    """A record of 2^depth innermost values, in a text that grows by a line for each depth."""
    schema: Any = innermost
    for level in range(depth):
        name = f"R{level}"
        schema = record(name, left=schema, right=name_of(schema))
    return record("Top", only=schema)


def name_of(schema: Any) -> Any:
    """The name of a schema that is defined already."""
    return schema["name"] if isinstance(schema, dict) and "name" in schema else schema


NOTHING = record("Nothing")
UNSAFE = {
    "recursive": record("Tree", left=["null", "Tree"]),
    "recursive by full name": {
        **record("Tree", next=["null", "com.acme.Tree"]),
        "namespace": "com.acme",
    },
    "recursive through others": record("A", b=record("B", c=array(["null", "A"]))),
    "array of null": record("A", x=array("null")),
    "map of null": record("A", x={"type": "map", "values": "null"}),
    "array of empty records": record("A", x=array(NOTHING)),
    "array of named empty records": record("A", n=NOTHING, x=array("Nothing")),
    "array of fixed of no bytes": record("A", x=array({"type": "fixed", "name": "F", "size": 0})),
    "array of records of nulls": record("A", x=array(record("B", a="null", b="null"))),
    "array of much for one byte": record(
        "A", x=array(record("B", flag="boolean", **{f"n{i}": "null" for i in range(9)}))
    ),
    "array in a union in a map": record("A", x={"type": "map", "values": ["int", array("null")]}),
    "doubling without bytes": doubling(20, "null"),
    "enum of a default that is none": record(
        "A", e={"type": "enum", "name": "E", "symbols": ["X"], "default": "Y"}
    ),
    "deep": {"type": array(array("int"))},
    "fixed of a negative size": record("A", x={"type": "fixed", "name": "F", "size": -5}),
    "fixed of a gigabyte": record("A", x={"type": "fixed", "name": "F", "size": 2**30}),
    "unknown type": record("A", x="integer"),
    "unhashable type": {"type": {"type": "record"}},
    "defined twice": record("A", x=record("B", i="int"), y=record("B", s="string")),
    "number": 7,
    "null": None,
    "no fields": {"type": "record", "name": "A", "fields": 3},
    "nothing": {},
}
SAFE = {
    "primitive": "string",
    "record": record("A", x="int", y=["null", "string"], z={"type": "map", "values": "bytes"}),
    "named twice used": record("A", x=record("B", i="int"), y="B", z=array("B")),
    "doubling with bytes": doubling(8, "int"),
    "array of enums": record("A", x=array({"type": "enum", "name": "E", "symbols": ["X", "Y"]})),
    "array of optional": record("A", x=array(["null", "string"])),
    "logical": record("A", x={"type": "bytes", "logicalType": "decimal", "precision": 9}),
    "empty": NOTHING,
}


@pytest.mark.parametrize("schema", UNSAFE.values(), ids=UNSAFE.keys())
def test_unsafe(schema: Any) -> None:
    assert unsafe_reason(schema)


@pytest.mark.parametrize("schema", SAFE.values(), ids=SAFE.keys())
def test_safe(schema: Any) -> None:
    assert unsafe_reason(schema) is None


@pytest.mark.parametrize("name", catalogue.names())
def test_our_own_are_safe(name: str) -> None:
    assert unsafe_reason(catalogue.schema(name)) is None


def test_deep_nesting_is_refused_without_recursion() -> None:
    schema: Any = "int"
    for _ in range(100_000):
        schema = {"type": "array", "items": schema}
    assert "nested deeper" in str(unsafe_reason(schema))
    while isinstance(schema, dict):  # taken apart step by step: freeing it at once would recurse
        schema = schema.pop("items")


def test_a_schema_that_claims_to_be_parsed_is_refused() -> None:
    schema = {
        **record("A", x="B"),
        "__fastavro_parsed": True,
        "__named_schemas": {"B": record("B", y=array("null"))},
    }
    assert "two underscores" in str(unsafe_reason(schema))


def test_free_values_are_few() -> None:
    few = record("A", **{f"f{number}": "null" for number in range(FREE_VALUES - 1)})
    more = record("A", **{f"f{number}": "null" for number in range(FREE_VALUES)})
    assert unsafe_reason(few) is None
    assert "take no bytes" in str(unsafe_reason(more))


def test_why_the_survey_is_needed() -> None:
    """Six bytes of an unsafe schema do ask for a million values."""
    schema: Any = parse_schema(record("A", x=array("null")))
    read: Any = schemaless_reader(BytesIO(zigzag(1_000_000) + b"\x00"), schema, None)
    assert len(read["x"]) == 1_000_000


HEAD = b"\x08demo\x02a\x02\x02" + b"\x00" * 15  # a request up to its headers, all else null
BOMBS = {
    "2^60 headers": HEAD + zigzag(2**60),
    "2^60 headers by size": HEAD + zigzag(-(2**60)) + zigzag(2**60),
    "most negative count": HEAD + zigzag(-(2**63)) + b"\x00",
    "payload of 2^60 bytes": HEAD[:-1] + b"\x02" + zigzag(2**60),
    "payload of -1 bytes": HEAD[:-1] + b"\x02" + zigzag(-1),
    "tenant of 2^62 bytes": zigzag(2**62),
    "tenant of -5 bytes": zigzag(-5) + b"abcdef",
    "endless number": b"\xff" * 10_000,
    "endless zeros": b"\x80" * 10_000,
}


def test_the_head_ends_where_headers_begin() -> None:
    body = HEAD + b"\x00" * 24  # no headers, four nulls, no targets, eighteen more of nothing
    record_read = catalogue.own_reader("ScheduleRequest").read(body)
    assert record_read["tenant"] == "demo"


@pytest.mark.parametrize("body", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_against_our_own_schema_is_an_error_and_not_memory(body: bytes) -> None:
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    with pytest.raises(MalformedError):
        catalogue.own_reader("ScheduleRequest").read(body)
    assert time.perf_counter() - started < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 50_000


def test_the_worst_value_of_the_largest_size_stays_below_200_mb() -> None:
    body = HEAD + zigzag(10**9) + b"\x00" * (MAX_VALUE_BYTES - 64)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MalformedError):
        catalogue.own_reader("ScheduleRequest").read(body)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 200_000
