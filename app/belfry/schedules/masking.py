"""Targets as they may be shown to those who must not see credentials.

    https://h.example/x?token=abc   authorization: Bearer abc
    https://h.example/x?***         authorization: ***

HTTP shows targets so to callers who may only read, and audit records hold them so for everybody.
All values of headers are masked, whatever their names: a list of names that hold credentials is
never complete.
"""

from __future__ import annotations

from typing import Any, Final

MASK: Final = "***"


def masked_target(target: dict[str, Any]) -> dict[str, Any]:
    """A target without its possible credentials: values of headers, and the query of its URL."""
    found = {**target, "url": masked_url(target["url"])}
    if target.get("headers"):
        # A schedule's are objects, a policy's are pairs.
        found["headers"] = [
            {**each, "value": MASK} if isinstance(each, dict) else [each[0], MASK]
            for each in target["headers"]
        ]
    return found


def masked_url(url: str) -> str:
    """An address whose query, if it has one, is not shown."""
    path, mark, _ = url.partition("?")
    return path + mark + (MASK if mark else "")
