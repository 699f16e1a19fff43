"""Values of the header protocol: how the text of each header is read, by the form of its field.

    belfry-at: 2026-12-01T09:00:00Z      instant      1796115600000
    belfry-jitter: 5m                    duration     300000
    belfry-serial: True                  flag         True
    belfry-max-fires: 3                  number       3
    belfry-webhook: https://a.example    targets      one target, with the defaults of the others
    belfry-retry: first=5s attempts=8    none         a `RetryRule`: it is not a field

    belfry-group: a  belfry-group: a     counts once
    belfry-group: a  belfry-group: b     refused: it is unclear which of them is meant

A later field gets its reader by its form, and needs no line in this module. Each reader raises
ValueError, which says what was given and what is allowed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from belfry.schedules.field import Form
from belfry.schedules.fields import FIELDS
from belfry.schedules.instants import parse_duration, parse_instant
from belfry.schedules.rejections import Rejection
from belfry.schedules.retry_rule import HEADER as RETRY
from belfry.schedules.retry_rule import parse_retry_rule
from belfry.schedules.targets import record_of

FLAGS: Final = {"true": True, "false": False}
# The largest number that Avro has room for.
MOST: Final = (1 << 63) - 1
_DIGITS: Final = 19


def parse_number(text: str) -> int:
    """A whole number in decimal digits."""
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
        raise ValueError(f"{text!r:.80} is no whole number, such as 3.")
    number = int(text)
    if abs(number) > MOST:
        raise ValueError(f"{text!r:.80} is too large: at most {MOST}.")
    return number


def parse_flag(text: str) -> bool:
    """``true`` or ``false``, in any case."""
    found = FLAGS.get(text.strip().lower())
    if found is None:
        raise ValueError(f"{text!r:.80} is neither true nor false.")
    return found


def parse_targets(text: str) -> list[dict[str, Any]]:
    """One address, or a JSON list of addresses and of objects as the HTTP API takes them."""
    if not text.lstrip().startswith("["):
        return [record_of(text.strip())]
    try:
        return [_target(each) for each in json.loads(text)]
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{text!r:.80} is no list of targets: give an address, or a JSON list of addresses and"
            f" objects with url ({error})"
        ) from None


def _target(given: Any) -> dict[str, Any]:
    """A target whose fields have their types in Avro."""
    record = record_of(given)
    for name, value in record_of("").items():
        found = record[name]
        if name == "headers" or (found is None and value is None):
            continue
        wanted = str if value is None else type(value)
        if type(found) is not wanted:
            raise ValueError(f"{name} is {found!r:.80}, which is no {wanted.__name__}")
        _check_text(found)
    for each in record["headers"]:
        if type(each["name"]) is not str or type(each["value"]) is not str:
            raise ValueError(f"header {each!r:.80} is not two texts")
        _check_text(each["name"] + each["value"])
    return record


def _check_text(given: object) -> None:
    """Raise ValueError for half a character, which JSON can escape and UTF-8 cannot hold."""
    if isinstance(given, str):
        given.encode()


def parse_zone(text: str) -> str:
    """The name of a time zone; ValueError for an empty one, which comes of a variable not set."""
    if not text:
        raise ValueError(
            "'' is no time zone: give an IANA name such as Europe/Paris, or leave the header out,"
            " which is UTC."
        )
    return text


_BY_FORM: Final[dict[Form, Callable[[str], Any]]] = {
    Form.TEXT: str,
    Form.SYMBOL: str,
    Form.INSTANT: parse_instant,
    Form.DURATION: parse_duration,
    Form.NUMBER: parse_number,
    Form.FLAG: parse_flag,
    Form.TARGETS: parse_targets,
}
ZONE: Final = "belfry-timezone"
# The reader of each header of a field, and of the header that puts a record back.
READERS: Final = {
    **{field.header: _BY_FORM[field.form] for field in FIELDS.values() if field.header},
    RETRY: parse_retry_rule,
    ZONE: parse_zone,
}


def said_twice(code: str, name: str, first: bytes, second: bytes) -> Rejection:
    """Why a record whose header comes with two values is refused, under this code."""
    one, other = (each.decode(errors="replace") for each in (first, second))
    return Rejection(
        code,
        f"Header {name} comes twice, as {one!r:.80} and {other!r:.80}: keep one of them,"
        " or give both the same value.",
    )
