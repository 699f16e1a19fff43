"""The schedules of one partition: what is committed, with the step that is under way above it.

    keep(name, record, location)   a schedule waits there, with a new record            pending + 1
    take(rows)                     these rows leave the place in which they waited      pending - n
    move(name, record, location)   what was taken waits there, its record as it was     pending + 1
    rewrite(name, record)          what was taken has a new record, and is moved next
    end(name, marker)              what was taken is over: a marker stands for it
    remove(name, row)              a schedule is gone, with its record                  pending - 1
    note(name, row)                a row that is no schedule's: verdict, settings, zones
    await_ack, acked               a fire that is to be acknowledged, and one that has been

To fire a one-shot is `take` and `end`; to fire what recurs is `take`, `rewrite` and `move`.  The
change of the number of schedules that wait, which manifests tell and a replay checks, follows from
the verbs alone (`pending_change`), and so do the sizes of the queues and the minute buckets
(`buckets.py`).  Each verb but `take` and `move` is also a change of the changelog (`changes`), so
neither can be without the other.

    step              take  keep  note …        reads see these changes first
                             │
    overlay           name → row   key → record   counts      changes ──► the step's transaction
                             │ commit(state): one batch                   discard(): forgotten
    ordered map       ───────▼──────────────────────────────────────────────────────

`commit` comes after Kafka has committed the same as changelog records.  `replay` folds changelog
records into the map: the store is the fold of its changelog up to the stored offset, at any crash
point.  Nobody else touches the overlay.  A cancel of `a` in a step that is rolled back:

    before      named(a): a location in the timeline        pending_change  0
    remove(a)   named(a): None; a scan still meets its row  pending_change -1
    discard()   named(a): the location again                pending_change  0
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping, Sequence
from typing import Final

from belfry.store.buckets import LeftBuckets, derive
from belfry.store.committed import Committed
from belfry.store.layout import keys
from belfry.store.layout.buckets import Bucket
from belfry.store.layout.keys import named_key, record_key, timeline_key, timeline_place
from belfry.store.layout.pending import HEAD_OF_PENDING, due_and_seq, is_pending, paused
from belfry.store.layout.records import (
    FORMAT,
    HEAD_IN_TIMELINE,
    HEAD_OF_ANSWERED,
    HEAD_OF_MARKER,
    IN_BACKLOG,
    IN_PAUSED,
    IN_TIMELINE,
    LOCATION,
    MARKER,
    Location,
    Manifest,
    Progress,
    StoredState,
    check_format,
    decode_awaited,
    decode_manifest,
    decode_size,
    encode_location,
    encode_manifest,
    encode_progress,
    encode_size,
    encode_state,
    is_location,
    pack_location,
    timeline_location,
)
from belfry.store.ordered_map import Damaged, OrderedMap, Range

_MISSING: Final = b"?"
# Settings are JSON, and the identity has a format of its own, so that later releases read it.
_OF_OTHER_FORMATS: Final = frozenset((keys.SETTINGS_KEY, keys.IDENTITY_KEY))

# RocksDB sorts its range tombstones anew after each one: worth it only for many rows.
RANGE_FROM: Final = 256


class ScheduleStore(Committed):
    """Schedules of a partition by name, by time, by tenant's queue and by lock.

    `changes` are the records of the changelog that a step has to write, by key (None: tombstone).
    """

    def __init__(self, rows: OrderedMap) -> None:
        super().__init__(rows)
        # Rows under changelog keys, and records under local keys; None: gone.
        self._named: dict[bytes, bytes | None] = {}
        self._records: dict[bytes, bytes | None] = {}
        self._cleared: list[Range] = []
        self.changes: dict[bytes, bytes | None] = {}
        self._pending_change = 0
        self._grown: dict[bytes, int] = {}
        self._left = LeftBuckets(rows)
        self._fetched: dict[bytes, bytes | None] = {}
        # When the first committed wait for an acknowledgement ends, once it was looked up.
        self._first_until: tuple[int | None] | None = None
        self._untils_change = False

    # -- reading through the overlay -------------------------------------------------------------

    @property
    def pending_change(self) -> int:
        """How many schedules more wait than before the step."""
        return self._pending_change

    @property
    def changed(self) -> KeysView[bytes]:
        """Changelog keys whose rows the step has changed so far; it follows the step."""
        return self._named.keys()

    def prefetch(self, names: Sequence[bytes]) -> Mapping[bytes, bytes | None]:
        """Committed rows under changelog keys in one go, also for the `named` that follow."""
        rows = self._rows.get_many([b"k" + name for name in names])
        self._fetched = dict(zip(names, rows, strict=True))
        return self._fetched

    def named(self, name: bytes) -> bytes | None:
        """Location, marker, verdict or another row under a changelog key."""
        if name in self._named:
            return self._named[name]
        if name in self._fetched:
            return self._fetched[name]
        return self._rows.get(named_key(name))

    def pending_at(self, name: bytes, row: bytes) -> bytes:
        """The pending record of the schedule whose row this location is."""
        key = record_key(name, row)
        found = self._records.get(key, _MISSING)
        record = self._rows.get(key) if found is _MISSING else found
        if record is None:
            raise Damaged(f"the place of {name!r} is empty: the store has a hole")
        return record

    def locked(self, tenant: bytes, lock: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Committed rows that a lock holds back, by sort key, without those taken in this step."""
        start, end = keys.locked_prefix(tenant, lock), keys.behind_lock(tenant, lock)
        for key, record in self._rows.scan(start, end):
            if key not in self._records:
                yield key, record

    def grown_bytes(self) -> Mapping[bytes, int]:
        """By how many bytes the waiting records of each tenant have grown in the step."""
        return self._left.grown_bytes(self._records)

    @property
    def emptied(self) -> Sequence[Bucket]:
        """Buckets that the last step has emptied, and not by removals alone."""
        return self._left.emptied

    @property
    def waiting_changed(self) -> Mapping[bytes, int]:
        """How many wait of each tenant of which the last step has changed that."""
        return self._left.waiting

    def first_until_ms(self) -> int | None:
        """When the first committed wait for an acknowledgement ends; None for no wait."""
        if self._first_until is None:
            self._first_until = (next((until_ms for until_ms, _ in self.untils()), None),)
        return self._first_until[0]

    # -- changing the overlay --------------------------------------------------------------------

    def keep(self, name: bytes, record: bytes, location: Location) -> None:
        """Let a schedule that is new, or whose record is, wait at a location."""
        self.changes[name] = record
        self.move(name, record, location)

    def keep_in_timeline(self, name: bytes, record: bytes, due_ms: int, seq: int) -> None:
        """The same in the timeline."""
        key, self._named[name] = timeline_place(due_ms, seq)
        self._records[key] = self.changes[name] = record
        self._pending_change += 1

    def keep_in_backlog(
        self, name: bytes, tenant: bytes, record: bytes, sort_key: keys.SortKey
    ) -> None:
        """The same in the tenant's backlog."""
        self.changes[name] = record
        self._records[keys.queue_key(keys.BACKLOG_PREFIX, tenant, *sort_key)] = record
        self._named[name] = pack_location(FORMAT, LOCATION, IN_BACKLOG, 0, *sort_key)
        self._pending_change += 1
        self._grow(keys.BACKLOG_PREFIX + tenant, 1)

    def move(self, name: bytes, record: bytes, location: Location) -> None:
        """Let a schedule wait at another location than it did; its record is what it was."""
        where, due_ms, seq, _ = location
        if where == IN_TIMELINE:
            self.move_to_timeline(name, record, due_ms, seq)
            return
        row = encode_location(location)
        key = record_key(name, row)
        self._records[key] = record
        self._named[name] = row
        self._pending_change += 1
        if where in keys.QUEUES:
            self._grow(keys.queue_of(key), 1)

    def move_to_timeline(self, name: bytes, record: bytes, due_ms: int, seq: int) -> None:
        """The same in the timeline."""
        key, self._named[name] = timeline_place(due_ms, seq)
        self._records[key] = record
        self._pending_change += 1

    def rewrite(self, name: bytes, record: bytes) -> None:
        """Give a schedule that was taken another record; where it waits, `move` says."""
        self.changes[name] = record

    def take(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Let committed rows that follow one another in one place leave it.

        Many of them are dropped as one range.  A record that was put in their place in this step
        stays.
        """
        if not rows:
            return
        first, last = rows[0][0], rows[-1][0]
        self._pending_change -= len(rows)
        self._left.taken(rows)
        if first[:1] in keys.QUEUE_LETTERS:
            self._grow(keys.queue_of(first), -len(rows))
        if len(rows) >= RANGE_FROM:
            self._cleared.append((first, last + b"\0"))
        else:
            for key, _ in rows:
                # By its jitter the next occurrence may be due when the one that fired was.
                self._records.setdefault(key, None)

    def remove(self, name: bytes, row: bytes) -> None:
        """Drop a schedule whose row is this location."""
        key = record_key(name, row)
        self._drop(name, key)
        self._named[name] = self.changes[name] = None
        if key[:1] in keys.QUEUE_LETTERS:
            self._grow(keys.queue_of(key), -1)

    def _drop(self, name: bytes, key: bytes) -> None:
        """Let the record under a local key go, and its bucket know of it.

        What came in this step itself is in no bucket yet.
        """
        if self._records.get(key) is None:
            self._left.removed(name, key)
        self._records[key] = None
        self._pending_change -= 1

    def end(self, name: bytes, marker: bytes) -> None:
        """A schedule whose row was taken is over."""
        self._named[name] = self.changes[name] = marker

    def note(self, name: bytes, row: bytes | None) -> None:
        """Keep a row that is no schedule's under a changelog key, or forget what is over (None)."""
        self._named[name] = self.changes[name] = row

    def restate(self, name: bytes) -> None:
        """Write the row under a changelog key once more as it is, or that there is none."""
        row = self.named(name)
        waits = row is not None and is_location(row)
        self.changes[name] = self.pending_at(name, row) if row is not None and waits else row

    def await_ack(self, key: bytes, record: bytes) -> None:
        """Keep a fire that is to be acknowledged, under its changelog key."""
        self._untils_change = True
        self._named[key] = self.changes[key] = record
        self._records[keys.until_key(decode_awaited(record).until_ms, key)] = b""

    def acked(self, key: bytes, record: bytes) -> None:
        """Forget a fire that was to be acknowledged."""
        self._untils_change = True
        self._named[key] = self.changes[key] = None
        self._records[keys.until_key(decode_awaited(record).until_ms, key)] = None

    def _grow(self, queue: bytes, by: int) -> None:
        self._grown[queue] = self._grown.get(queue, 0) + by

    # -- the end of a step -----------------------------------------------------------------------

    def seal(self, manifest: Manifest) -> None:
        """The step's changes are complete: its manifest is the last one."""
        self.changes[keys.manifest_key(manifest.txn_seq)] = encode_manifest(manifest)

    def commit(self, state: StoredState) -> None:
        """Write the overlay and the state that it leads to, in one batch."""
        self._write({keys.META_STATE: encode_state(state)}, state.changelog_offset)

    def commit_settled(self, state: StoredState) -> None:
        """The same at the end of a replay: from now on the store has a state, and no progress."""
        said = {keys.META_STATE: encode_state(state), keys.META_REPLAY: None}
        self._write(said, state.changelog_offset)

    def commit_progress(self, progress: Progress, readable_by: bytes | None) -> None:
        """Write the overlay and how far it leads, in one batch, and forget the state before it."""
        said = {keys.META_READABLE: readable_by, keys.META_STATE: None}
        self._write({**said, keys.META_REPLAY: encode_progress(progress)}, progress.offset)

    def forget_progress(self) -> None:
        """A replay has found nothing: the store is empty."""
        self._write({keys.META_REPLAY: None}, 0)

    def discard(self) -> None:
        """Forget the overlay."""
        self._named, self._records = {}, {}
        self._cleared = []
        self.changes = {}
        self._pending_change = 0
        self._grown = {}
        self._left.clear()
        self._fetched = {}
        self._untils_change = False

    def _write(self, said: Mapping[bytes, bytes | None], offset: int) -> None:
        """Write the overlay, buckets, sizes and what the store says of itself in one batch."""
        counted = self._left.rows_after(self._records)
        writes = self._records
        writes.update(zip(map(b"k".__add__, self._named), self._named.values(), strict=True))
        grown = [(keys.META_QUEUE + queue, by) for queue, by in self._grown.items() if by]
        before = self._rows.get_many([key for key, _ in grown])
        for (key, by), size in zip(grown, before, strict=True):
            now = by if size is None else decode_size(size) + by
            writes[key] = encode_size(now) if now else None
        writes.update(counted)
        writes.update(said)
        writes[keys.META_BUCKETS] = encode_size(offset)
        self._rows.write(writes, self._cleared)
        if self._untils_change:
            self._first_until = None
        self.discard()

    # -- recovery --------------------------------------------------------------------------------

    def derive_buckets(self, offset: int) -> None:
        """Derive the buckets anew, unless those that are committed go up to this offset."""
        derive(self._rows, offset)

    def replay(self, changes: Sequence[tuple[bytes, bytes | None]]) -> list[Manifest]:
        """Fold changelog records into the overlay; returns the manifests among them."""
        manifests: list[Manifest] = []
        found = self.prefetch([name for name, _ in changes if name[:1] != b"\0"])
        named = self._named
        for name, value in changes:
            if name[:1] == b"\0":
                self._replay_other(name, value, manifests)
                continue
            before = named.get(name, _MISSING)
            if before is _MISSING:
                before = found[name]
            waits = value is not None and value[:2] == HEAD_OF_PENDING
            if before is None and waits and value is not None and not paused(value):
                self.move_to_timeline(name, value, *due_and_seq(value))
            elif before is not None and before[:3] == HEAD_IN_TIMELINE and _is_over(value):
                due_ms, seq = timeline_location(before)
                self._drop(name, timeline_key(due_ms, seq))
                named[name] = value
            else:
                self._replay_schedule(name, value)
        return manifests

    def _replay_other(self, key: bytes, value: bytes | None, manifests: list[Manifest]) -> None:
        if key.startswith(keys.REQUEST_PREFIX):
            # Most rows here are these.  They are looked into when an id comes again, which is too
            # late to notice that they are of a later release.
            if value is not None and value[:2] != HEAD_OF_ANSWERED:
                check_format(value)
            self._named[key] = value
        elif key.startswith(keys.MANIFEST_PREFIX):
            if value is not None:
                manifests.append(decode_manifest(value))
        elif key.startswith(keys.AWAITED_PREFIX):
            self._replay_awaited(key, value)
        else:
            if value is not None and key not in _OF_OTHER_FORMATS:
                check_format(value)
            self.note(key, value)

    def _replay_awaited(self, key: bytes, value: bytes | None) -> None:
        before = self.named(key)
        if before is not None:
            self.acked(key, before)
        if value is not None:
            check_format(value)
            self.await_ack(key, value)

    def _replay_schedule(self, name: bytes, value: bytes | None) -> None:
        before = self.named(name)
        if before is not None and check_format(before) == LOCATION:
            self.remove(name, before)
        row = None if value is None else check_format(value)
        if value is not None and is_pending(value):
            where = IN_PAUSED if paused(value) else IN_TIMELINE
            self.move(name, value, Location(where, *due_and_seq(value)))
        elif row is None or row == MARKER:
            self.note(name, value)
        else:
            raise AssertionError(f"row {row} under the schedule's key {name!r}")


def _is_over(value: bytes | None) -> bool:
    return value is None or value[:2] == HEAD_OF_MARKER
