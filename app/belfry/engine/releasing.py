"""Releasing: rows behind an opened lock leave it bit by bit, and none overtakes.

    held      n2  n3  s4  n5  …            `s` may lock again, `n` may not
    leave     n2  n3  s4                   to the tenant's backlog: up to the next that may lock
                          n5  …            held until s4 has left the backlog, and did not lock

A row that comes due meanwhile is held as well, unless it is due before all that is held.  At most
`MOST_AT_ONCE` leave at once, so a step moves no more than it fires; the next ones follow when the
last of them has left the backlog, which its location tells: it has another one by then.

A row that joins behind a lock in a step is seen by no scan of that step.  If it is due before the
other rows behind the lock, the release stops in front of it and goes on from there with the next
step.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.engine.locks import UNREADABLE_LOCK, GroupRoom, Lock, is_full
from belfry.engine.undo import TrackedOrder, UndoLog
from belfry.schedules.triggers import trigger_of
from belfry.schedules.triggers.levels import level_in
from belfry.store.layout import keys
from belfry.store.layout.locations import IN_BACKLOG, Location, encode_location
from belfry.store.layout.pending import Pending, decode_pending
from belfry.store.layout.pending_bytes import away
from belfry.store.readable import why_unreadable
from belfry.store.schedules import ScheduleStore

# Rows that leave a lock at once, and waits that one step ends: the rest waits for the next.
MOST_AT_ONCE: Final = 200
NOWHERE: Final = (-(2**62), 0)

Held = tuple[Pending, bytes]


class Release(NamedTuple):
    """How far a lock is released: where the rows behind it begin, and which row left it last.

    More leaves once the last one has left the backlog: its name then has another location.
    """

    first: keys.SortKey
    last_name: bytes = b""
    last_location: bytes = b""


class Releasing:
    """The locks of one partition that are open and still hold something back.

    They are in the order in which they let go, which is that of the tenants' turns that follow.
    """

    def __init__(self, store: ScheduleStore, room: GroupRoom, undo: UndoLog) -> None:
        self._store = store
        self._room = room
        self.locks: TrackedOrder[Lock, Release] = TrackedOrder(undo)
        # Where the rows begin that joined behind a lock in this step: a scan does not see them yet.
        self._joined: dict[Lock, keys.SortKey] = {}
        undo.scratch(dict.clear, self._joined)
        # Schedules that have failed to fire here: this owner lets them go no more.
        self.failed: set[bytes] = set()

    @property
    def goes_on(self) -> bool:
        """Whether some lock may let go more by now."""
        return any(self._has_left(release) for release in self.locks.values())

    def holds_back(self, lock: Lock, row: Pending) -> bool:
        """Whether a due row may not leave yet, as far as this lock is concerned."""
        release = self.locks.get(lock)
        return release is not None and row.sort_key >= release.first

    def begin(self, lock: Lock) -> None:
        """A lock is open; the rows behind it may leave."""
        self.locks[lock] = Release(NOWHERE)

    def stop(self, lock: Lock) -> bool:
        """A lock is closed again; whether it was releasing."""
        if lock not in self.locks:
            return False
        del self.locks[lock]
        return True

    def joined(self, lock: Lock, sort_key: keys.SortKey) -> None:
        """A row has joined behind a lock in this step."""
        self._joined[lock] = min(sort_key, self._joined.get(lock, sort_key))

    def all(self) -> list[Held]:
        """The rows that all open locks let go, for the backlogs of their tenants."""
        let_go: list[Held] = []
        for lock, release in list(self.locks.items()):
            if self._has_left(release):
                let_go += self.of(lock)
        return let_go

    def of(self, lock: Lock) -> list[Held]:
        """Let the next rows go, up to a serial one; where none is left, the lock is free."""
        unreadable = lock.name == UNREADABLE_LOCK
        # A row that joined in this process cannot be read by it, or waits for its day file.  It is
        # let go where that is read (`day_files.py`), for each step would hold it again.
        joined = None if unreadable else self._joined.get(lock)
        let_go: list[Held] = []
        last: tuple[bytes, bytes] = b"", b""
        ends, places = False, self._room.of(lock)
        for key, record in self._store.locked(*lock):
            if unreadable and (away(record) or why_unreadable(record)):
                continue
            if unreadable and self.failed and decode_pending(record).name in self.failed:
                continue
            held_at = keys.sort_key(key)
            if ends or (joined is not None and joined < held_at) or len(let_go) == MOST_AT_ONCE:
                first = held_at if joined is None else min(joined, held_at)
                self.locks[lock] = Release(first, *last)
                return let_go
            row = decode_pending(record)
            self._store.take([(key, record)])
            # Its place is where it was held: a record for a run of late ones waits for its own.
            let_go.append((row.at(held_at[0], row.nominal_ms), record))
            place = Location(IN_BACKLOG, *held_at, level_in(row.extra))
            last = row.name, encode_location(place)
            at_once = 0 if why_unreadable(record) else trigger_of(row.extra).rule.at_once
            if at_once:
                places = (*places, (row.name, at_once))
                ends = is_full(places)
        if joined is not None:
            self.locks[lock] = Release(joined, *last)
            return let_go
        del self.locks[lock]
        self._room.free(lock)
        return let_go

    def _has_left(self, release: Release) -> bool:
        """Whether rows that a lock let go last have left the backlog, so that more may follow."""
        return (
            not release.last_name or self._store.named(release.last_name) != release.last_location
        )
