"""A partition's local state: opened where it may be used, set aside where it may not.

State carries a stamp (cluster, changelog topic, partition).  Damaged or stale state is removed, and
foreign state is put aside; both are rebuilt from the changelog.  State is stale if it was last
written longer ago than half of the time for which the changelog keeps tombstones: it might not hear
that a schedule was cancelled.

Where the changelog holds nothing that could replace it, state may be the only copy there is: that
is a contradiction, and it stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from belfry.host import rocks
from belfry.host.clock import SystemClock
from belfry.kafka.changelog_reader import ChangelogReader
from belfry.recovery.checkpoint_restoring import CheckpointRestorer
from belfry.recovery.stamp import Stamp, stamp_of
from belfry.store.identity import Identity, foreign_state, lost_changelog
from belfry.store.layout import keys
from belfry.store.layout.manifests import NOTHING, Progress
from belfry.store.layout.records import UnknownFormat
from belfry.store.ordered_map import Damaged
from belfry.store.schedules import ScheduleStore

# For messages alone.
HOUR_MS = 3_600_000
# Part of the name of a store that was put aside: ``partition-3.aside-<epoch ms>``.
ASIDE: Final = "aside"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LocalState:
    """Where one partition's state lies, and whose it has to be.

    `stale_ms` is how old state may be to be used. The ways of a store:

        it is                                        it is
        whole, ours, written lately                  used
        damaged                                      removed, and rebuilt
        ours and whole, but too old                  removed, and rebuilt
        whole, of another cluster or topic           put aside, and rebuilt
        any of the last three, and the changelog     left, and a Contradiction is raised
          holds nothing in its place
    """

    path: Path
    stamp: Stamp
    stale_ms: int
    clock: SystemClock
    # None where no checkpoints are kept.
    checkpoints: CheckpointRestorer | None = None

    def open_newest(
        self, changelog: ChangelogReader, stops: Callable[[], bool] | None = None
    ) -> rocks.RocksMap:
        """The store as it was left, or a checkpoint's where that saves much reading.

        `stops` is a standby's: nobody waits for it, until it says that it is to stop. Raises the
        errors of `open`, and ConnectionError.
        """
        rows = self.open(changelog.holds_records)
        if self.checkpoints is None:
            return rows
        try:
            fetched = self.checkpoints.fetch(
                self.path, self.stamp, self.stale_ms, rows, changelog.ends, stops
            )
        except BaseException:
            rows.close()
            raise
        if fetched is None:
            return rows
        rows.close()
        rocks.wipe(self.path)
        rocks.move(fetched, self.path)
        return rocks.RocksMap(self.path)

    @property
    def restored_ms(self) -> int:
        """When the state was fetched from elsewhere, epoch ms; 0 for never."""
        return (
            0
            if self.checkpoints is None
            else int(self.checkpoints.restored_ms(self.stamp.partition))
        )

    def found_wrong(self) -> None:
        """The state was found wrong: it may have come with a checkpoint, so none is used again."""
        if self.checkpoints is not None:
            self.checkpoints.found_wrong(self.stamp.partition)

    def open(self, replaced: Callable[[], bool]) -> rocks.RocksMap:
        """The store as it was left, or an empty one.

        `replaced` says whether the changelog holds anything; it is asked before state is given up,
        and where it says no, `Contradiction` is raised and the state stays. An error that says that
        another process has the store open is raised as it is.
        """
        try:
            rows = rocks.RocksMap(self.path)
        except Exception as error:  # whatever RocksDB says of a damaged store
            if "/LOCK:" in str(error):
                # Somebody has it open: that is no damage, and nothing to remove.
                raise
            log.warning("local state is damaged", path=str(self.path), reason=str(error))
            rocks.wipe(self.path)
            rows = rocks.RocksMap(self.path)
        return self.accept(rows, replaced)

    def accept(self, rows: rocks.RocksMap, replaced: Callable[[], bool]) -> rocks.RocksMap:
        """This store where it may be used, else an empty one in its place; closed on errors."""
        try:
            try:
                why = self._unusable(rows)
            except Damaged as error:
                why = str(error)
            if not why:
                rows.write({keys.META_STAMP: self.stamp.encode()})
                return rows
            if not replaced():
                self._refuse_to_lose(rows)
        except BaseException:
            rows.close()
            raise
        return self.anew(rows, why)

    def anew(self, rows: rocks.RocksMap, why: str) -> rocks.RocksMap:
        """An empty store in place of this one.

        One that is whole, and is old for no reason that time alone explains, is put aside: it may
        hold rows that the changelog has lost.
        """
        worth_keeping = _is_whole(rows) and not self._is_stale(rows)
        rows.close()
        if worth_keeping:
            self._put_aside(why)
        else:
            self.forget(why)
        rows = rocks.RocksMap(self.path)
        try:
            rows.write({keys.META_STAMP: self.stamp.encode()})
        except BaseException:
            rows.close()
            raise
        return rows

    def give_up(self, why: str) -> None:
        """The same for a store that nobody has open; one that cannot be opened is removed."""
        try:
            rows = rocks.RocksMap(self.path)
        except Exception as error:  # noqa: BLE001  # whatever RocksDB says of a damaged store
            self.forget(f"{why} ({error})")
            return
        self.anew(rows, why).close()

    def forget(self, why: str) -> None:
        """Remove the store there; nobody has it open."""
        log.warning("local state is set aside", path=str(self.path), reason=why)
        rocks.wipe(self.path)

    def _put_aside(self, why: str) -> None:
        """Rename a store, so that `belfry recover` finds it among the copies."""
        to = self.path.with_name(f"{self.path.name}.{ASIDE}-{int(self.clock.wall_ms())}")
        log.error(
            "local state is set aside", path=str(self.path), reason=why, kept_as=str(to),
            to_do="compare it with docs/recovery.md, and delete it when nothing is missed",
        )  # fmt: skip
        rocks.move(self.path, to)

    def _refuse_to_lose(self, rows: rocks.RocksMap) -> None:
        """Raise `Contradiction` where this store may be the only copy of its rows."""
        begun = _progress(rows)
        if begun is None or begun.manifest is None:
            return
        cluster, changelog = stamp_of(rows.get(keys.META_STAMP) or b"")
        here = Identity(self.stamp.cluster_id, self.stamp.topic_id, "")
        held = (
            f"{self.path} keeps {begun.manifest.pending} schedules that wait, as of transaction"
            f" {begun.manifest.txn_seq},"
        )
        if cluster not in ("", here.cluster):
            raise foreign_state(here, cluster, held)
        raise lost_changelog(here, changelog or "?", held)

    def _is_stale(self, rows: rocks.RocksMap) -> bool:
        """Whether a store was last written too long ago; one that says nothing of it is not."""
        begun = _progress(rows)
        return begun is not None and self.clock.wall_ms() - begun.written_ms > self.stale_ms

    def _unusable(self, rows: rocks.RocksMap) -> str:
        """Why a store may not be used, empty where it may; raises Damaged."""
        stamp = rows.get(keys.META_STAMP)
        if stamp is None:
            return "it has no stamp" if _holds_rows(rows) else ""
        if not self.stamp.fits(stamp):
            return f"it belongs to {stamp.decode(errors='replace')}"
        try:
            begun = ScheduleStore(rows).replayed()
        except UnknownFormat as error:
            return str(error)
        if begun is NOTHING:
            return "it does not say how far it goes" if _holds_rows(rows) else ""
        if self._is_stale(rows):
            hours = self.stale_ms / HOUR_MS
            return f"it was last written more than {hours:g} hours ago: tombstones may be gone"
        return ""


def _is_whole(rows: rocks.RocksMap) -> bool:
    """Whether a store is the checked fold of some changelog."""
    try:
        return ScheduleStore(rows).state() is not None
    except (Damaged, UnknownFormat):
        return False


def _progress(rows: rocks.RocksMap) -> Progress | None:
    """How far a store says that it goes, None where it cannot be read."""
    try:
        return ScheduleStore(rows).replayed()
    except (Damaged, UnknownFormat):
        return None


def _holds_rows(rows: rocks.RocksMap) -> bool:
    """Whether a store has any row of a schedule."""
    starts = (keys.BACKLOG_PREFIX, keys.NAMED_PREFIX, keys.TIMELINE_PREFIX)
    return any(next(rows.scan(start, start + b"\xff" * 8), None) for start in starts)
