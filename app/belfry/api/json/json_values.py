"""JSON values as the bytes that are sent, or a sentence that says which of them cannot be.

The writer takes integers of 64 bits, and writes what is no number (`NaN`, `Infinity`, and a literal
such as `1e400` that is read as one) as null.  A value that would arrive as another one is refused.
"""

from __future__ import annotations

from math import isfinite
from typing import Final

import orjson
from pydantic import JsonValue

_LEAST: Final = -(2**63)
_MOST: Final = 2**64 - 1
_SHOWN_DIGITS: Final = 30


def json_bytes(value: JsonValue) -> bytes:
    """JSON without spaces; raises `ValueError` that says where a value cannot be written, and why.

    `value` is not nested deeper than the parser of requests allows.
    """
    try:
        written = orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise ValueError(_fault(value) or f"it cannot be written as JSON: {error}") from None
    # Only what was written as null may have been something else before.
    fault = _fault(value) if b"null" in written else ""
    if fault:
        raise ValueError(fault)
    return written


def _fault(whole: JsonValue) -> str:
    """The first number in it that cannot be written, or an empty text."""
    left: list[tuple[str, JsonValue]] = [("", whole)]
    while left:
        place, value = left.pop()
        if isinstance(value, dict):
            left += [(f"{place}.{name}", each) for name, each in value.items()]
        elif isinstance(value, list):
            left += [(f"{place}.{number}", each) for number, each in enumerate(value)]
        elif isinstance(value, float) and not isfinite(value):
            return (
                f"{_named(place)}{value} is no number in JSON, and neither is one beyond 1e308:"
                " send null or a text"
            )
        elif isinstance(value, int) and not _LEAST <= value <= _MOST:
            given = str(value)
            shown = given if len(given) <= _SHOWN_DIGITS else f"{given[:_SHOWN_DIGITS]}..."
            return (
                f"{_named(place)}the integer {shown} has more than 64 bits: send it as a text,"
                ' such as "18446744073709551616"'
            )
    return ""


def _named(place: str) -> str:
    return f"at {place[1:][:200]}: " if place else ""
