"""Counts of schedules that wait, for tenants with a quota; counted in slices, then kept up.

The first count reads all rows of a tenant, which may be millions.  So a step reads at most `SLICE`
of them and the next goes on behind; what has been counted by then is the count so far.  A write
changes it where the count has passed its place: the rest is yet to be read.
"""

from __future__ import annotations

from typing import Final

from belfry.store.layout.keys import tenant_of
from belfry.store.layout.records import is_location
from belfry.store.schedules import ScheduleStore

SLICE: Final = 20_000
# Behind every name of a tenant: the count is complete.
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
        rows = list(self._store.names_of(name, cursor or None, SLICE))
        count += sum(is_location(row) for _, row in rows)
        return count, rows[-1][0] if len(rows) == SLICE else _END

    def committed(self) -> None:
        """Keep up with a step; called before its writes go to the store."""
        self._read_of.clear()
        if not self._counted:
            return
        for name, change in self._store.waiting_changes(self._passed):
            count, cursor = self._counted[tenant_of(name)]
            self._counted[tenant_of(name)] = (count + change, cursor)

    def aborted(self) -> None:
        """Forget a step: what was read is in the store, so it stays counted."""
        self._read_of.clear()

    def _passed(self, name: bytes) -> bool:
        counted = self._counted.get(name[: name.find(b"/")])
        return counted is not None and name <= counted[1]
