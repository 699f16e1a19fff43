"""Fire ids that were handled, so that an event that comes twice is handled once.

Kafka delivers events again that were handled and not yet committed when a consumer ended.
`SeenFile` keeps the ids in a file (SQLite, from Python itself), which survives the restart;
`SeenInMemory` does not, and serves tests.  A consumer whose partitions move between machines needs
a place that all of them reach: anything with these two methods will do, best the database that the
handler writes to.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from time import time
from typing import Final, Protocol

KEEP_S: Final = 7 * 24 * 3600.0
FORGET_EVERY: Final = 1_000


class Seen(Protocol):
    """The memory of handled events."""

    def knows(self, fire_id: str) -> bool:
        """Whether this fire was handled."""

    def add(self, fire_id: str) -> None:
        """This fire is handled; it is on disk when this returns."""

    def close(self) -> None:
        """Give the file back."""


class SeenInMemory:
    """Forgets everything at the end of the process."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def knows(self, fire_id: str) -> bool:
        """Whether this fire was handled."""
        return fire_id in self._ids

    def add(self, fire_id: str) -> None:
        """This fire is handled."""
        self._ids.add(fire_id)

    def close(self) -> None:
        """It holds no resources to give back."""


class SeenFile:
    """A file of fire ids; those that are older than `keep_s` are forgotten."""

    def __init__(self, path: str | Path, keep_s: float = KEEP_S) -> None:
        self._keep_s = keep_s
        self._added = 0
        # One subscriber uses it, from one thread at a time.
        self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS seen"
            " (fire_id TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID"
        )

    def knows(self, fire_id: str) -> bool:
        """Whether this fire was handled."""
        found = self._file.execute("SELECT 1 FROM seen WHERE fire_id = ?", (fire_id,))
        return found.fetchone() is not None

    def add(self, fire_id: str) -> None:
        """This fire is handled: kept through a kill of the process as soon as this returns."""
        self._file.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (fire_id, time()))
        self._added += 1
        if self._added % FORGET_EVERY == 0:
            self._file.execute("DELETE FROM seen WHERE at < ?", (time() - self._keep_s,))

    def close(self) -> None:
        """Give the file back."""
        self._file.close()
