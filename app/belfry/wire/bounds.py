"""Bounds the number of values in a record, before any of them is made.

Two bytes can be a header, so a megabyte can ask for half a million of them, and a decoder makes
them all before they can be counted. `Bounds` walks over the bytes by a writer's schema, makes no
values, and stops at the first block of an array or a map that exceeds the bound. It counts the
values in arrays and maps; `safety.unsafe_reason` counts the other values of a schema once.

    tenant  id  ...  payload  headers: 500 000 ×  (name, value)  ...
                              └─ 3 × 500 000 > MOST_VALUES: refused here

The walk reads numbers, indexes and lengths exactly as fastavro does, negative ones included, so it
counts the same values that fastavro decodes. It ends at invalid bytes: fastavro stops at the same
place and says why.

A body of up to a kilobyte is not walked over, and a walk ends once the remaining bytes are too few
to hold too many values: most requests cost a handful of steps. That conclusion is sound because
`safety` refuses each schema that gets more than four values out of a byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

MOST_VALUES: Final = 3_000
"""Most values in arrays and maps: 256 headers and 16 HTTP targets have fewer."""

UNCOUNTED_BYTES: Final = 1_024
"""A body up to this size is decoded as it is: its values cannot take long."""

_SHORT: Final = 0x80
_LONGEST: Final = 10
_FIXED: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}

# Takes the bytes, the begin of a value, and a list with the number of values that are left; returns
# the value's end.
Skip = Callable[[bytes, int, list[int]], int]


class _TooManyError(Exception):
    """More values than are allowed; never leaves this module."""


class Bounds:
    """Counts the values in records of one writer's schema, which has passed `safety`."""

    def __init__(self, parsed: Any, most: int = MOST_VALUES) -> None:
        self._most = most
        skips = _Skips()
        record = isinstance(parsed, dict) and "fields" in parsed
        types = [field["type"] for field in parsed["fields"]] if record else [parsed]
        # Optional fields are mostly null, a zero byte.
        self._fields = [(_is_optional(each), skips.of(each)) for each in types]

    def problem(self, body: bytes) -> str:
        """Why a body must not be decoded, as a sentence; empty if it may be."""
        left, at, size = [self._most], 0, len(body)
        try:
            for optional, skip in self._fields:
                if optional and not body[at]:
                    at += 1
                    continue
                at = skip(body, at, left)
                if size - at <= left[0] >> 2:
                    # `safety.VALUES_PER_BYTE`: the rest is too short to hold too many.
                    return ""
        except _TooManyError:
            return (
                f"The value holds more than {self._most} values in arrays and maps: 256 headers"
                " and 16 HTTP targets are the most that a request may have."
            )
        except (IndexError, ValueError):
            pass
        return ""


def _is_optional(parsed: Any) -> bool:
    return isinstance(parsed, list) and parsed[:1] == ["null"]


def values_of(parsed: Any, known: dict[str, int]) -> int:
    """Most values in one value of a schema, each array and map counted as one."""
    if isinstance(parsed, list):
        return max((values_of(branch, known) for branch in parsed), default=1)
    if not isinstance(parsed, dict):
        return known.get(parsed, 1)
    if "fields" not in parsed:
        return 1
    found = 1 + sum(values_of(field["type"], known) for field in parsed["fields"])
    known[parsed["name"]] = found
    return found


class _Skips:
    """Makes functions that skip values; each named type once."""

    def __init__(self) -> None:
        self._named: dict[str, Skip] = {}
        self._values: dict[str, int] = {}

    def of(self, parsed: Any) -> Skip:
        """The function that skips a value of a parsed schema."""
        if isinstance(parsed, list):
            return _union([self.of(branch) for branch in parsed])
        if not isinstance(parsed, dict):
            return self._named.get(parsed) or _primitive(parsed)
        kind = parsed["type"]
        if kind == "array":
            return self._repeated(parsed["items"], keyed=False)
        if kind == "map":
            return self._repeated(parsed["values"], keyed=True)
        if "name" not in parsed:
            return self.of(kind)
        self._named[parsed["name"]] = skip = self._of_name(parsed)
        values_of(parsed, self._values)
        return skip

    def _of_name(self, parsed: dict[str, Any]) -> Skip:
        if parsed["type"] == "enum":
            return _number
        if parsed["type"] == "fixed":
            return _fixed(parsed["size"])
        return _record([self.of(field["type"]) for field in parsed["fields"]])

    def _repeated(self, item: Any, *, keyed: bool) -> Skip:
        skip = self.of(item)
        weight = values_of(item, self._values) + keyed
        return _blocks(_record([_text, skip]) if keyed else skip, weight)


def _long(body: bytes, at: int) -> tuple[int, int]:
    """A number, and the place of the next byte. A number that is too long is undefined."""
    coded = shift = 0
    for place in range(at, at + _LONGEST):
        byte = body[place]
        coded |= (byte & 0x7F) << shift
        if byte < _SHORT:
            coded &= 0xFFFFFFFFFFFFFFFF
            return (coded >> 1) ^ -(coded & 1), place + 1
        shift += 7
    raise ValueError


def _number(body: bytes, at: int, left: list[int]) -> int:
    del left
    return at + 1 if body[at] < _SHORT else _long(body, at)[1]


def _text(body: bytes, at: int, left: list[int]) -> int:
    """Skip a string or bytes; a negative length is the end of everything."""
    del left
    coded = body[at]
    if coded < _SHORT and not coded & 1:
        return at + 1 + (coded >> 1)
    size, at = _long(body, at)
    if size < 0:
        raise ValueError
    return at + size


def _fixed(size: int) -> Skip:
    return lambda _body, at, _left: at + size


def _primitive(kind: str) -> Skip:
    if kind in _FIXED:
        return _fixed(_FIXED[kind])
    return _text if kind in ("string", "bytes") else _number


def _record(fields: Sequence[Skip]) -> Skip:
    def skip(body: bytes, at: int, left: list[int]) -> int:
        for field in fields:
            at = field(body, at, left)
        return at

    return skip


def _union(branches: Sequence[Skip]) -> Skip:
    def skip(body: bytes, at: int, left: list[int]) -> int:
        index = body[at]
        if index < _SHORT:
            return branches[(index >> 1) ^ -(index & 1)](body, at + 1, left)
        number, at = _long(body, at)
        return branches[number](body, at, left)

    return skip


def _blocks(item: Skip, weight: int) -> Skip:
    def skip(body: bytes, at: int, left: list[int]) -> int:
        while True:
            count, at = _long(body, at)
            if not count:
                return at
            if count < 0:
                count, (_, at) = -count, _long(body, at)
            left[0] -= count * weight
            if left[0] < 0:
                raise _TooManyError
            for _ in range(count):
                at = item(body, at, left)

    return skip
