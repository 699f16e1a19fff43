"""The sweep: markers and verdicts whose time is over become tombstones, a few rows at a time.

Whoever reads a row judges its age, so the sweep may be slow; it only gives space back.  It walks
the named rows round and round instead of keeping an index of ends, which would cost every fire.
It looks at a row for each one that is written.  A schedule's name is written when it is accepted,
when it is over and when it ends, so what is over stays less than what is not.

A verdict's hour is that of requests: what repeats one may lie in the log for days before it is
read, so the verdict stays until a request has been read that came an hour later.
"""

from __future__ import annotations

from itertools import islice
from typing import Protocol

from belfry.store import keys
from belfry.store.records import ANSWERED, MARKER, VERDICT, decode_marker, decode_verdict
from belfry.store.schedules import ScheduleStore

MARKER_MS = 24 * 3_600_000
REQUEST_ID_MS = 3_600_000


class Rows(Protocol):
    """What takes the tombstones: the effects of a step."""

    rows: dict[bytes, bytes | None]


class Sweep:
    """Walks the named rows of a store."""

    def __init__(self, store: ScheduleStore) -> None:
        self._store = store
        self._cursor = keys.NAMED_PREFIX
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
        self._cursor = keys.NAMED_PREFIX

    def sweep(self, now_ms: int, heard_ms: int, at_most: int, effects: Rows) -> None:
        """Look at the next `at_most` rows and end those whose time is over at `now_ms`.

        All requests that came before `heard_ms` have been read.
        """
        heard_ms = min(heard_ms, now_ms)
        self._owed = max(0, self._owed - at_most)
        rows = list(islice(self._store.rows.scan(self._cursor, keys.NAMED_END), at_most))
        for key, row in rows:
            if self._over(row, now_ms, heard_ms) and key not in self._store.writes:
                effects.rows[key[1:]] = None
                self._store.writes[key] = None
        if len(rows) == at_most:
            self._cursor = rows[-1][0] + b"\0"
        else:
            # All the way round: a small store owes nothing.
            self._cursor, self._owed = keys.NAMED_PREFIX, 0

    def _over(self, row: bytes, now_ms: int, heard_ms: int) -> bool:
        if row[1] == MARKER:
            return now_ms - decode_marker(row).ended_ms >= MARKER_MS
        answer = row[1] in (ANSWERED, VERDICT)
        return answer and heard_ms - decode_verdict(row).at_ms >= REQUEST_ID_MS
