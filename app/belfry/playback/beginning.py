"""Where a playback begins that is to begin at an instant: at the first take-over from then on.

An owner that takes a partition over has nothing in memory, so it goes on from the changelog alone.
Rows before it are folded, as a worker without local state folds them:

    log       steps 1 ‥ 40    41          42   43 …
              owner 1         owner 2
    --from          ↑ folded  ↑ the first take-over from there on: played from here

From an instant before its birth, a partition is played from its birth on.  A later take-over is no
beginning where something is overdue by then, for an owner with local state knows whether that waits
in a backlog or behind a lock, and a fold does not.  Neither is one where the fold does not agree
with the last manifest: compaction has removed rows that later ones replaced.
"""

from __future__ import annotations

from typing import Final

from belfry.playback.logged import LoggedRow, LoggedStep, StepCutter, Unplayable
from belfry.playback.played import PlayedPartition
from belfry.schedules.instants import format_instant
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, decode_manifest
from belfry.store.replay import HoleInChangelog, Replay

# The number of the first transaction of a changelog, by which a partition is born.
BIRTH: Final = 1


class Beginning:
    """Folds a changelog into a partition that nothing was played of, up to where it may begin."""

    def __init__(self, partition: PlayedPartition, from_ms: int | None) -> None:
        """It begins with the first owner whose first step was written at `from_ms` or later.

        None: with the partition's birth.
        """
        self._partition = partition
        self._from_ms = from_ms or 0
        self._replay = Replay(partition.store)
        self._cutter = StepCutter() if from_ms is None else None
        self._rows: list[LoggedRow] = []
        self._before: Manifest | None = None
        self._problem = "no owner took the partition over since then"

    def ended(self) -> None:
        """The log is at its end; raises `Unplayable` where nothing of it could be played."""
        if self._cutter is None:
            raise Unplayable(
                f"Nothing can be played from {format_instant(self._from_ms)} on: {self._problem}."
            )

    def feed(self, record: LoggedRow) -> LoggedStep | None:
        """Take the next row; the step that it ends, once the playback has begun, or None.

        Raises `Unplayable` for records that no playback knows.
        """
        if self._cutter is not None:
            return self._cutter.feed(record)
        self._rows.append(record)
        if not record.key.startswith(keys.MANIFEST_PREFIX) or record.row is None:
            return None
        manifest, before = decode_manifest(record.row), self._before
        if self._may_begin(record, manifest, before):
            return self._begin(before)
        rows, self._rows, self._before = self._rows, [], manifest
        changes = [(each.key, each.row) for each in rows]
        self._replay.apply(changes, [each.offset for each in rows], record.written_ms)
        self._partition.heard_ms = record.written_ms
        return None

    def _may_begin(self, record: LoggedRow, manifest: Manifest, before: Manifest | None) -> bool:
        if record.written_ms < self._from_ms:
            return False
        if before is None:
            return manifest.txn_seq == BIRTH
        if manifest.owner_epoch == before.owner_epoch:
            return False
        try:
            self._replay.check()
        except HoleInChangelog as error:
            self._problem = f"of what came before, compaction has removed too much ({error})"
            return False
        first_ms = self._partition.store.first_due_ms(keys.FIRST_SORT_KEY)
        if first_ms is not None and first_ms <= before.watermark_ms:
            self._problem = "at each take-over since then something was held back"
            return False
        return True

    def _begin(self, before: Manifest | None) -> LoggedStep | None:
        behind = () if before is None else (before.txn_seq, self._replay.manifest_at)
        cutter = self._cutter = StepCutter(*behind)
        found = [cutter.feed(each) for each in self._rows]
        self._rows = []
        return found[-1]
