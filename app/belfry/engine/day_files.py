"""Payloads of schedules due far ahead: out of their rows into day files, and back a day before.

    row with its payload    gathered, a day's at a time ─► its file is written ─► a reference
    row with a reference    its file is read ─► the payload again ─► fires, as ever
                              └ not in time ─► held behind a lock ─► read ─► fires late, whole

This is the part that reads and changes rows.  The shell writes and reads the files
(`partitions/day_files.py`): a file is there, whole, before a step refers to it, and bytes that were
read are checked by size and digest before they are a payload again.

A row changes only if it is still, byte for byte, the gathered one, or still refers to the very
place that was read.  So a request that comes meanwhile has the last word, and a step that is rolled
back is done again by the same call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from belfry.engine.locks import UNREADABLE_LOCK, unreadable_lock
from belfry.engine.step import Step
from belfry.engine.waiting import Waiting
from belfry.store.layout import keys
from belfry.store.layout.day_files import (
    Entry,
    may_go,
    of_row,
    payload_in,
    with_payload,
    without_payload,
)
from belfry.store.layout.day_reference import DAY_MS, DayFile, decode_reference, stands_for
from belfry.store.layout.locations import BEHIND_LOCK, IN_BACKLOG, decode_location, is_location
from belfry.store.layout.pending import Away, Pending, decode_pending
from belfry.store.layout.pending_bytes import away
from belfry.store.schedules import ScheduleStore

# The last instant that the timeline has room for.
LAST_MS: Final = (1 << 32) * keys.MINUTE_MS - 2
# The bytes of a file's payloads at which it is full; the last one may be larger.
FILE_BYTES: Final = 2_000_000
NOT_READ: Final = (
    "its payload lies in a day file that was not read back before it was due; it fires once it is"
)


class Gathered:
    """Rows of one day whose payloads are to go into one file: changelog key and record."""

    def __init__(self) -> None:
        self.day: int | None = None
        self.rows: list[tuple[bytes, bytes]] = []
        self.bytes = 0
        # Nothing joins any more: the day is over, or the file is full.
        self.full = False

    def add(self, due_ms: int, record: bytes) -> bool:
        """Let a record join; False where it is of another day, or there is no room."""
        day = due_ms // DAY_MS
        if self.day is None:
            self.day = day
        if day != self.day or self.bytes >= FILE_BYTES:
            self.full = True
            return False
        self.rows.append((decode_pending(record).name, record))
        self.bytes += len(payload_in(record))
        return True


class Place(NamedTuple):
    """Where a walk is: in the timeline (no tenant), or in the backlog of an isolated tenant."""

    tenant: bytes = b""
    sort_key: keys.SortKey = (0, 0)


class PutAside(NamedTuple):
    """A row on its way: its changelog key, its record as it was gathered, and the reference."""

    name: bytes
    record: bytes
    stands: Away


class DayFileRows:
    """Rows of one partition whose payloads go, and come back.

    `awaited` are files that something due waits for, the longest first; read from any thread.
    `recalled` are those that a request wants back.  `changed` and `damaged` are how many rows the
    last call has changed, and how many payloads did not match their rows.
    """

    def __init__(
        self, store: ScheduleStore, waiting: Waiting, awaited: dict[DayFile, None]
    ) -> None:
        self._store = store
        self._waiting = waiting
        self.awaited, self.recalled = awaited, waiting.recalled
        self.changed = self.damaged = 0
        self._find_held()

    def _find_held(self) -> None:
        """Learn which files are awaited by rows that a former owner has held."""
        for lock in self._waiting.locks.releasing:
            if lock.name == UNREADABLE_LOCK:
                for _, record in self._store.locked(*lock):
                    if away(record) and (file := file_of(record)) is not None:
                        self.awaited[file] = None

    # -- looks at what is committed --------------------------------------------------------------

    def gather(
        self, place: Place, first: keys.SortKey, into: Gathered, at_most: int
    ) -> Place | None:
        """Gather from the next rows, none before `first`; where to go on, None behind the last.

        Rows of one file lie in one place: where its end is met, the file is full.
        """
        start = max(place.sort_key, first)
        for number, (key, record) in enumerate(self._from(place.tenant, start, LAST_MS)):
            if number == at_most or (may_go(record) and not into.add(key[0], record)):
                return Place(place.tenant, key)
        into.full = True
        return self._behind(place.tenant)

    def lying(
        self, place: Place, until_ms: int, at_most: int, but: Collection[DayFile] = ()
    ) -> tuple[DayFile | None, Place | None]:
        """The first file that one of the next rows needs; and where to go on, None behind the last.

        `but` are files that are not to be read now.
        """
        rows = self._from(place.tenant, place.sort_key, until_ms)
        for number, (key, record) in enumerate(rows):
            if number == at_most:
                return None, Place(place.tenant, key)
            if away(record) and (file := file_of(record)) is not None and file not in but:
                return file, Place(place.tenant, key)
        return None, self._behind(place.tenant)

    def lying_paused(
        self, after: bytes, at_most: int, but: Collection[DayFile] = ()
    ) -> tuple[DayFile | None, bytes | None]:
        """The same among paused rows, which lie by their names; behind this one of them."""
        last = after
        for number, (key, record) in enumerate(self._store.paused(after)):
            if number == at_most:
                return None, last
            if away(record) and (file := file_of(record)) is not None and file not in but:
                return file, last
            last = key
        return None, None

    def _from(
        self, tenant: bytes, start: keys.SortKey, until_ms: int
    ) -> Iterator[tuple[keys.SortKey, bytes]]:
        """Rows of the timeline, or of the backlog of an isolated tenant, in due order."""
        if not tenant:
            for key, record in self._store.timeline(start, until_ms):
                yield keys.timeline_sort_key(key), record
            return
        for key, record in self._store.queue_between(IN_BACKLOG, tenant, start[0], until_ms):
            if (at := keys.sort_key(key)) >= start:
                yield at, record

    def _behind(self, tenant: bytes) -> Place | None:
        """The next place: pending rows of isolated tenants lie in their backlogs."""
        left = [each for each in self._waiting.hints if each > tenant]
        return Place(min(left)) if left else None

    # -- changes of a step -----------------------------------------------------------------------

    def put_aside(self, rows: Sequence[PutAside], step: Step) -> None:
        """Let references stand for payloads of rows that are still as they were gathered."""
        self.changed = self.damaged = 0
        for name, record, stands in rows:
            location = self._store.named(name)
            if not is_location(location) or self._store.pending_at(name, location) != record:
                continue
            kept = without_payload(record, stands)
            step.effects.room -= len(kept)
            self._store.replace(name, location, kept)
            self.changed += 1

    def put_back(self, file: DayFile, entries: Iterable[Entry], step: Step) -> None:
        """Put payloads of a file back into the rows that still refer to them."""
        self.changed = self.damaged = 0
        for name, offset, payload in entries:
            location = self._store.named(name)
            if not is_location(location):
                continue
            record = self._store.pending_at(name, location)
            stands = of_row(record) or b""
            if file_of(record) != file or decode_reference(stands).offset != offset:
                continue
            if not stands_for(stands, payload):
                self.damaged += 1
                continue
            kept = with_payload(record, payload)
            step.effects.room -= len(kept)
            self._back(name, location, kept, step)
            self.changed += 1

    def _back(self, name: bytes, location: bytes, kept: bytes, step: Step) -> None:
        """A whole row waits where it was; one that was held since it was due may leave."""
        place = decode_location(location)
        if place.where != BEHIND_LOCK or place.within != UNREADABLE_LOCK:
            self._store.replace(name, location, kept)
            return
        self._store.remove(name, location)
        self._store.rewrite(name, kept)
        self._waiting.put(decode_pending(kept), kept, step)
        step.effects.moved = True


def file_of(record: bytes) -> DayFile | None:
    """The file that a record whose payload is away refers to; None: a later release wrote it."""
    try:
        return decode_reference(of_row(record) or b"").file
    except ValueError:
        return None


def hold_away(
    row: Pending, record: bytes, waiting: Waiting, awaited: dict[DayFile, None], step: Step
) -> None:
    """Hold a due row back whose payload is away, and tell of it."""
    waiting.locks.hold(unreadable_lock(row), row, record)
    if (file := file_of(record)) is not None:
        awaited[file] = None
    step.effects.unreadable.append((row.name, NOT_READ))
    step.effects.moved = True


def day_after(now_ms: int, days: int) -> keys.SortKey:
    """Where the first whole day begins that lies so many days ahead."""
    first_ms = -(-(now_ms + days * DAY_MS) // DAY_MS) * DAY_MS
    return first_ms, 0
