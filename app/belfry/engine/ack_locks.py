"""Ack locks: rows that wait until a fire is acknowledged.

    serial fire      locks its group            others of the group are held behind the lock
    fire of N        locks its group while N of its fires are awaited; serial is N = 1
    overlap SKIP     locks the schedule itself  occurrences due meanwhile are given up
    overlap QUEUE…   locks the schedule itself  the schedule is held behind the lock

            fires               acknowledged, or time is over            nothing is held any more
    free ──────────► locked ───────────────────────────► releasing ───────────────────────► free
                       ▲                                     │ a serial one of them fires
                       └─────────────────────────────────────┘

An example, of a group whose `s` are serial and whose `n` are not:

    due                 s1      n2      n3      s4      n5
    time     ──●────────●───────●───────●───────●───────●──────────────●────────────●──────►
               │        fires   └──────── held behind the lock ───┘    ack of s1    ack of s4
               free     locked                                         n2 n3 s4     n5 leaves
                                                                       leave, and
                                                                       s4 locks again

While a lock is releasing, the rows that it holds back move to its tenant's backlog in due order, up
to the next one that may lock it again.  A row that comes due meanwhile is held behind it, unless it
is due before all that is held.  So nothing overtakes, and a step moves no more than it fires.

A schedule's own lock, EVERY minute with `overlap`, where the fire of 12:00 is acknowledged at
12:02:30:

    due          12:00     12:01      12:02      12:03
    SKIP         fires     given up   given up   fires          MISSED with the code `overlap`
    QUEUE_ONE    fires     held ───────────►  12:02:30: the one of 12:02 fires for both, `missed` 1,
                                              and 12:03 fires if that one is acknowledged by then
    ALLOW        fires     fires      fires      fires

A fire that is awaited is a record of the changelog.  Which locks are closed, and which rows they
hold back, follows from these records: it is counted here, and a roll-back undoes the step's part.

The same in time, with the group's lock as a step leaves it:

    12:00:00.000   s1 fires, is awaited until 12:05:00.000               locked by s1
    12:00:01.000   n2, s3 and n4 come due: behind the lock               locked
    12:00:03.400   ACK of s1 is taken in: n2 and s3 go to the backlog    releasing, n4 is held
    12:00:03.420   the next step fires n2 and s3                         locked by s3
    12:00:07.000   ACK of s3: n4 goes to the backlog, nothing is held    free

Without an ACK of s1 the second line of the release comes at 12:05:00.000, and FAILED is told.  Rows
that a lock lets go fire in the next step, because only committed rows of the backlog are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from belfry.engine.locks import (
    GroupRoom,
    Lock,
    group_lock,
    is_full,
    locks_of,
    unreadable_lock,
)
from belfry.engine.releasing import MOST_AT_ONCE, Held, Release, Releasing
from belfry.engine.undo import Tracked, UndoLog
from belfry.store.layout import keys
from belfry.store.layout.dependence import DEPENDENCES
from belfry.store.layout.keys import awaited_names
from belfry.store.layout.locations import BEHIND_LOCK, Location
from belfry.store.layout.pending import Pending
from belfry.store.layout.records import ASKED_TO_END, Awaited, decode_awaited, encode_awaited
from belfry.store.schedules import ScheduleStore


class AckLocks:
    """The ack locks of one partition's store.

    `tenants` are those some of whose groups are locked or releasing, and how many.
    """

    def __init__(self, store: ScheduleStore, undo: UndoLog) -> None:
        self._store = store
        self._locked: Tracked[Lock, bytes] = Tracked(undo)
        self._room = GroupRoom(undo)
        self.tenants = self._room.tenants
        # How many fires of a schedule are awaited; it is named as its own lock is.
        self._fires: Tracked[Lock, int] = Tracked(undo)
        self._releasing = Releasing(store, self._room, undo)
        # Locks that hold rows until the fire of another schedule is acknowledged (`dependents.py`).
        self.dependences: list[Lock] = []
        self._count()
        undo.forget()

    def _count(self) -> None:
        """Find out by the committed rows which locks are closed, and which have to be released."""
        for key, record in self._store.awaited():
            awaited = decode_awaited(record)
            self._note_fire(key, awaited, 1)
            for lock in locks_of(key, awaited):
                if self._room.fills(lock, key, awaited.at_once) and lock not in self._locked:
                    self._room.shut(lock)
                    self._locked[lock] = key
        for each in sorted(self._store.locks()):
            lock = Lock(*each)
            if lock.name[:1] in DEPENDENCES:
                self.dependences.append(lock)
            elif lock not in self._locked:
                self._room.shut(lock)
                self._releasing.begin(lock)

    @property
    def releasing(self) -> Mapping[Lock, Release]:
        """Locks that are open and still hold something back, in the order in which they let go."""
        return self._releasing.locks

    # -- asked before something fires ------------------------------------------------------------

    def next_ms(self, soon_ms: int) -> int | None:
        """When there is something to do, or None; at `soon_ms` where it is to be done at once."""
        until_ms = self._store.first_until_ms()
        if self._releasing.goes_on:
            return soon_ms if until_ms is None else min(soon_ms, until_ms)
        return until_ms

    def holds_back(self, row: Pending) -> bool:
        """Whether a due row may not leave, as far as its group's lock is concerned."""
        if not row.group or row.tenant not in self.tenants:
            return False
        lock = group_lock(row)
        return lock in self._locked or self._releasing.holds_back(lock, row)

    def is_locked(self, lock: Lock) -> bool:
        """Whether a fire that closed this lock is still awaited."""
        return lock in self._locked

    def awaits_fire_of(self, tenant: bytes, schedule_id: bytes) -> bool:
        """Whether a fire of a schedule is still to be acknowledged."""
        return Lock(tenant, b"s" + schedule_id) in self._fires

    def awaits_group(self, tenant: bytes, group: bytes) -> bool:
        """Whether a fire that lets its group wait is still to be acknowledged."""
        return bool(self._room.of(Lock(tenant, b"g" + group)))

    def _note_fire(self, key: bytes, awaited: Awaited, more: int) -> None:
        lock = Lock(awaited_names(key)[0], b"s" + awaited.schedule_id)
        left = self._fires.get(lock, 0) + more
        if left:
            self._fires[lock] = left
        else:
            del self._fires[lock]

    def holder(self, lock: Lock) -> tuple[bytes, Awaited] | None:
        """The fire that a lock waits for, with its changelog key; None where it waits for none."""
        key = self._locked.get(lock)
        awaited = None if key is None else self.awaited(key)
        return None if key is None or awaited is None else (key, awaited)

    def asked_to_end(self, lock: Lock) -> tuple[bytes, Awaited] | None:
        """Note that the fire that a lock waits for is asked to end; None where it was before."""
        found = self.holder(lock)
        if found is None or found[1].locks & ASKED_TO_END:
            return None
        key, awaited = found
        asked = awaited._replace(locks=awaited.locks | ASKED_TO_END)
        self._store.await_ack(key, encode_awaited(asked))
        return found

    def awaited(self, key: bytes) -> Awaited | None:
        """The fire under a changelog key, if it is still to be acknowledged."""
        record = self._store.named(key)
        return None if record is None else decode_awaited(record)

    def overdue(self, now_ms: int) -> Iterator[tuple[bytes, Awaited]]:
        """Some of the fires that were not acknowledged in time, with their changelog keys."""
        first_ms = self._store.first_until_ms()
        if first_ms is None or first_ms > now_ms:
            return
        for until_ms, key in islice(self._store.untils(), MOST_AT_ONCE):
            awaited = self.awaited(key)
            if until_ms <= now_ms and awaited is not None:
                yield key, awaited

    # -- closing, holding and releasing ----------------------------------------------------------

    def close(self, row: Pending, fire: tuple[bytes, int], terms: tuple[int, int, int]) -> None:
        """Await the acknowledgement of a fire (its id, its instant); lock rows that wait for it.

        The terms are what it locks (bits `LOCKS_GROUP`, `LOCKS_OWN`), how long it is awaited (ms),
        and how many of its group may be awaited at once; `CompiledRule.awaits` has them.
        """
        (identity, now_ms), (locks, wait_ms, at_once) = fire, terms
        until_ms, name, group = now_ms + wait_ms, row.schedule_id, row.group
        awaited = Awaited(
            locks, now_ms, until_ms, row.due_ms, row.version, name, group, at_once or 1
        )
        self.take_in(keys.awaited_key(row.tenant, identity), awaited)

    def take_in(self, key: bytes, awaited: Awaited) -> None:
        """Await the acknowledgement of a fire, under its changelog key."""
        self._store.await_ack(key, encode_awaited(awaited))
        self._note_fire(key, awaited, 1)
        for lock in locks_of(key, awaited):
            if not self._room.fills(lock, key, awaited.at_once):
                continue
            if not self._releasing.stop(lock) and lock not in self._locked:
                self._room.shut(lock)
            self._locked[lock] = key

    def hold(self, lock: Lock, row: Pending, record: bytes) -> None:
        """Put a due record behind a lock."""
        self._store.move(row.name, record, Location(BEHIND_LOCK, *row.sort_key, lock.name))
        self._releasing.joined(lock, row.sort_key)

    def hold_failed(self, row: Pending, record: bytes) -> None:
        """Put a due record behind a lock that lets it go for the next owner alone."""
        self._releasing.failed.add(row.name)
        self.hold(unreadable_lock(row), row, record)

    def open(self, key: bytes) -> list[Held]:
        """Await a fire no longer; the rows that its locks let go, for the tenant's backlog."""
        record = self._store.named(key)
        assert record is not None, "what is opened was awaited"
        self._store.acked(key, record)
        awaited = decode_awaited(record)
        self._note_fire(key, awaited, -1)
        let_go: list[Held] = []
        for lock in locks_of(key, awaited):
            if not self._leaves_room(lock, key):
                continue
            if lock in self._locked:
                del self._locked[lock]
                self._releasing.begin(lock)
                let_go += self._releasing.of(lock)
        return let_go

    def release(self) -> list[Held]:
        """The rows that all open locks let go, for the backlogs of their tenants."""
        return self._releasing.all()

    def _leaves_room(self, lock: Lock, key: bytes) -> bool:
        """Whether a fire that is awaited no longer opens the lock that was closed by it."""
        if lock.name[:1] != b"g":
            return self._locked.get(lock) == key
        left = self._room.leave(lock, key)
        if lock not in self._locked:
            return False
        if is_full(left):
            self._locked[lock] = left[-1][0]
            return False
        return True
