"""Ranges of instants, and the pages of a history within one.

A history's cursor is one of `cursors.py`: the place at which the page begins, after a digest of the
question. A caller who makes one up gets the digest right, for it is no secret, so the place is
checked.
"""

from __future__ import annotations

import struct
from http import HTTPStatus
from typing import Final, Literal

from pydantic import Field

from belfry.api.json.cursors import question, read_cursor, write_cursor
from belfry.api.json.queries import Known
from belfry.api.json.values import Instant
from belfry.api.problems import Problem
from belfry.history.layout import LAST_OFFSET, SortKey
from belfry.schedules.outcomes import Outcome

# The last millisecond that RFC 3339 can say.
LAST_MS: Final = 253_402_300_799_999
# The instant and the offset of a place; the partition stands before them in every cursor.
_KEY: Final = struct.Struct(">qQ")


class TimeSpan(Known):
    """A range of instants."""

    from_: Instant | None = Field(None, alias="from", description="First instant.")
    until: Instant | None = Field(None, description="Before this instant.")

    def within(self, reach_ms: tuple[int, int]) -> tuple[int, int]:
        """First instant and end, epoch ms, of as much of it as there may be records of."""
        first_ms, end_ms = reach_ms
        until_ms = end_ms if self.until is None else min(self.until, end_ms)
        return max(self.from_ or 0, first_ms), until_ms


class HistorySpan(TimeSpan):
    """The same, in pages."""

    limit: int = Field(100, ge=1, le=1000)
    cursor: str | None = Field(None, max_length=100, description="Of the page before.")

    def asked(self, *whose: str) -> bytes:
        """A digest of the question that a cursor has to belong to; `whose` is a tenant or more."""
        return question("history", whose, self.from_, self.until)

    def start(self, asked: bytes) -> SortKey | None:
        """Where the page begins, None for the first; raises `Problem` for a bad cursor."""
        if self.cursor is None:
            return None
        partition, key = read_cursor(self.cursor, asked)
        place = _place(partition, key)
        if place is None:
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"Cursor {self.cursor!r} is none: give back that of a page, or leave it out.",
                "bad_cursor",
            )
        return place


class ScheduleHistorySpan(HistorySpan):
    """The same of one schedule: from its newest event on, and of some outcomes alone, if wanted."""

    order: Literal["oldest", "newest"] = Field("oldest", description="Which events come first.")
    outcome: list[Outcome] = Field(
        [], max_length=len(Outcome), description="Only these; repeat it for more than one."
    )

    @property
    def newest_first(self) -> bool:
        """Whether the newest event comes first."""
        return self.order == "newest"

    def asked(self, *whose: str) -> bytes:
        """A digest of the question that a cursor has to belong to: of one order and filter."""
        return super().asked(*whose, *([self.order] if self.newest_first else []), *self.outcome)


def cursor_to(place: SortKey | None, asked: bytes) -> str | None:
    """The cursor of a page that begins at a place; null for none."""
    if place is None:
        return None
    return write_cursor(asked, place.partition, _KEY.pack(place.at_ms, place.offset))


def _place(partition: int, key: bytes) -> SortKey | None:
    """The place that a cursor names, None where there cannot be one."""
    if len(key) != _KEY.size:
        return None
    at_ms, offset = _KEY.unpack(key)
    if not (0 <= at_ms <= LAST_MS and offset <= LAST_OFFSET):
        return None
    return SortKey(at_ms, partition, offset)
