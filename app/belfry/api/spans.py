"""Ranges of instants, and the pages of a history within one."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import Query
from pydantic import Field

from belfry.api.bodies import Instant
from belfry.api.problems import Problem
from belfry.api.queries import Known
from belfry.history.layout import Place

_CURSOR: Final = struct.Struct(">qHQ")


class Span(Known):
    """A range of instants."""

    from_: Instant | None = Field(None, alias="from", description="First instant.")
    until: Instant | None = Field(None, description="Before this instant.")

    def within(self, reach_ms: tuple[int, int]) -> tuple[int, int]:
        """First instant and end, epoch ms, of as much of it as there may be records of."""
        first_ms, end_ms = reach_ms
        until_ms = end_ms if self.until is None else min(self.until, end_ms)
        return max(self.from_ or 0, first_ms), until_ms


class HistorySpan(Span):
    """The same, in pages."""

    limit: int = Field(100, ge=1, le=1000)
    cursor: str | None = Field(None, max_length=100, description="Of the page before.")

    def start(self) -> Place | None:
        """Where the page begins, None for the first; raises `Problem` for what is no cursor."""
        if self.cursor is None:
            return None
        try:
            raw = urlsafe_b64decode(self.cursor + "=" * (-len(self.cursor) % 4))
            return Place(*_CURSOR.unpack(raw))
        except (ValueError, struct.error):
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"Cursor {self.cursor!r} is none: give back that of a page, or leave it out.",
                "bad_cursor",
            ) from None


def cursor_to(place: Place | None) -> str | None:
    """The cursor of a page that begins at a place; null for none."""
    return None if place is None else urlsafe_b64encode(_CURSOR.pack(*place)).decode().rstrip("=")


SpanQuery = Annotated[Span, Query()]
HistoryQuery = Annotated[HistorySpan, Query()]
