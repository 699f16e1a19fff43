"""How values are counted, kind by kind: each is passed over where it ends, and weighs what it is.

    first │ many: 40 booleans          let pass, whatever `first` is
    first │ many: 41 booleans          refused

One byte too many or too few passed over, and the count of `many` is another one.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader

from belfry.wire.bounds import MOST_VALUES, Bounds
from belfry.wire.safety import unsafe_reason
from tests.unit.wire.test_bounds import record_of, zigzag

MOST = 40
TOO_MANY = (
    "The value holds more than {} values in arrays and maps: 256 headers and 16 HTTP targets are"
    " the most that a request may have."
)
FLAGS = {"type": "array", "items": "boolean"}
PAIR = {
    "type": "record",
    "name": "Pair",
    "fields": [{"name": "a", "type": "boolean"}, {"name": "b", "type": "boolean"}],
}
LETTER = {"type": "enum", "name": "Letter", "symbols": list("abc")}
THREE = {"type": "fixed", "name": "Three", "size": 3}
BRANCHES = [{"type": "fixed", "name": f"Of{size}", "size": size} for size in range(70)]


def text(size: int) -> bytes:
    return zigzag(size) + b"\xff" * size


def record_with_array() -> dict[str, Any]:
    fields = [{"name": "a", "type": "boolean"}, {"name": "more", "type": FLAGS}]
    return {"type": "record", "name": "Held", "fields": fields}


# Zero is written with a needless byte, too: a writer may.
NUMBERS = [b"\x80\0", *(zigzag(each) for each in (0, -1, 1, 63, 64, -65, 8_192, 2**31 - 1))]
TEXTS = [b"\x80\0", *(text(size) for size in (0, 1, 63, 64, 200))]
# Schema, bytes of values, and how many values in arrays and maps each of them holds.
KINDS: dict[str, tuple[Any, list[bytes], int]] = {
    "null": ("null", [b""], 0),
    "boolean": ("boolean", [b"\0", b"\1"], 0),
    "int": ("int", NUMBERS, 0),
    "long": ("long", [*NUMBERS, zigzag(2**63 - 1), zigzag(-(2**63))], 0),
    "instant": ({"type": "long", "logicalType": "timestamp-millis"}, NUMBERS, 0),
    "float": ("float", [b"\xff" * 4], 0),
    "double": ("double", [b"\xff" * 8], 0),
    "bytes": ("bytes", TEXTS, 0),
    "string": ("string", [zigzag(size) + b"x" * size for size in (0, 1, 63, 64, 200)], 0),
    "decimal": ({"type": "bytes", "logicalType": "decimal", "precision": 9}, TEXTS[1:], 0),
    "fixed": (THREE, [b"\xff" * 3], 0),
    "enum": (LETTER, [zigzag(place) for place in range(3)], 0),
    "record": (PAIR, [b"\1\1"], 0),
    "union": (
        ["boolean", "null", "string"],
        [zigzag(place) + each for place, each in
         ((0, b"\1"), (1, b""), (2, b"\2x"), (-1, b"\2x"), (-2, b""), (-3, b"\1"))],
        0,
    ),
    "optional": (["null", "long"], [b"\0", b"\2\x80\1"], 0),
    "union of many": (
        BRANCHES, [b"\x80\0", *(zigzag(at) + b"\xff" * at for at in (0, 63, 64, 69))], 0,
    ),
    "record with an array": (record_with_array(), [b"\1\4\1\1\0"], 2),
    "none": (FLAGS, [b"\0"], 0),
    "array": (FLAGS, [zigzag(3) + b"\1\1\1\0", b"\2\1\2\1\2\1\0", zigzag(-3) + b"\6\1\1\1\0"], 3),
    "map": ({"type": "map", "values": "long"}, [b"\4" + b"\2k\x80\1" + b"\2l\1" + b"\0"], 4),
    "array of texts": (
        {"type": "array", "items": "bytes"}, [b"\4" + text(1) + text(64) + b"\0"], 2,
    ),
    "optional array": (["null", FLAGS], [b"\2\4\1\1\0", b"\x82\0\4\1\1\0"], 2),
}  # fmt: skip


def many(count: int, item: bytes = b"\1") -> bytes:
    """An array of so many items."""
    return zigzag(count) + item * count + b"\0"


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_passed_over_where_it_ends(kind: str) -> None:
    avro, samples, held = KINDS[kind]
    schema: Any = parse_schema(record_of(first=avro, second="long", many=FLAGS))
    bounds = Bounds(schema, MOST)
    for sample in samples:
        for count in (MOST - held, MOST - held + 1):
            body = sample + b"\x80\1" + many(count)
            told = "" if count + held <= MOST else TOO_MANY.format(MOST)
            assert bounds.problem(body) == told, (sample, count)
            read: Any = schemaless_reader(BytesIO(body), schema, None)
            assert len(read["many"]) == count


# What an array holds, one item of it, and as how many values each item counts.
ITEMS: dict[str, tuple[Any, bytes, int]] = {
    "boolean": ("boolean", b"\1", 1),
    "enum": (LETTER, b"\2", 1),
    "record": (PAIR, b"\1\1", 3),
    "record in a record": (
        {"type": "record", "name": "Outer", "fields": [{"name": "p", "type": PAIR}]}, b"\1\1", 4,
    ),
    "optional record that is null": (["null", PAIR], b"\0", 3),
    "the larger of two": ([PAIR, "null"], b"\2", 3),
    "record with an array of one": (record_with_array(), b"\1\2\1\0", 4),
    "array": (FLAGS, b"\0", 1),
    "array of one": (FLAGS, b"\2\1\0", 2),
    "map": ({"type": "map", "values": "boolean"}, b"\0", 1),
    "map of one": ({"type": "map", "values": "boolean"}, b"\2\2k\1\0", 3),
    "map of records": ({"type": "map", "values": PAIR}, b"\2\2k\1\1\0", 5),
}  # fmt: skip


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize("count", [1, 5])
def test_an_item_counts_as_what_its_schema_says(kind: str, count: int) -> None:
    avro, item, weight = ITEMS[kind]
    for name, shape in (("many", {"type": "array", "items": avro}), ("alone", None)):
        schema: Any = parse_schema(record_of(**{name: shape}) if shape else array_of(avro))
        most = count * weight
        assert Bounds(schema, most).problem(many(count, item)) == ""
        assert Bounds(schema, most - 1).problem(many(count, item)) == TOO_MANY.format(most - 1)


def array_of(avro: Any) -> dict[str, Any]:
    return {"type": "array", "items": avro}


@pytest.mark.parametrize(
    ("avro", "name", "item", "weight"),
    [
        (PAIR, "Pair", b"\1\1", 3),
        (LETTER, "Letter", b"\2", 1),
        (THREE, "Three", b"\xff" * 3, 1),
        (["null", PAIR], "Pair", b"\1\1", 3),
        (array_of(PAIR), "Pair", b"\1\1", 3),
    ],
)
def test_a_type_that_is_named_again_counts_as_it_did(
    avro: Any, name: str, item: bytes, weight: int
) -> None:
    first = b"\0" if isinstance(avro, list) or avro["type"] == "array" else item
    schema: Any = parse_schema(record_of(first=avro, again=array_of(name)))
    body = first + many(5, item)
    assert Bounds(schema, 5 * weight).problem(body) == ""
    assert Bounds(schema, 5 * weight - 1).problem(body) == TOO_MANY.format(5 * weight - 1)
    assert schemaless_reader(BytesIO(body), schema, None)


def test_the_densest_schema_that_may_be_decoded_is_counted_to_its_end() -> None:
    """Four values out of each byte: so few bytes of it are too many, and a walk may not end."""
    nulls = [{"name": name, "type": "null"} for name in "bc"]
    dense = {"type": "record", "name": "D", "fields": [{"name": "a", "type": "boolean"}, *nulls]}
    schema: Any = record_of(first="boolean", many=array_of(dense))
    assert unsafe_reason(schema) is None
    for most in (MOST, 400):
        bounds = Bounds(parse_schema(schema), most)
        assert bounds.problem(b"\1" + many(most // 4)) == ""
        assert bounds.problem(b"\1" + many(most // 4 + 1)) == TOO_MANY.format(most)


def test_arrays_share_what_a_record_may_hold() -> None:
    bounds = Bounds(parse_schema(record_of(one=FLAGS, other=FLAGS)), MOST)
    assert bounds.problem(many(10) + many(30)) == ""
    assert bounds.problem(many(10) + many(31)) == TOO_MANY.format(MOST)
    # Each record is counted anew.
    assert bounds.problem(many(10) + many(30)) == ""


def test_so_many_values_are_allowed_by_default() -> None:
    bounds = Bounds(parse_schema(record_of(many=FLAGS)))
    assert bounds.problem(many(MOST_VALUES)) == ""
    assert bounds.problem(many(MOST_VALUES + 1)) == TOO_MANY.format("3000")


def test_a_number_of_more_than_64_bits_means_what_fastavro_makes_of_it() -> None:
    """The bits above are lost; so is a count that they would have made."""
    schema: Any = parse_schema(record_of(many=FLAGS))
    count = bytes([zigzag(MOST)[0] | 0x80, *[0x80] * 8, 2])
    read: Any = schemaless_reader(BytesIO(count + b"\1" * MOST + b"\0"), schema, None)
    assert len(read["many"]) == MOST
    assert Bounds(schema, MOST).problem(count + b"\1" * MOST + b"\0") == ""
    assert Bounds(schema, MOST - 1).problem(count + b"\1" * MOST + b"\0")


@pytest.mark.parametrize(
    "body",
    [b"", b"\x80", b"\x80" * 10, zigzag(-1) + many(50), zigzag(-5) + many(50), zigzag(9) + b"x"],
)
def test_where_the_bytes_make_no_sense_fastavro_says_why(body: bytes) -> None:
    schema: Any = parse_schema(record_of(first="string", many=FLAGS))
    assert Bounds(schema, MOST).problem(body) == ""
    with pytest.raises(Exception):  # noqa: B017, PT011  # whatever its C code meets
        schemaless_reader(BytesIO(body), schema, None)


# What a schema holds besides arrays and maps, and as how many values it counts.
HELD: dict[str, tuple[list[Any], int]] = {
    "boolean": (["boolean"], 1),
    "array of records": ([array_of(PAIR)], 1),
    "map": ([{"type": "map", "values": PAIR}], 1),
    "enum": ([LETTER, "Letter"], 2),
    "fixed": ([THREE, "Three"], 2),
    "record": ([PAIR], 3),
    "record, and again by its name": ([PAIR, "Pair"], 6),
    "the largest branch": ([["null", PAIR, "boolean"]], 3),
    "instant": ([{"type": "long", "logicalType": "timestamp-millis"}], 1),
    "union of nothing": ([[]], 1),
}


@pytest.mark.parametrize("kind", HELD)
def test_a_schema_may_hold_so_many_values_itself_and_no_more(kind: str) -> None:
    types, weight = HELD[kind]
    given = {f"given{place}": each for place, each in enumerate(types)}
    rest = MOST_VALUES - 1 - weight
    filled = {f"n{place}": "int" for place in range(rest)}
    assert unsafe_reason(record_of(**given, **filled)) is None
    assert unsafe_reason(record_of(**given, **filled, more="int")) == (
        "one record of it can hold more than 3000 values besides arrays and maps"
    )


def test_a_schema_that_is_no_record_is_counted_as_well() -> None:
    assert Bounds(parse_schema(array_of("boolean")), 5).problem(many(5)) == ""
    assert Bounds(parse_schema(array_of("boolean")), 5).problem(many(6)) == TOO_MANY.format(5)
    assert Bounds(parse_schema("string"), 5).problem(b"\2x") == ""
