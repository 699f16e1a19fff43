"""Which writers' schemas may be decoded at all.

A schema from a registry is like a program from an unknown author: recursion makes fastavro overflow
the C stack, and items without bytes let six bytes ask for 2^60 of them.  `unsafe_reason` refuses
such schemas before any record is read.

The measure is one number per type, its *excess*: the most values that an encoding of the type can
hold beyond `VALUES_PER_BYTE` for each of its bytes. Items of arrays and maps must have none (else
few bytes could repeat them often), and a whole schema little. A schema that passes therefore
decodes to at most ``VALUES_PER_BYTE * bytes + FREE_VALUES`` values, so that a limit on bytes limits
memory. Values in arrays and maps are counted in each record (`bounds.py`); all other values of a
schema are bounded here. Named types are measured once, which keeps the survey linear for a schema
that doubles itself.

    schema                                        refused because
    array of null                                 six bytes ask for 2^60 items
    record R with an optional field of type R     it contains itself
    D1 = two D0, D2 = two D1, … D40               2^40 values in a record of a few bytes
    JSON nested 65 levels deep                    parsing it would recurse as well
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastavro import parse_schema

from belfry.wire.bounds import MOST_VALUES, values_of

MAX_VALUE_BYTES: Final = 1024 * 1024
"""Largest encoded record to decode: Kafka's own default limit of a record batch."""

MAX_SCHEMA_BYTES: Final = 256 * 1024
"""Largest text of a writer's schema to parse."""

VALUES_PER_BYTE: Final = 4
FREE_VALUES: Final = 1_000
MAX_DEPTH: Final = 64

_LEAST_BYTES: Final[Mapping[str, int]] = {
    "null": 0,
    "boolean": 1,
    "int": 1,
    "long": 1,
    "float": 4,
    "double": 8,
    "bytes": 1,
    "string": 1,
}


class _UnsafeError(Exception):
    """Carries the reason out of the survey; never leaves this module."""


def unsafe_reason(schema: object) -> str | None:
    """Why records of this schema must not be decoded, or None if they may.

    Takes any JSON value as a registry returned it; the reason is a clause without a full stop.
    """
    try:
        _check_json(schema)
        parsed = _parse(schema)
        excess = _Survey().excess(parsed)
    except _UnsafeError as unsafe:
        return str(unsafe)
    if excess > FREE_VALUES:
        return f"one record of it can hold more than {FREE_VALUES} values that take no bytes"
    if values_of(parsed, {}) > MOST_VALUES:
        return f"one record of it can hold more than {MOST_VALUES} values besides arrays and maps"
    return None


class _Survey:
    """One walk over one parsed schema (all names are full); knows the types that it has passed."""

    def __init__(self) -> None:
        self._measured: dict[str, int] = {}
        self._open: set[str] = set()

    def excess(self, schema: Any) -> int:
        """The most values beyond the allowance for an encoding's bytes."""
        if isinstance(schema, list):
            return max(map(self.excess, schema), default=0) - VALUES_PER_BYTE
        if not isinstance(schema, dict):
            return self._by_name(schema)
        kind = schema["type"]
        if kind in ("array", "map"):
            return self._repeated(schema["items" if kind == "array" else "values"])
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(schema)
        return self._by_name(kind)

    def _by_name(self, name: str) -> int:
        if name in _LEAST_BYTES:
            return 1 - VALUES_PER_BYTE * _LEAST_BYTES[name]
        if name in self._open:
            raise _UnsafeError(f"its type {name!r} contains itself, and recursion is not read")
        return self._measured[name]

    def _repeated(self, item: Any) -> int:
        if self.excess(item) > 0:
            raise _UnsafeError("it repeats items of no or few bytes, which a few bytes can ask for")
        return 1 - VALUES_PER_BYTE

    def _named(self, schema: dict[str, Any]) -> int:
        name = schema["name"]
        self._open.add(name)
        self._measured[name] = self._size(schema)
        self._open.discard(name)
        return self._measured[name]

    def _size(self, schema: dict[str, Any]) -> int:
        if schema["type"] == "enum":
            return 1 - VALUES_PER_BYTE
        if schema["type"] == "fixed":
            return 1 - VALUES_PER_BYTE * _fixed_bytes(schema["size"])
        return 1 + sum(self.excess(field["type"]) for field in schema["fields"])


def _check_json(schema: object) -> None:
    """Refuse what the parser cannot handle: deep nesting, and fastavro's private marks."""
    level: list[object] = [schema]
    depth = 0
    while level:
        if depth > MAX_DEPTH:
            raise _UnsafeError(f"it is nested deeper than {MAX_DEPTH} levels")
        below: list[object] = []
        for each in level:
            if isinstance(each, dict):
                if any(str(key).startswith("__") for key in each):
                    # fastavro would believe a schema that marks itself as parsed, and not parse it.
                    raise _UnsafeError("it holds keys that start with two underscores")
                below.extend(each.values())
            elif isinstance(each, list):
                below.extend(each)
        level, depth = below, depth + 1


def _parse(schema: object) -> Any:
    try:
        return parse_schema(schema)  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001  # any error of fastavro
        raise _UnsafeError(
            f"it is no valid Avro schema ({type(error).__name__}: {str(error)[:200]})"
        ) from None


def _fixed_bytes(size: object) -> int:
    if not isinstance(size, int) or not 0 <= size <= MAX_VALUE_BYTES:
        raise _UnsafeError(
            f"a fixed has {str(size)[:40]} bytes; 0 to {MAX_VALUE_BYTES} are allowed"
        )
    return size
