"""The committed schedules of one partition: reads of an ordered map, by their meaning.

Readers see nothing of the step that is under way here; `schedules.py` lays it above.  The due scan
needs exactly that: rows that a step puts down are fired by the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from belfry.store.layout import keys
from belfry.store.layout.buckets import Bucket, bucket_key, bucket_name, decode_bucket
from belfry.store.layout.locations import QUEUES
from belfry.store.layout.manifests import (
    NOTHING,
    Progress,
    StoredState,
    decode_progress,
    decode_state,
)
from belfry.store.layout.records import decode_size
from belfry.store.ordered_map import OrderedMap

# Another scan costs as much as so many rows of one.
FEW: Final = 5

# Keys and their values, in the order of the keys.
Rows = Iterator[tuple[bytes, bytes]]

# Where pending records lie: all but the first by their tenant or name.
_PENDING: Final = (
    (keys.TIMELINE_PREFIX, keys.TIMELINE_END),
    (keys.BACKLOG_PREFIX, keys.CATCH_UP_END),
    (keys.LOCKED_PREFIX, keys.LOCKED_END),
    (keys.PAUSED_PREFIX, keys.PAUSED_END),
)


class Committed:
    """The committed schedules of a partition: by time, by tenant's queue, by lock, by name."""

    def __init__(self, rows: OrderedMap) -> None:
        self._rows = rows

    # -- by time ---------------------------------------------------------------------------------

    def timeline(self, start: keys.SortKey, until_ms: int) -> Rows:
        """The timeline from a sort key on, due up to `until_ms`."""
        return self._rows.scan(keys.timeline_key(*start), keys.timeline_key(until_ms + 1, 0))

    def first_due_ms(self, start: keys.SortKey) -> int | None:
        """Due instant of the first row of the timeline from a sort key on."""
        for key, _ in self._rows.scan(keys.timeline_key(*start), keys.TIMELINE_END):
            return keys.timeline_sort_key(key)[0]
        return None

    # -- per-tenant queues: `queue` is IN_BACKLOG or IN_CATCH_UP ---------------------------------

    def queue(self, queue: int, tenant: bytes, level: bytes = b"") -> Rows:
        """A level of a tenant's queue; that of priority 0, unless another one is given."""
        return self._rows.scan(*keys.queue_range(QUEUES[queue], tenant, level))

    def queue_between(
        self, queue: int, tenant: bytes, from_ms: int | None, until_ms: int, level: bytes = b""
    ) -> Rows:
        """The part of it that is due from `from_ms` (None: its beginning) up to `until_ms`."""
        letter = QUEUES[queue]
        first = (
            keys.queue_prefix(letter, tenant, level)
            if from_ms is None
            else keys.queue_key(letter, tenant, from_ms, 0, level)
        )
        return self._rows.scan(first, keys.queue_key(letter, tenant, until_ms + 1, 0, level))

    def first_of_queue_ms(
        self, queue: int, tenant: bytes, from_ms: int, level: bytes = b""
    ) -> int | None:
        """Due instant of its first row that is due at `from_ms` or later."""
        letter = QUEUES[queue]
        start = keys.queue_key(letter, tenant, from_ms, 0, level)
        for key, _ in self._rows.scan(start, keys.queue_range(letter, tenant, level)[1]):
            return keys.due_of(key)
        return None

    def queue_sizes(self, queue: int) -> dict[bytes, int]:
        """How many schedules each tenant's queue holds, of tenants that have something in it.

        Those of other priorities than 0 are in `level_sizes`.  The sizes are kept with the rows,
        which may be millions.
        """
        start, end = keys.queue_sizes_range(QUEUES[queue])
        return {key[len(start) :]: decode_size(size) for key, size in self._rows.scan(start, end)}

    def level_sizes(self, queue: int) -> dict[tuple[bytes, bytes], int]:
        """How many each level of it holds for other priorities than 0, by tenant and level."""
        start, end = keys.queue_sizes_range(QUEUES[queue], keys.META_LEVEL)
        return {
            keys.level_of(key[len(start) :]): decode_size(size)
            for key, size in self._rows.scan(start, end)
        }

    # -- ack locks -------------------------------------------------------------------------------

    def locks(self) -> set[tuple[bytes, bytes]]:
        """Tenants and locks that hold rows back; of each lock a few rows are read."""
        found: set[tuple[bytes, bytes]] = set()
        start: bytes | None = keys.LOCKED_PREFIX
        while start is not None:
            start = self._see_locks(start, found)
        return found

    def _see_locks(self, start: bytes, found: set[tuple[bytes, bytes]]) -> bytes | None:
        """See locks from a key on, up to one that holds many rows; where to go on behind it."""
        more = 0
        for key, _ in self._rows.scan(start, keys.LOCKED_END):
            lock = keys.lock_of(key)
            more = more + 1 if lock in found else 0
            if more == FEW:
                return keys.behind_lock(*lock)
            found.add(lock)
        return None

    def first_behind_locks(self) -> Iterator[tuple[bytes, bytes, int]]:
        """Tenant, lock, and when its first row is due; looked up as they are asked for."""
        start = keys.LOCKED_PREFIX
        while (key := self._first_key(start, keys.LOCKED_END)) is not None:
            tenant, lock = keys.lock_of(key)
            yield tenant, lock, keys.due_of(key)
            start = keys.behind_lock(tenant, lock)

    def first_locked_ms(self, tenant: bytes, lock: bytes) -> int | None:
        """When the first row that a lock holds back is due, by its place; None for no row."""
        start, end = keys.locked_prefix(tenant, lock), keys.behind_lock(tenant, lock)
        first = self._first_key(start, end)
        return None if first is None else keys.due_of(first)

    def awaited(self) -> Rows:
        """Fires that are to be acknowledged: changelog key and record."""
        start, end = map(keys.named_key, (keys.AWAITED_PREFIX, keys.AWAITED_END))
        for key, record in self._rows.scan(start, end):
            yield keys.name_in(key), record

    def untils(self) -> Iterator[tuple[int, bytes]]:
        """When waits for acknowledgements end, the first first; and changelog keys."""
        for key, _ in self._rows.scan(keys.UNTIL_PREFIX, keys.UNTIL_END):
            yield keys.until_of(key)

    def between(self, first: bytes, end: bytes) -> Rows:
        """All rows under changelog keys from `first` on and before `end`."""
        for key, row in self._rows.scan(keys.named_key(first), keys.named_key(end)):
            yield keys.name_in(key), row

    def paused(self, after: bytes = b"") -> Rows:
        """Paused schedules by their names, those behind this one: changelog key and record."""
        start = keys.paused_key(after) + (b"\0" if after else b"")
        for key, record in self._rows.scan(start, keys.PAUSED_END):
            yield key[len(keys.PAUSED_PREFIX) :], record

    # -- minute buckets --------------------------------------------------------------------------

    def bucket(self, tenant: bytes, minute: int) -> Bucket | None:
        """The bucket of a tenant and a minute of the epoch; None where nothing waits."""
        key = bucket_key(bucket_name(tenant, minute * keys.MINUTE_MS))
        row = self._rows.get(key)
        return None if row is None else decode_bucket(key, row)

    def waiting_of(self, tenant: bytes) -> int:
        """How many schedules of a tenant wait, paused ones too."""
        size = self._rows.get(keys.META_TENANT + tenant)
        return 0 if size is None else decode_size(size)

    def waiting_by_tenant(self) -> dict[bytes, int]:
        """The same of every tenant that has any."""
        start, end = keys.META_TENANT, keys.following(keys.META_TENANT)
        return {key[len(start) :]: decode_size(size) for key, size in self._rows.scan(start, end)}

    # -- by name ---------------------------------------------------------------------------------

    def names(self, after: bytes | None, most: int) -> Rows:
        """The next rows under changelog keys, from behind one of them (None: from the first)."""
        start = keys.NAMED_PREFIX if after is None else keys.named_key(after) + b"\0"
        return self._some(start, keys.NAMED_END, most)

    def names_of(self, tenant: bytes, after: bytes | None, most: int) -> Rows:
        """The same of a tenant's schedules."""
        start, end = keys.names_range(tenant)
        return self._some(start if after is None else keys.named_key(after) + b"\0", end, most)

    def all_names(self) -> Rows:
        """All rows under changelog keys."""
        for key, row in self._rows.scan(keys.NAMED_PREFIX, keys.NAMED_END):
            yield keys.name_in(key), row

    def all_pending(self) -> Iterator[bytes]:
        """The record of each schedule that waits."""
        for start, end in _PENDING:
            for _, record in self._rows.scan(start, end):
                yield record

    # -- the store's own state -------------------------------------------------------------------

    def state(self) -> StoredState | None:
        """The state of the store, or None for an empty one."""
        stored = self._rows.get(keys.META_STATE)
        return None if stored is None else decode_state(stored)

    def progress(self) -> Progress | None:
        """How far a replay has come, or None where none is under way."""
        stored = self._rows.get(keys.META_REPLAY)
        return None if stored is None else decode_progress(stored)

    def replayed(self) -> Progress:
        """Where a replay into this store begins: amid another one, at its state, or at nothing."""
        progress, state = self.progress(), self.state()
        if progress is not None:
            return progress
        if state is None:
            return NOTHING
        offset, written_ms, manifest = state
        return Progress(offset, written_ms, manifest.pending, manifest=manifest)

    def readable_by(self) -> bytes | None:
        """The readable formats of a process that found nothing here which it could not fire."""
        return self._rows.get(keys.META_READABLE)

    def _some(self, start: bytes, end: bytes, most: int) -> Rows:
        for key, row in islice(self._rows.scan(start, end), most):
            yield keys.name_in(key), row

    def _first_key(self, start: bytes, end: bytes) -> bytes | None:
        for key, _ in self._rows.scan(start, end):
            return key
        return None
