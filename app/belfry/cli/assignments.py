"""FIELD=VALUE as it is typed: a value is JSON or else text, and `none` takes one away."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any, Final

from belfry.cli.failures import WrongUse

NONE: Final = "none"


def assigned(given: Iterable[str], example: str) -> dict[str, Any]:
    """The fields with their values, None for each field that is removed; raises WrongUse."""
    import orjson

    found: dict[str, Any] = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not equals:
            raise WrongUse(f"{each!r} sets nothing: give FIELD=VALUE, such as {example}.")
        try:
            found[name] = None if text == NONE else orjson.loads(text)
        except orjson.JSONDecodeError:
            found[name] = text
    return found


def check_names(given: Iterable[str], known: Collection[str]) -> None:
    """Raise WrongUse for a name that is not known, with the nearest one."""
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise WrongUse(f"{name!r} is no field.{meant} There are: {', '.join(sorted(known))}.")
