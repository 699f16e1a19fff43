"""`If-Match` and `If-None-Match`: what a schedule has to be for a change to count."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from belfry.api.problems import Problem

_VERSION: Final = re.compile(r'(?:W/)?"?([1-9][0-9]{0,9})"?')


def expected_version(if_match: str | None) -> int | None:
    """The version that an `If-Match` names; raises `Problem` for what names none."""
    if if_match is None:
        return None
    found = _VERSION.fullmatch(if_match.strip())
    version = int(found[1]) if found else 0
    if not 0 < version < 2**31:
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"If-Match {if_match[:100]!r} names no version: give the ETag of an answer, such as"
            ' "3".',
            "bad_condition",
        )
    return version


def must_be_new(if_none_match: str | None) -> bool:
    """Whether an `If-None-Match` asks for a schedule that is not there yet."""
    if if_none_match is None:
        return False
    if if_none_match.strip() != "*":
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"If-None-Match {if_none_match[:100]!r} is not taken: give *, or leave it out.",
            "bad_condition",
        )
    return True
