"""Mistakes that pydantic finds in bodies and parameters, told in the API's own words.

A message says what was given, what is wrong with it, and what is allowed:

    {"delay_ms": "5s"}       '5s' is no whole number of milliseconds, such as 300000
    {"at": true}             true is no instant: give an RFC 3339 date and time with its offset, …
    {"misfire": "skip"}      'skip' is not allowed: FIRE_ONCE, FIRE_ALL or SKIP
    ?limit=0                 '0' is not allowed: 1 or more
    {}                       it is missing, and has to be given

A place that may hold credentials or a user's content is told without what was given there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from belfry.schedules.instants import INSTANT_EXAMPLES

# Places of contents, and of what may be a secret.
_UNSHOWN: Final = frozenset(
    {"headers", "http_targets", "key_text", "key_base64", "payload_text", "payload_base64"}
)
_MOST_SHOWN: Final = 60
_QUOTED: Final = re.compile(r"'([^']*)'")
# The symbol that readers see in place of a later one; nobody sets it.
_UNKNOWN: Final = "UNKNOWN"


def told(found: Mapping[str, Any]) -> str:
    """What is wrong at one place, from an entry of `ValidationError.errors()`."""
    kind, context = found["type"], found.get("ctx") or {}
    if kind == "value_error":
        return str(found["msg"]).removeprefix("Value error, ")
    words = _WORDS.get(kind)
    if words is None:
        return str(found["msg"])
    return f"{_given(found)} {words(str(_name(found)), context)}"


def _name(found: Mapping[str, Any]) -> str | int:
    """The name of the field, without the place of an item in it."""
    names = [part for part in found["loc"] if isinstance(part, str)]
    return names[-1] if names else ""


def _given(found: Mapping[str, Any]) -> str:
    """What was given, as JSON has it; `it` for what is long, is missing or is not shown."""
    given = found.get("input")
    if found["type"] == "missing" or _UNSHOWN.intersection(found["loc"]):
        return "it"
    if given is None or isinstance(given, bool):
        return "null" if given is None else str(given).lower()
    shown = repr(given) if isinstance(given, str | int | float) else ""
    return shown if 0 < len(shown) <= _MOST_SHOWN else "it"


def _number(name: str, _context: Mapping[str, Any]) -> str:
    """What a whole number may be, by the name of its field."""
    if name == "at" or name.endswith(("_at", "_from", "_until")):
        return f"is no instant: give {INSTANT_EXAMPLES}"
    if name.endswith("_ms"):
        return "is no whole number of milliseconds, such as 300000"
    return "is no whole number, such as 3"


def _one_of(_name: str, context: Mapping[str, Any]) -> str:
    """The values that a field may have, without the one that stands for later ones."""
    names = [each for each in _QUOTED.findall(str(context["expected"])) if each != _UNKNOWN]
    listed = " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
    return f"is not allowed: {listed}"


_Words = Callable[[str, Mapping[str, Any]], str]
# What follows what was given, by pydantic's type of a mistake.
_WORDS: Final[Mapping[str, _Words]] = {
    "missing": lambda _name, _context: "is missing, and has to be given",
    "int_type": _number,
    "int_parsing": _number,
    "int_from_float": _number,
    "string_type": lambda _name, _context: "is no text",
    "bool_type": lambda _name, _context: "is neither true nor false",
    "bool_parsing": lambda _name, _context: "is neither true nor false",
    "list_type": lambda _name, _context: "is no list, such as []",
    "model_type": lambda _name, _context: "is no object, such as {}",
    "model_attributes_type": lambda _name, _context: "is no object, such as {}",
    "literal_error": _one_of,
    "enum": _one_of,
    "greater_than_equal": lambda _name, context: f"is not allowed: {context['ge']} or more",
    "less_than_equal": lambda _name, context: f"is not allowed: at most {context['le']}",
    "string_too_short": lambda _name, context: (
        f"is too short: it has to have {context['min_length']} or more characters"
    ),
    "string_too_long": lambda _name, context: (
        f"is too long: at most {context['max_length']} characters are allowed"
    ),
    "too_long": lambda _name, context: (
        f"has {context['actual_length']} items; at most {context['max_length']} are allowed"
    ),
}
