"""Groups that somebody waits for: whether all of them have fired and are acknowledged.

A group has ended when none of its one-shots waits, and none of its fires is to be acknowledged.
There is no index of groups, since every fire would pay for it.  So the names of the tenant are
walked through, some with each step, and only while somebody waits for the group:

    names    a1  a2  b1  b2  c1         b1 and c1 are of the group
    walk     ────────●                  b1 waits: it is the witness, and the walk rests there
             b1 fires, and is acknowledged
                     ────────●          c1 is the next witness
             c1 is cancelled
                             ──►  │ ──────────────────►  a walk from the first name to the last
                                                         that meets none: the group has ended

While the witness waits, or a fire of the group is to be acknowledged, nothing is read but the
witness, once with each sweep.  So all walks together read each name about twice.

No walk is remembered: a new owner begins it anew, and comes to the same end.  What joins the group
while it is walked through for the last time may be missed.  So a dependent should be sent behind
the schedules that it waits for; then all of them are seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from belfry.engine.ack_locks import AckLocks
from belfry.engine.locks import Lock
from belfry.engine.undo import Tracked, UndoLog
from belfry.store.layout.locations import is_location
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.pending_bytes import is_one_shot
from belfry.store.schedules import ScheduleStore


class Walk(NamedTuple):
    """How far a walk has come, whether it has met nobody from the first name on, and its witness.

    The cursor is the last name that was looked at; the witness is the one that it met, or empty.
    """

    cursor: bytes = b""
    whole: bool = True
    witness: bytes = b""


class GroupEnds:
    """The groups of one partition that somebody waits for; a group is named as its dependents'
    lock is.
    """

    def __init__(self, store: ScheduleStore, locks: AckLocks, undo: UndoLog) -> None:
        self._store = store
        self._locks = locks
        self._walks: Tracked[Lock, Walk] = Tracked(undo)
        # Groups to walk through now; the others rest at their witness.
        self._now: Tracked[Lock, bool] = Tracked(undo)

    @property
    def under_way(self) -> bool:
        """Whether some group is to be walked through."""
        return bool(self._now)

    def watch(self, lock: Lock) -> None:
        """Somebody waits for a group from now on: its walk begins anew, for members came before."""
        self._walks[lock] = Walk()
        self._now[lock] = True

    def forget(self, lock: Lock) -> None:
        """Nobody waits for a group any more."""
        if lock in self._walks:
            del self._walks[lock]
        self._rest(lock)

    def look(self, lock: Lock) -> None:
        """Something of a group has changed: walk on, unless it goes on all the same."""
        if lock in self._walks and lock not in self._now and not self._goes_on(lock):
            self._now[lock] = True

    def is_awaited(self, lock: Lock) -> bool:
        """Whether a fire of a group is to be acknowledged."""
        return self._locks.awaits_group(lock.tenant, lock.name[1:])

    def walk(
        self, names: int, left_out: Iterable[Lock], is_quiet: Callable[[bytes], bool]
    ) -> tuple[list[Lock], int]:
        """Walk on through so many names; the groups that have ended, and how many names are left.

        `left_out` are groups for which somebody waits since this very step; of a tenant that
        `is_quiet` some schedules may be elsewhere.
        """
        ended: list[Lock] = []
        for lock in [lock for lock in self._now if lock not in left_out]:
            if is_quiet(lock.tenant):
                continue
            if self._goes_on(lock):
                self._rest(lock)
                continue
            is_over, names = self._walk(lock, names)
            if is_over:
                ended.append(lock)
            if names <= 0:
                break
        return ended, names

    def _walk(self, lock: Lock, names: int) -> tuple[bool, int]:
        walk = self._walks[lock]
        while names > 0:
            seen, cursor = 0, walk.cursor
            for name, _ in self._store.names_of(lock.tenant, cursor or None, names):
                seen, cursor = seen + 1, name
                if self._waits(lock, name):
                    self._walks[lock] = Walk(name, whole=False, witness=name)
                    self._rest(lock)
                    return False, names - seen
            if seen == names:
                self._walks[lock] = Walk(cursor, walk.whole)
                return False, 0
            names -= seen
            if walk.whole:
                return True, names
            walk = Walk()
        self._walks[lock] = walk
        return False, 0

    def _rest(self, lock: Lock) -> None:
        if lock in self._now:
            del self._now[lock]

    def _goes_on(self, lock: Lock) -> bool:
        """Whether a group has not ended, without a walk."""
        witness = self._walks[lock].witness
        if self.is_awaited(lock):
            return True
        return bool(witness) and self._waits(lock, witness)

    def _waits(self, lock: Lock, name: bytes) -> bool:
        """Whether a schedule is a one-shot of the group that has not fired yet."""
        row = self._store.named(name)
        if row is None or not is_location(row):
            return False
        record = self._store.pending_at(name, row)
        return is_one_shot(record) and decode_pending(record).group == lock.name[1:]
