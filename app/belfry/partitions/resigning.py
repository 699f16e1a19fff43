"""Rows that are not signed with the present secret, written to the changelog once more.

Each step writes some of them, beside its own rows.  The content of a row stays the same; only its
signature changes.  The walk goes through all rows, because the store does not tell how a row is
signed.  A step that is rolled back takes its part back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belfry.store.layout.locations import is_location
from belfry.store.schedules import ScheduleStore

Rows = dict[bytes, bytes | None]

# The most rows and bytes that join one step.
ROWS: Final = 2_000
BYTES: Final = 1_000_000


class Resigning:
    """A walk through all rows of one owned partition; used by its thread alone."""

    def __init__(self, store: ScheduleStore, done: Callable[[], bool]) -> None:
        """`done` is called once all is committed, after each commit until it returns True."""
        self._store = store
        self._done = done
        # The last name that was written again: as of the last commit, and with this step.
        self._from: bytes | None = None
        self._reached: bytes | None = None
        self._is_over = self._was_over = False
        self.under_way = True

    def add(self, rows: Rows) -> None:
        """Add the next rows to the rows of a step; the step's own rows win."""
        room, found = BYTES, 0
        for name, _ in self._store.names(self._from, ROWS):
            found += 1
            self._reached = name
            if name not in rows and (row := self._store.named(name)) is not None:
                rows[name] = row = self._row(name, row)
                room -= len(row)
            if room < 0:
                return
        self._is_over = found < ROWS

    def _row(self, name: bytes, row: bytes) -> bytes:
        return self._store.pending_at(name, row) if is_location(row) else row

    def committed(self) -> None:
        """The rows that were added last are in the changelog."""
        self._from, self._was_over = self._reached, self._is_over
        if self._was_over:
            self.under_way = not self._done()

    def aborted(self) -> None:
        """The rows that were added last are not in the changelog."""
        self._reached, self._is_over = self._from, self._was_over
