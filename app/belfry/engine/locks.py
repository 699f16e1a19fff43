"""Locks: those that a fire closes until it is acknowledged, and how many of a group may be awaited.

    fire              locks                                the lock is closed
    serial            its group                            while it is awaited
    N of its group    its group                            while N of them are awaited
    with an overlap   its own schedule                     while it is awaited
    (no fire)         the unreadable of a tenant           until a later owner can read them

Three at once, where each `c` allows three (the strictest of those that are awaited counts):

    c1 c2 c3   c4 c5                 ack of c2     ack of c1, c3
    ●──●──●────┬──┬──────────────────●─────────────●───────────►
    fire       held behind the lock  c4 fires      c5 fires, and there is room for one more

`ack_locks.py` closes and opens them, and `releasing.py` lets go the rows behind them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.engine.undo import Tracked, UndoLog
from belfry.store.layout import keys
from belfry.store.layout.pending import Pending
from belfry.store.layout.records import LOCKS_GROUP, LOCKS_OWN, Awaited

UNREADABLE_LOCK: Final = b"u"

# Fires of a group that are awaited: the changelog key of each, and how many it allows at once.
Places = tuple[tuple[bytes, int], ...]


class Lock(NamedTuple):
    """A tenant's lock: of a group (``g…``), of one schedule (``s…``), of the unreadable (``u``).

    The name is part of the keys of rows that are held, so its first letters are frozen.
    """

    tenant: bytes
    name: bytes


def group_lock(row: Pending) -> Lock:
    """The lock of a row's group."""
    return Lock(row.tenant, b"g" + row.group)


def unreadable_lock(row: Pending) -> Lock:
    """The lock of rows that this version cannot fire; it lets go those that a later owner can."""
    return Lock(row.tenant, UNREADABLE_LOCK)


def own_lock(row: Pending) -> Lock:
    """The lock of a schedule of its own."""
    return Lock(row.tenant, b"s" + row.schedule_id)


def locks_of(key: bytes, awaited: Awaited) -> list[Lock]:
    """The locks of an awaited fire."""
    tenant, _ = keys.awaited_names(key)
    locks = []
    if awaited.locks & LOCKS_GROUP:
        locks.append(Lock(tenant, b"g" + awaited.group))
    if awaited.locks & LOCKS_OWN:
        locks.append(Lock(tenant, b"s" + awaited.schedule_id))
    return locks


def is_full(places: Places) -> bool:
    """Whether a group has as many fires awaited as the strictest of them allows."""
    return bool(places) and len(places) >= min([at_once for _, at_once in places])


class GroupRoom:
    """The fires of groups that are awaited in one partition, and which tenants' groups wait.

    `tenants` are those some of whose groups are locked or releasing, and how many.  Locks that are
    no group's have no room to count, and are left alone.
    """

    def __init__(self, undo: UndoLog) -> None:
        self._places: Tracked[Lock, Places] = Tracked(undo)
        self.tenants: Tracked[bytes, int] = Tracked(undo)

    def of(self, lock: Lock) -> Places:
        """The fires of a group that are awaited."""
        return self._places.get(lock, ())

    def fills(self, lock: Lock, key: bytes, at_once: int) -> bool:
        """Whether a fire that is awaited from now on closes a lock."""
        if lock.name[:1] != b"g":
            return True
        self._places[lock] = places = (*self.of(lock), (key, at_once))
        return is_full(places)

    def leave(self, lock: Lock, key: bytes) -> Places:
        """A fire of a group is awaited no longer; those that still are."""
        left = tuple(place for place in self.of(lock) if place[0] != key)
        if left:
            self._places[lock] = left
        else:
            del self._places[lock]
        return left

    def shut(self, lock: Lock) -> None:
        """A lock is closed that was free."""
        if lock.name[:1] == b"g":
            self.tenants[lock.tenant] = self.tenants.get(lock.tenant, 0) + 1

    def free(self, lock: Lock) -> None:
        """A lock holds nothing back any more."""
        if lock.name[:1] == b"g":
            self.tenants[lock.tenant] -= 1
            if not self.tenants[lock.tenant]:
                del self.tenants[lock.tenant]
