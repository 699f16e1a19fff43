"""Rows that are not signed with the present secret, written to the changelog once more.

Some of them as a part of each step, beside what the step itself writes: what a row says stays the
same, so nothing changes but the proof behind it.  All rows are walked through, since nothing local
tells how a row is signed.  A step that is rolled back takes its part back.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from belfry.store import keys
from belfry.store.recovery import PLACE_HEAD
from belfry.store.schedules import ScheduleStore

Rows = dict[bytes, bytes | None]

# What joins one step.
ROWS: Final = 2_000
BYTES: Final = 1_000_000


class Resigning:
    """A walk through all rows of one owned partition; used by its thread alone."""

    def __init__(self, store: ScheduleStore, done: Callable[[], bool]) -> None:
        """`done` is asked when all has been committed, again and again until it says so."""
        self._store = store
        self._done = done
        self._from = self._reached = keys.NAMED_PREFIX
        self.under_way = True

    def add(self, rows: Rows) -> None:
        """Add the next rows to those of a step, which win."""
        room = BYTES
        for key, _ in islice(self._store.rows.scan(self._from, keys.NAMED_END), ROWS):
            name = key[1:]
            self._reached = key + b"\0"
            if name not in rows and (row := self._store.named(name)) is not None:
                rows[name] = row = self._row(name, row)
                room -= len(row)
            if room < 0:
                return
        if not self._more():
            self._reached = keys.NAMED_END

    def _more(self) -> bool:
        scan = self._store.rows.scan(self._reached, keys.NAMED_END)
        return next(iter(scan), None) is not None

    def _row(self, name: bytes, row: bytes) -> bytes:
        return self._store.pending_at(name, row) if row[:2] == PLACE_HEAD else row

    def committed(self) -> None:
        """What was added last is in the changelog."""
        self._from = self._reached
        if self._from == keys.NAMED_END:
            self.under_way = not self._done()

    def aborted(self) -> None:
        """What was added last is not in the changelog."""
        self._reached = self._from
