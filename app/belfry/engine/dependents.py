"""Dependents: schedules that wait for an acknowledgement before they are due at all.

    y, z  after the acknowledgement of x        behind the lock `d` + x    y  z
    all   when all of group g are acknowledged  behind the lock `e` + g    all

Each lies in the place that `layout/dependence.py` names, so the store itself says which schedule
waits for which: a replay, a roll-back and a take-over need nothing else.  The awaited schedules are
remembered here, so that an acknowledgement that nobody waits for costs one look into a dictionary.
So is the instant at which the first dependent is due without one.

    bounds    12:05 d/x    12:30 e/g        the first row of each lock, by its place

An entry of the bounds may be too early, never too late: a schedule that is looked at and not due is
entered anew.  `after_acks.py` ends the waits of dependents.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from heapq import heapify, heappop, heappush
from typing import Final

from belfry.engine.locks import Lock
from belfry.engine.releasing import MOST_AT_ONCE
from belfry.engine.undo import Tracked, UndoLog
from belfry.schedules.triggers.acknowledged import FAR_MS
from belfry.store.layout import keys
from belfry.store.layout.dependence import OF_GROUP, dependence_of
from belfry.store.layout.locations import BEHIND_LOCK, Location, decode_location, is_location
from belfry.store.layout.pending import Pending, decode_pending
from belfry.store.schedules import ScheduleStore

# How many may wait for one schedule, or for one group: a step lets all of them go at once.
MOST_WAITING: Final = 100


class Dependents:
    """The schedules of one partition that wait for an acknowledgement.

    `locks` are those that some may wait behind; `fresh_groups` those for whose groups somebody new
    waits.
    """

    def __init__(self, store: ScheduleStore, undo: UndoLog, locks: Iterable[Lock]) -> None:
        """`locks` are those that hold something in the committed store."""
        self._store = store
        self._undo = undo
        self.locks = Tracked(undo, dict.fromkeys(locks, True))
        self.fresh_groups = Tracked(undo, dict.fromkeys(self.groups, True))
        self._bounds = [
            (due_ms, lock)
            for lock in self.locks
            if (due_ms := store.first_locked_ms(*lock)) is not None and due_ms < FAR_MS
        ]
        heapify(self._bounds)
        # Rows that joined in this step: no scan sees them yet.
        self._joined: dict[Lock, list[bytes]] = {}
        undo.scratch(dict.clear, self._joined)

    @property
    def next_ms(self) -> int | None:
        """When the first of them may be due without an acknowledgement; None for never."""
        return self._bounds[0][0] if self._bounds else None

    def hold(self, row: Pending, record: bytes) -> None:
        """Let a schedule wait for the one that its rule names."""
        lock = Lock(row.tenant, dependence_of(record))
        self._store.move(row.name, record, Location(BEHIND_LOCK, *row.sort_key, lock.name))
        self._joined.setdefault(lock, []).append(row.name)
        self.locks[lock] = True
        if lock.name[:1] == OF_GROUP:
            self.fresh_groups[lock] = True
        if row.due_ms < FAR_MS:
            heappush(self._bounds, (row.due_ms, lock))

    @property
    def groups(self) -> list[Lock]:
        """The locks of those that wait for groups."""
        return [lock for lock in self.locks if lock.name[:1] == OF_GROUP]

    def groups_of(self, names: AbstractSet[bytes]) -> list[Lock]:
        """The groups that one of these waits for, but those that somebody joined in this step."""
        return [
            lock
            for lock in self.groups
            if not (self.has_joined(lock) or names.isdisjoint(self.names(lock)))
        ]

    def names(self, lock: Lock) -> list[bytes]:
        """The schedules behind a lock, in due order; those that came in this step come last."""
        lying = [decode_pending(record).name for _, record in self._store.locked(*lock)]
        known = dict.fromkeys([*lying, *self._joined.get(lock, ())])
        return [name for name in known if self._is_behind(lock, name)]

    def has_joined(self, lock: Lock) -> bool:
        """Whether one of them came in this very step."""
        return lock in self._joined

    def is_full(self, lock: Lock, name: bytes) -> bool:
        """Whether as many wait behind a lock as may, besides the one of this name."""
        others = [each for each in self.names(lock) if each != name] if lock in self.locks else []
        return len(others) >= MOST_WAITING

    def forget_empty(self, lock: Lock) -> bool:
        """Forget a lock that nobody waits behind any more; whether it is one."""
        if self.names(lock):
            return False
        for known in (self.locks, self.fresh_groups):
            if lock in known:
                del known[lock]
        return True

    def due(self, now_ms: int) -> list[bytes]:
        """Some of those that are due without an acknowledgement, each once."""
        # A lock may have several bounds by now, and each of them finds all that is due behind it.
        found: dict[bytes, None] = {}
        while self._bounds and self._bounds[0][0] <= now_ms and len(found) < MOST_AT_ONCE:
            bound = heappop(self._bounds)
            # A step that is rolled back has to meet it again.
            self._undo.note(heappush, self._bounds, bound)
            found |= dict.fromkeys(self._due_behind(bound[1], now_ms))
        return list(found)

    def _due_behind(self, lock: Lock, now_ms: int) -> list[bytes]:
        """The due schedules behind one lock; the bound of the next one is entered."""
        found: list[bytes] = []
        for key, record in self._store.locked(*lock):
            due_ms = keys.due_of(key)
            if due_ms > now_ms:
                if due_ms < FAR_MS:
                    heappush(self._bounds, (due_ms, lock))
                break
            found.append(decode_pending(record).name)
        return found

    def _is_behind(self, lock: Lock, name: bytes) -> bool:
        row = self._store.named(name)
        if row is None or not is_location(row):
            return False
        where, _, _, behind = decode_location(row)
        return where == BEHIND_LOCK and behind == lock.name
