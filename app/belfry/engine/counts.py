"""Counts of schedules that wait, for tenants with a quota; counted in slices, then kept up.

The first count reads all rows of a tenant, which may be millions.  So a step reads at most `SLICE`
of them and the next goes on behind; what has been counted by then is the count so far.  A write
changes it where the count has passed its place: the rest is yet to be read.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from belfry.store.records import PLACE
from belfry.store.schedules import ScheduleStore

SLICE: Final = 20_000
# Behind every row of a tenant: the count is complete.
_END: Final = b"\xff"


class Counts:
    """How many schedules of a tenant wait in one partition, of those that were asked for."""

    def __init__(self, store: ScheduleStore) -> None:
        self._store = store
        # By tenant: the count, and where it goes on.
        self._counted: dict[bytes, tuple[int, bytes]] = {}
        self._read_of: set[bytes] = set()

    def of(self, name: bytes) -> int:
        """How many wait, as far as they have been counted; reads one slice in a step."""
        count, cursor = self._counted.get(name, (0, b""))
        if cursor != _END and name not in self._read_of:
            self._read_of.add(name)
            count, cursor = self._counted[name] = self._go_on(name, count, cursor)
        return count

    def _go_on(self, name: bytes, count: int, cursor: bytes) -> tuple[int, bytes]:
        start = b"k" + name + b"/"
        rows = list(islice(self._store.rows.scan(cursor or start, start[:-1] + b"0"), SLICE))
        count += sum(row[1] == PLACE for _, row in rows)
        return count, rows[-1][0] + b"\0" if len(rows) == SLICE else _END

    def committed(self) -> None:
        """Keep up with a step; called before its writes go to the store."""
        self._read_of.clear()
        if not self._counted:
            return
        passed = [(key, row) for key, row in self._store.writes.items() if self._passed(key)]
        before = self._store.rows.get_many([key for key, _ in passed])
        for (key, row), old in zip(passed, before, strict=True):
            count, cursor = self._counted[_tenant(key)]
            self._counted[_tenant(key)] = (count + _waits(row) - _waits(old), cursor)

    def aborted(self) -> None:
        """Forget a step: what was read is in the store, so it stays counted."""
        self._read_of.clear()

    def _passed(self, key: bytes) -> bool:
        counted = self._counted.get(_tenant(key)) if key[:1] == b"k" else None
        return counted is not None and key < counted[1]


def _tenant(key: bytes) -> bytes:
    return key[1 : key.find(b"/")]


def _waits(row: bytes | None) -> int:
    return int(row is not None and row[1] == PLACE)
