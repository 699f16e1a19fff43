"""How many values a schema may make of a byte: four, and what makes more is refused in words."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.wire.safety import FREE_VALUES, MAX_DEPTH, MAX_VALUE_BYTES, unsafe_reason
from tests.unit.wire.test_safety import array, record

REPEATS = "it repeats items of no or few bytes, which a few bytes can ask for"
# Types, and the fewest bytes that a value of one takes.
LEAST: dict[str, tuple[Any, int]] = {
    "boolean": ("boolean", 1),
    "int": ("int", 1),
    "long": ("long", 1),
    "float": ("float", 4),
    "double": ("double", 8),
    "bytes": ("bytes", 1),
    "string": ("string", 1),
    "instant": ({"type": "long", "logicalType": "timestamp-millis"}, 1),
    "fixed of one": ({"type": "fixed", "name": "F", "size": 1}, 1),
    "fixed of five": ({"type": "fixed", "name": "F", "size": 5}, 5),
    "enum": ({"type": "enum", "name": "E", "symbols": ["X"]}, 1),
    "array": (array("int"), 1),
    "map": ({"type": "map", "values": "int"}, 1),
    "optional": (["null", "boolean"], 1),
    "union of no branches that take any": (["null", {"type": "null"}], 1),
}


@pytest.mark.parametrize("kind", LEAST)
@pytest.mark.parametrize("again", [False, True])
def test_four_values_a_byte_are_repeated_and_five_are_not(kind: str, again: bool) -> None:
    """The record counts as one of them, and so does the value itself."""
    avro, least = LEAST[kind]
    most_nulls = 4 * least - 2
    for nulls in (most_nulls, most_nulls + 1):
        fields = {f"n{place}": "null" for place in range(nulls)}
        item = record("Item", value=avro, **fields)
        # It is the same where it is defined first, and named then.
        schema = record("A", one=item, x=array("Item")) if again else record("A", x=array(item))
        assert unsafe_reason(schema) == (None if nulls == most_nulls else REPEATS)


def test_a_union_of_nothing_can_hold_nothing() -> None:
    assert unsafe_reason(record("A", x=[])) is None
    assert unsafe_reason(record("A", x=array([]))) is None


def test_a_union_is_as_dense_as_its_densest_branch() -> None:
    for nulls, told in ((3, None), (4, REPEATS)):
        fields = {f"n{place}": "null" for place in range(nulls)}
        assert unsafe_reason(record("A", x=array(["int", record("B", **fields)]))) == told


@pytest.mark.parametrize("kind", ["record", "error"])
def test_a_record_of_much_for_nothing_is_refused_by_what_it_holds(kind: str) -> None:
    few = {f"f{number}": "null" for number in range(FREE_VALUES - 1)}
    assert unsafe_reason({**record("A", **few), "type": kind}) is None
    assert unsafe_reason({**record("A", **few, more="null"), "type": kind}) == (
        "one record of it can hold more than 1000 values that take no bytes"
    )
    # A byte allows four more; one of them is its own.
    paid = {**few, "paid": "boolean", "n1": "null", "n2": "null", "n3": "null"}
    assert unsafe_reason(record("A", **paid)) is None
    assert unsafe_reason(record("A", **paid, n4="null")) is not None


def nested(levels: int) -> Any:
    schema: Any = "int"
    for _ in range(levels):
        schema = array(schema)
    return schema


def fixed(size: Any) -> dict[str, Any]:
    return record("A", x={"type": "fixed", "name": "F", "size": size})


TREE = record("Tree", left=["null", "Tree"])
REFUSED: dict[str, tuple[Any, str]] = {
    "recursive": (TREE, "its type 'Tree' contains itself, and recursion is not read"),
    "recursive by full name": (
        {**TREE, "namespace": "com.acme"},
        "its type 'com.acme.Tree' contains itself, and recursion is not read",
    ),
    "array of null": (array("null"), REPEATS),
    "map of null": ({"type": "map", "values": "null"}, REPEATS),
    "deep": (nested(MAX_DEPTH + 1), "it is nested deeper than 64 levels"),
    "deep in a list": (["null", nested(MAX_DEPTH)], "it is nested deeper than 64 levels"),
    "private key": (
        {**record("A"), "__fastavro_parsed": True},
        "it holds keys that start with two underscores",
    ),
    "private key below": (
        record("A", x={"type": "int", "__x": 1}),
        "it holds keys that start with two underscores",
    ),
    "negative": (fixed(-1), "a fixed has -1 bytes; 0 to 1048576 are allowed"),
    "large": (fixed(MAX_VALUE_BYTES + 1), "a fixed has 1048577 bytes; 0 to 1048576 are allowed"),
    "larger": (fixed(10**60), f"a fixed has 1{'0' * 39} bytes; 0 to 1048576 are allowed"),
    "no number": (fixed("7"), "a fixed has 7 bytes; 0 to 1048576 are allowed"),
    "unknown": ("integer", "it is no valid Avro schema (UnknownType: integer)"),
    "unknown and long": (
        "x" * 900,
        f"it is no valid Avro schema (UnknownType: {'x' * 200})",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_told_why(name: str) -> None:
    schema, reason = REFUSED[name]
    assert unsafe_reason(schema) == reason


@pytest.mark.parametrize("size", [0, 1, MAX_VALUE_BYTES])
def test_a_fixed_of_any_size_that_a_value_may_have_is_read(size: int) -> None:
    assert unsafe_reason(fixed(size)) is None


def test_64_levels_and_names_with_one_underscore_are_read() -> None:
    assert unsafe_reason(nested(MAX_DEPTH)) is None
    assert unsafe_reason({**record("A", _x="int"), "_mine": 1}) is None
