"""Conditions of a change: the version that a schedule must have, or that it must not exist."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from pydantic import BaseModel, Field

from belfry.api.problems import Problem
from belfry.schedules.identity import expected_from

_TAG: Final = re.compile(r'(?:W/)?"?([0-9.]{1,21})"?')


class Match(BaseModel):
    """The version that the schedule has to have."""

    if_match: str | None = Field(
        None,
        description='The ETag it has to have, such as "1234567.3", or a version, such as "3".',
    )


class Conditions(Match):
    """The same, or that it must not be there."""

    if_none_match: str | None = Field(None, description="`*`: only if there is no such schedule.")


def expected_version(if_match: str | None) -> int | None:
    """The version that an `If-Match` expects, as in `expected_version`; raises `Problem`.

    An ETag of belfry's names generation and version.  A version alone matches any generation.
    """
    if if_match is None:
        return None
    found = _TAG.fullmatch(if_match.strip())
    expected = expected_from(found[1]) if found else None
    if expected is None:
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"If-Match {if_match[:100]!r} names no version: give the ETag of an answer, such as"
            ' "1234567.3", or a version, such as "3".',
            "bad_condition",
        )
    return expected


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
