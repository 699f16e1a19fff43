"""The schedules of one partition: the committed ones, with the step that is under way above them.

    keep(name, record, location)   a schedule waits there, with a new record            pending + 1
    take(rows)                     these rows leave the place in which they waited      pending - n
    move(name, record, location)   what was taken waits there, its record as it was     pending + 1
    rewrite(name, record)          what was taken has a new record, and is moved next
    end(name, marker, kept_ms)     what was taken is over: a marker stands for it, or nothing
    remove(name, row)              a schedule is gone, with its record                  pending - 1
    replace(name, row, record)     the same with another record in the very same place
    note(name, row)                a row that is no schedule's: verdict, settings, zones
    await_ack, acked               a fire that is to be acknowledged, and one that has been

To fire a one-shot is `take` and `end`; to fire a recurring one is `take`, `rewrite` and `move`.
The change of the number of schedules that wait, which manifests tell and a replay checks, follows
from the verbs alone (`pending_change`), and so do the sizes of the queues and the minute buckets
(`buckets.py`).  Each verb but `take` and `move` is also a change of the changelog (`changes`), so
neither can be without the other.

    step              take  keep  note …        reads see these changes first
                             │
    overlay           name → row   key → record   counts      changes ──► the step's transaction
                             │ commit(state): one batch                   discard(): forgotten
    ordered map       ───────▼──────────────────────────────────────────────────────

`commit` comes after Kafka has committed the same as changelog records.  `fold.py` lays changelog
records into the map, many at once (`laid.py`): the store is the fold of its changelog up to the
stored offset, at any crash point.  Reading is in `overlaid.py`; nobody else touches the overlay.
A cancel of `a` in a step that is rolled back:

    before      named(a): a location in the timeline        pending_change  0
    remove(a)   named(a): None; a scan still meets its row  pending_change -1
    discard()   named(a): the location again                pending_change  0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from belfry.store.buckets import derive
from belfry.store.laid import Laid
from belfry.store.layout import keys
from belfry.store.layout.locations import (
    IN_BACKLOG,
    IN_TIMELINE,
    QUEUE_LETTERS,
    QUEUES,
    Location,
    decode_location,
    encode_location,
    is_location,
    pack_location,
    record_key,
    timeline_place,
)
from belfry.store.layout.manifests import (
    Manifest,
    Progress,
    StoredState,
    encode_manifest,
    encode_progress,
    encode_state,
)
from belfry.store.layout.records import FORMAT, LOCATION, decode_awaited, decode_size, encode_size
from belfry.store.ordered_map import Parted

# RocksDB sorts its range tombstones anew after each one: worth it only for many rows.
RANGE_FROM: Final = 256


class ScheduleStore(Laid):
    """Schedules of a partition by name, by time, by tenant's queue and by lock, and their verbs."""

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
        """Let a schedule wait at another location than it did; its record stays as it was."""
        where, due_ms, seq, _ = location
        if where == IN_TIMELINE:
            self.move_to_timeline(name, record, due_ms, seq)
            return
        row = encode_location(location)
        key = record_key(name, row)
        self._records[key] = record
        self._named[name] = row
        self._pending_change += 1
        if where in QUEUES:
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
        if first[:1] in QUEUE_LETTERS:
            self._grow(keys.queue_of(first), -len(rows))
        if len(rows) >= RANGE_FROM:
            self._cleared.append((first, last + b"\0"))
        else:
            for key, _ in rows:
                # By its jitter the next occurrence may be due when the one that fired was.
                self._records.setdefault(key, None)

    def take_apart(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """The same for committed rows of the timeline, in their order, with others between them."""
        if rows:
            self._pending_change -= len(rows)
            self._left.taken(rows)
            for key, _ in rows:
                self._records.setdefault(key, None)

    def remove(self, name: bytes, row: bytes) -> None:
        """Drop a schedule whose row is this location."""
        key = record_key(name, row)
        self._drop(name, key)
        self._named[name] = self.changes[name] = None
        if key[:1] in QUEUE_LETTERS:
            self._grow(keys.queue_of(key), -1)

    def replace(self, name: bytes, row: bytes, record: bytes) -> None:
        """Give a schedule whose row is this location another record, of the same sort key, there.

        Nothing that is counted of places changes.
        """
        self.remove(name, row)
        self.keep(name, record, decode_location(row))

    def _drop(self, name: bytes, key: bytes) -> None:
        """Let the record under a local key go, and its bucket know of it.

        Rows that came in this step itself are in no bucket yet.
        """
        if self._records.get(key) is None:
            self._left.removed(name, key)
        self._records[key] = None
        self._pending_change -= 1

    def end(self, name: bytes, marker: bytes, kept_ms: int) -> None:
        """A schedule whose row was taken is over; a marker stands for it, for so long (0: none)."""
        self._named[name] = self.changes[name] = marker if kept_ms else None
        if kept_ms:
            self.ends.kept[kept_ms].append(name)

    def note(self, name: bytes, row: bytes | None, kept_ms: int | None = None) -> None:
        """Keep a row that is no schedule's under a changelog key, or forget an ended one (None).

        With `kept_ms` it is over after so long.
        """
        self._named[name] = self.changes[name] = row
        if kept_ms is not None:
            self.ends.kept[kept_ms].append(name)

    def restate(self, name: bytes) -> None:
        """Write the row under a changelog key once more as it is, or a tombstone if it is gone."""
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
        said: dict[bytes, bytes | None] = {keys.META_STATE: encode_state(state)}
        said.update(self.ends.rows_after(state.changelog_offset, state.written_ms))
        self._cleared += self.ends.cleared
        self._write(said, state.changelog_offset)

    def commit_settled(self, state: StoredState, readable_by: bytes | None) -> None:
        """The same at the end of a replay: from now on the store has a state, and no progress."""
        said = {keys.META_STATE: encode_state(state), keys.META_REPLAY: None}
        said[keys.META_READABLE] = readable_by
        self._write(said, state.changelog_offset)

    def commit_progress(self, progress: Progress, readable_by: bytes | None) -> None:
        """Write the overlay and how far it leads, in one batch, and forget the state before it."""
        said = {keys.META_READABLE: readable_by, keys.META_STATE: None}
        self._write({**said, keys.META_REPLAY: encode_progress(progress)}, progress.offset)

    def forget_progress(self, readable_by: bytes | None) -> None:
        """A replay has found nothing: the store is empty."""
        self._write({keys.META_REPLAY: None, keys.META_READABLE: readable_by}, 0)

    def derive_buckets(self, offset: int) -> None:
        """Derive the buckets anew, unless those that are committed go up to this offset."""
        derive(self._rows, offset)

    def _write(self, said: Mapping[bytes, bytes | None], offset: int) -> None:
        """Write the overlay, buckets, sizes and the store's own state in one batch."""
        counted = self._left.rows_after(self._records)
        writes = self._records
        grown = [(keys.queue_size_key(queue), by) for queue, by in self._grown.items() if by]
        before = self._rows.get_many([key for key, _ in grown])
        for (key, by), size in zip(grown, before, strict=True):
            now = by if size is None else decode_size(size) + by
            writes[key] = encode_size(now) if now else None
        writes.update(counted)
        writes.update(said)
        writes[keys.META_BUCKETS] = encode_size(offset)
        self._rows.write(Parted((keys.NAMED_PREFIX, self._named), (b"", writes)), self._cleared)
        if self._untils_change:
            self._first_until = None
        self.discard()
