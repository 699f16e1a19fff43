"""A partition's local state: opened where it may be used, set aside where it may not.

State carries a stamp (cluster, changelog topic, partition).  What is foreign, damaged or stale is
removed and rebuilt from the changelog.  Stale is what was last written longer ago than half of the
time for which the changelog keeps tombstones: it might not hear that a schedule was cancelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import orjson
import structlog

from belfry.store import keys, progress
from belfry.store.records import UnknownFormat
from belfry.store.schedules import ScheduleStore
from belfry.worker.clock import SystemClock
from belfry.worker.rocks import Damaged, RocksMap, wipe

HOUR_MS = 3_600_000

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What local state belongs to; state with another stamp is not used."""

    cluster_id: str
    topic_id: str
    partition: int
    format: int = 2

    def encode(self) -> bytes:
        """The stamp as it lies in the store."""
        return orjson.dumps([self.format, self.cluster_id, self.topic_id, self.partition])


@dataclass(frozen=True, slots=True)
class LocalState:
    """Where one partition's state lies, and whose it has to be."""

    path: Path
    stamp: Stamp
    stale_ms: int
    clock: SystemClock

    def open(self) -> RocksMap:
        """The store as it was left, or an empty one."""
        try:
            rows = RocksMap(self.path)
        except Exception as error:  # whatever RocksDB says of a damaged store
            if "/LOCK:" in str(error):
                # Somebody has it open: that is no damage, and nothing to remove.
                raise
            log.warning("local state is damaged", path=str(self.path), reason=str(error))
            wipe(self.path)
            rows = RocksMap(self.path)
        try:
            why = self._unusable(rows)
        except Damaged as error:
            why = str(error)
        if why:
            return self.anew(rows, why)
        rows.write({keys.META_STAMP: self.stamp.encode()})
        return rows

    def anew(self, rows: RocksMap, why: str) -> RocksMap:
        """An empty store in place of this one."""
        rows.close()
        self.forget(why)
        rows = RocksMap(self.path)
        rows.write({keys.META_STAMP: self.stamp.encode()})
        return rows

    def forget(self, why: str) -> None:
        """Remove what lies there; nobody has it open."""
        log.warning("local state is set aside", path=str(self.path), reason=why)
        wipe(self.path)

    def _unusable(self, rows: RocksMap) -> str:
        stamp = rows.get(keys.META_STAMP)
        if stamp is None:
            return "it has no stamp" if _holds_rows(rows) else ""
        if stamp != self.stamp.encode():
            return f"it belongs to {stamp.decode(errors='replace')}"
        try:
            begun = progress.load(ScheduleStore(rows))
        except UnknownFormat as error:
            return str(error)
        if begun is progress.NOTHING:
            return "it does not say how far it goes" if _holds_rows(rows) else ""
        if self.clock.wall_ms() - begun.written_ms > self.stale_ms:
            hours = self.stale_ms / HOUR_MS
            return f"it was last written more than {hours:g} hours ago: tombstones may be gone"
        return ""


def _holds_rows(rows: RocksMap) -> bool:
    starts = (keys.BACKLOG_PREFIX, keys.NAMED_PREFIX, keys.TIMELINE_PREFIX)
    return any(next(rows.scan(start, start + b"\xff" * 8), None) for start in starts)
