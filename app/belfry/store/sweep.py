"""The sweep: markers and verdicts whose time is over become tombstones, a few rows at a time.

Whoever reads a row judges its age, so the sweep may be slow; it only gives space back.  It walks
the named rows round and round instead of keeping an index of ends, which would cost every fire.
It looks at a row for each one that is written.  A schedule's name is written when it is accepted,
when it is over and when it ends, so what is over stays less than what is not.

A verdict's hour is that of requests: what repeats one may lie in the log for days before it is
read, so the verdict stays until a request has been read that came an hour later.
"""

from __future__ import annotations

from belfry.store.layout.records import (
    MARKER_MS,
    REQUEST_ID_MS,
    decode_marker,
    decode_verdict,
    is_answer,
    is_marker,
)
from belfry.store.schedules import ScheduleStore


class Sweep:
    """Walks the named rows of a store."""

    def __init__(self, store: ScheduleStore) -> None:
        self._store = store
        self._cursor: bytes | None = None
        self._owed = 0

    @property
    def behind(self) -> bool:
        """Whether rows were written that have not been made up for."""
        return self._owed > 0

    def wrote(self, rows: int) -> None:
        """So many more rows were written."""
        self._owed += rows

    def restart(self) -> None:
        """Begin again: the last steps were not committed."""
        self._cursor = None

    def sweep(self, now_ms: int, heard_ms: int, at_most: int) -> None:
        """Look at the next `at_most` rows and end those whose time is over at `now_ms`.

        All requests that came before `heard_ms` have been read.
        """
        heard_ms = min(heard_ms, now_ms)
        self._owed = max(0, self._owed - at_most)
        rows = list(self._store.names(self._cursor, at_most))
        for name, row in rows:
            if self._over(row, now_ms, heard_ms) and name not in self._store.changed:
                self._store.note(name, None)
        if len(rows) == at_most:
            self._cursor = rows[-1][0]
        else:
            # All the way round: a small store owes nothing.
            self._cursor, self._owed = None, 0

    def _over(self, row: bytes, now_ms: int, heard_ms: int) -> bool:
        if is_marker(row):
            return now_ms - decode_marker(row).ended_ms >= MARKER_MS
        return is_answer(row) and heard_ms - decode_verdict(row).at_ms >= REQUEST_ID_MS
