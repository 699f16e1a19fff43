"""JSON of callers: bodies to values, read strictly, and values back to the bytes that are sent.

A body that cannot be read is refused with a sentence that says where. Values are also judged for
writing: the writer takes integers of 64 bits, and writes a float that is not a number (`NaN`,
`Infinity`, and a literal such as `1e400` that is read as one) as null. A value that would arrive as
another one is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from math import isfinite
from typing import Any, Final, TypeVar, get_args

import orjson
from pydantic import BaseModel, JsonValue, ValidationError

from belfry.api.mistakes import told
from belfry.api.nearest import unknown_name
from belfry.api.problems import Problem

B = TypeVar("B", bound=BaseModel)
# Mistakes of one body that an answer names, and characters of a place.
MOST_SHOWN = 20
MOST_PLACE = 200
# What the parser says of a number with thousands of digits; that is well-formed JSON nevertheless.
ENDLESS_NUMBER = "number out of range"
# Bounds of the integers that the writer of JSON takes.
_LEAST_INTEGER: Final = -(2**63)
_MOST_INTEGER: Final = 2**64 - 1
_SHOWN_DIGITS: Final = 30

# Names of Avro's fields that a body has not, since the call itself says them.
_ADDRESS: Final = {
    "tenant": "the address names the tenant, so leave it out",
    "schedule_id": "the address names the schedule, so leave it out",
    "action": (
        "the method and the address say it, so leave it out: POST creates, PUT replaces, DELETE"
        " cancels, POST to .../pause pauses"
    ),
}
# A field of each body that they are missed in.
_SCHEDULE_OR_POLICY: Final = frozenset({"payload_text", "output_topic"})


def read_json(raw: bytes, kind: type[B]) -> B:
    """A value from JSON; raises `Problem`.

    A text that is not JSON is 400 `bad_json`; JSON that does not fit is 422 `bad_body`, with the
    place of each mistake.
    """
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        raise _invalid(error, kind) from None


def _invalid(error: ValidationError, kind: type[BaseModel]) -> Problem:
    """The problem for a body with these mistakes."""
    found = error.errors(include_url=False)
    errors: list[dict[str, Any]] = [
        {"where": _shown(each["loc"]), "message": _message(each, kind)}
        for each in found[:MOST_SHOWN]
    ]
    if found[0]["type"] == "json_invalid" and ENDLESS_NUMBER in errors[0]["message"]:
        errors[0]["message"] += ": send a number of fewer digits, or a text"
    elif found[0]["type"] == "json_invalid":
        return Problem(HTTPStatus.BAD_REQUEST, errors[0]["message"], "bad_json", errors=errors)
    detail = "; ".join(f"{each['where']}: {each['message']}" for each in errors)
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, "bad_body", errors=errors)


def _shown(loc: tuple[int | str, ...]) -> str:
    """A place in a body, such as ``headers.0.name``."""
    return ".".join(map(str, loc))[:MOST_PLACE] or "body"


def _message(found: Any, kind: type[BaseModel]) -> str:
    """What is wrong at a place; for an unknown name the nearest known one."""
    if found["type"] != "extra_forbidden":
        return told(found)
    *place, name = found["loc"]
    known = _names_at(kind, place)
    if not place and _SCHEDULE_OR_POLICY.intersection(known) and name in _ADDRESS:
        return f"unknown field {name!r}: {_ADDRESS[name]}. Known are {', '.join(known)}."
    return unknown_name(str(name), known)


def _names_at(kind: type[BaseModel], loc: Sequence[int | str]) -> list[str]:
    """Names of the fields that the body has at this place."""
    for part in loc:
        field = kind.model_fields.get(str(part))
        inner = None if field is None else _model_in(field.annotation)
        kind = inner or kind
    return list(kind.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds, or a list of such."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in get_args(annotation) if (found := _model_in(each))), None)


def json_bytes(value: JsonValue) -> bytes:
    """JSON without spaces; raises `ValueError` that says where a value cannot be written, and why.

    `value` is not nested deeper than the parser of requests allows.
    """
    try:
        written = orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise ValueError(_unwritable(value) or f"it cannot be written as JSON: {error}") from None
    # Only a value that was written as null may have been another one before.
    fault = _unwritable(value) if b"null" in written else ""
    if fault:
        raise ValueError(fault)
    return written


def _unwritable(whole: JsonValue) -> str:
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
                f"{_at(place)}{value} is not a number in JSON; one beyond 1e308 is not allowed"
                " either: send null or a text"
            )
        elif isinstance(value, int) and not _LEAST_INTEGER <= value <= _MOST_INTEGER:
            given = str(value)
            shown = given if len(given) <= _SHOWN_DIGITS else f"{given[:_SHOWN_DIGITS]}..."
            return (
                f"{_at(place)}the integer {shown} has more than 64 bits: send it as a text,"
                ' such as "18446744073709551616"'
            )
    return ""


def _at(place: str) -> str:
    """Where in a value something is, in words."""
    return f"at {place[1:][:200]}: " if place else ""
