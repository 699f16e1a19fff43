"""Replay: a changelog's records folded into a store, checked for holes.

Each transaction ends with its manifest, so whole transactions are folded, as many at once as their
reader holds, and with them is written how far the fold has come (`Progress`), in one batch: a
replay that was cut short goes on where it was.  Records that are held and not folded are read
again.  A long stretch without manifests (compaction keeps the last few thousand) is cut anywhere;
the rows since the last manifest are counted, and the next one has to come.

While a replay is under way the store has progress and no state; `finish` makes the one the other.
Schedules that this version cannot fire are noticed on the way (`unreadable`).  A store that was
folded by a process which could read something else is looked through first.

At the end three things have to hold, or there is a hole and the store is not to be used: nothing
follows the last manifest, the manifests are numbered without gaps (as far back as compaction keeps
them), and the number of waiting schedules is the one that the last manifest says.

    offset   10      11      12           13      14           15
    record   row a   row b   manifest 7   row c   manifest 8   row d
                             2 wait               3 wait
    folded   ├── one write ───────────────┤├── one write ─────┤ d has no manifest: buffered
    killed between the two writes (of two batches): the next replay begins at 13, with 2 that wait

Where d stays without a manifest, either its transaction's end is lost (`HoleInChangelog`) or it is
a copy that somebody made of a step that was rolled back (`leave_unclosed`); the caller knows which.

Row b alone could be lost without a trace: compaction removes rows as well.  It is the count that
tells: three rows, and manifest 8 says how many wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from belfry.schedules.triggers.levels import level_in
from belfry.store.fold import fold
from belfry.store.identity import Identity, decode_identity
from belfry.store.layout import keys
from belfry.store.layout.locations import IN_BACKLOG, Location
from belfry.store.layout.manifests import Manifest, Progress, StoredState
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.records import whole_records
from belfry.store.net import Change, after_last_manifest, net_of
from belfry.store.readable import note_unreadable, reads, unreadable_in
from belfry.store.schedules import ScheduleStore

MOST_BUFFERED = 200_000
SETTLE_ROWS = 10_000


class HoleInChangelog(Exception):
    """Replay did not lead to the state of the manifests: forget the store and rebuild it."""


class Replay:
    """Folds changelog batches into a store that starts as it lies on disk, or empty."""

    def __init__(self, store: ScheduleStore) -> None:
        begun = store.replayed()
        self._store = store
        self.manifest = begun.manifest
        self.begun = begun.offset > 0
        self.offset = begun.offset
        # When the content of the store was written, before this replay.
        self.written_ms = begun.written_ms
        self._pending = begun.pending
        self._newest_gap = begun.newest_gap
        self._unclosed = begun.unclosed
        # Schedules that this version cannot fire, and why.
        self.unreadable: dict[bytes, str] = {}
        if self.begun and store.readable_by() != reads():
            self.unreadable = unreadable_in(store)
        self._buffer: list[Change] = []
        self._buffered: list[int] = []
        self._held_bytes = 0
        # How many of them end with the last manifest.
        self._whole = 0

    @property
    def manifest_at(self) -> int:
        """Offset of the last manifest that was folded, right before `offset`; -1 where unknown."""
        return self.offset - 1 if self.manifest is not None and not self._unclosed else -1

    @property
    def settings(self) -> bytes | None:
        """The cluster settings that the state was kept with, as far as the changelog was read."""
        return self._store.named(keys.SETTINGS_KEY)

    @property
    def identity(self) -> Identity | None:
        """The world that the state was kept in, as far as the changelog was read.

        Rows whose manifest is still to come count as well: a copy of a changelog that has only
        begun to be written is a copy.
        """
        for key, row in reversed(self._buffer):
            if key == keys.IDENTITY_KEY and row is not None:
                return decode_identity(row)
        return self._folded_identity

    @property
    def _folded_identity(self) -> Identity | None:
        row = self._store.named(keys.IDENTITY_KEY)
        return None if row is None else decode_identity(row)

    def apply(self, changes: Sequence[Change], offsets: Sequence[int], now_ms: int) -> None:
        """Fold the next changes, which lie at `offsets`."""
        self.hold(changes, offsets)
        self.fold(now_ms)

    def hold(self, changes: Sequence[Change], offsets: Sequence[int]) -> None:
        """Take the next changes in, which lie at `offsets`, and fold nothing yet.

        The longer they are held, the less is left of them (`net.py`).
        """
        if whole := after_last_manifest(changes):
            self._whole = len(self._buffer) + whole
        self._buffer.extend(changes)
        self._buffered.extend(offsets)
        self._held_bytes += _bytes_of(changes)

    @property
    def held(self) -> tuple[int, int]:
        """How many changes were read and are not folded, and about how many bytes they take."""
        return len(self._buffer), self._held_bytes

    def fold(self, now_ms: int) -> None:
        """Fold the held records, up to the last manifest, and write it with how far it goes."""
        cut = self._whole
        if cut == 0 and len(self._buffer) > MOST_BUFFERED:
            cut = len(self._buffer)
        if not cut:
            return
        # See that the buckets go as far as the rows, before rows change.
        self._store.derive_buckets(self.offset)
        self.offset = self._buffered[cut - 1] + 1
        with whole_records():
            self._fold(self._buffer[:cut])
        del self._buffer[:cut], self._buffered[:cut]
        self._whole, self._held_bytes = 0, _bytes_of(self._buffer)
        self._store.commit_progress(self._progress(now_ms), self._readable_by)

    @property
    def _readable_by(self) -> bytes | None:
        """The processes that need not look the fold through; an owner adds its own formats."""
        return None if self.unreadable else reads()

    def _progress(self, now_ms: int) -> Progress:
        return Progress(
            self.offset, now_ms, self._pending, self._newest_gap, self._unclosed, self.manifest
        )

    def _fold(self, changes: Sequence[Change]) -> None:
        net = net_of(changes)
        if self.begun:
            self._refuse_recovered(net.others)
        note_unreadable(self.unreadable, net.schedules)
        for manifest in fold(self._store, net):
            before = self.manifest
            if before is not None and manifest.txn_seq != before.txn_seq + 1:
                # A fold from nothing goes on: a recovery may lie behind a fork.
                if manifest.txn_seq <= before.txn_seq and self.begun:
                    raise HoleInChangelog(_gap(before.txn_seq, manifest.txn_seq))
                self._newest_gap = before.txn_seq, manifest.txn_seq
            self.manifest = manifest
        self._pending += self._store.pending_change
        ended = changes[-1][0].startswith(keys.MANIFEST_PREFIX)
        self._unclosed = 0 if ended else self._unclosed + len(changes)

    def _refuse_recovered(self, changes: Sequence[Change]) -> None:
        """A recovery rewrites rows under new numbers: a fold that began before it begins anew."""
        for key, value in changes:
            if key == keys.IDENTITY_KEY and value is not None:
                known, told = self._folded_identity, decode_identity(value)
                if told.generation > (0 if known is None else known.generation):
                    raise HoleInChangelog(
                        f"the changelog was recovered (generation {told.generation}) since this"
                        " state was written"
                    )

    @property
    def unclosed(self) -> Sequence[int]:
        """Offsets of the records behind the last manifest; none where some have been folded."""
        return () if self._unclosed else self._buffered

    def leave_unclosed(self) -> tuple[bytes, ...]:
        """Do not fold the records behind the last manifest; returns their keys."""
        left = tuple({key: None for key, _ in self._buffer})
        self._buffer, self._buffered, self._held_bytes = [], [], 0
        return left

    def check(self) -> None:
        """Raise HoleInChangelog unless the fold agrees with the last manifest."""
        unclosed = self._unclosed + len(self._buffer)
        if unclosed:
            raise HoleInChangelog(f"{unclosed} records follow the last manifest")
        if self.manifest is None:
            return
        oldest_kept = self.manifest.txn_seq - keys.MANIFEST_SLOTS + 1
        before, after = self._newest_gap
        if before >= max(0, oldest_kept) or (before >= 0 and after <= before):
            raise HoleInChangelog(_gap(*self._newest_gap))
        if self._pending != self.manifest.pending:
            raise HoleInChangelog(
                f"{self._pending} schedules wait here, {self.manifest.pending} by the manifest of"
                f" transaction {self.manifest.txn_seq}"
            )

    def finish(self, now_ms: int) -> None:
        """Check for holes, then move overdue rows to the backlog."""
        self.check()
        self._store.derive_buckets(self.offset)
        if self.manifest is None:
            self._store.forget_progress(self._readable_by)
        else:
            with whole_records():
                self._settle(self.manifest, now_ms)

    def _settle(self, manifest: Manifest, now_ms: int) -> None:
        """Put rows that are due up to the watermark, and still wait, into the backlog again."""
        state = StoredState(self.offset, now_ms, manifest)
        self._store.commit_settled(state, self._readable_by)
        while True:
            overdue = self._store.timeline(keys.FIRST_SORT_KEY, manifest.watermark_ms)
            rows = list(islice(overdue, SETTLE_ROWS))
            if not rows:
                return
            self._store.take(rows)
            for _, record in rows:
                row = decode_pending(record)
                self._store.move(
                    row.name, record, Location(IN_BACKLOG, *row.sort_key, level_in(row.extra))
                )
            self._store.commit(state)


def _bytes_of(changes: Sequence[Change]) -> int:
    return sum([len(row) for _, row in changes if row is not None])


def _gap(before: int, after: int) -> str:
    return f"transaction {after} follows transaction {before}"
