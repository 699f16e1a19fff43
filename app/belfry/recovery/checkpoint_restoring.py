"""Restoring a partition's store from a checkpoint, where much of the changelog would be read else.

    local state is old, or there is none
      └─ indexes ─► those that may be used, newest first ─┬─ files, by their digests ─► opened, used
                                                          ├─ damaged or missing: the one before
                                                          └─ none left: the changelog, as ever

A checkpoint becomes local state and nothing more.  What is read behind it is checked as ever:
numbers of transactions, how many schedules wait.  Where that finds it wrong, the changelog is read
from its beginning, and no checkpoint that there was by then is used again by this process.

A store of checkpoints that is away or never answers costs some seconds, and no promise.  Nobody is
asked where local state is near the changelog's end, so a usual take-over knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import structlog

from belfry.host import rocks
from belfry.host.errors import named
from belfry.host.object_store import within
from belfry.recovery.checkpoint_store import (
    CheckpointDependencies,
    CheckpointFolder,
    believed,
    sha256_of,
)
from belfry.recovery.stamp import STORE_FORMAT, Stamp
from belfry.store.checkpoint import BadCheckpoint, Checkpoint, CheckpointFile
from belfry.store.checkpoint_choice import Sought, to_try, worth_looking
from belfry.store.layout import keys
from belfry.store.schedules import ScheduleStore

# Seconds for the indexes, and for a file: so many, and one for each MB.
INDEXES_S: Final = 15.0
FILE_S: Final = 30.0
BYTES_PER_S: Final = 1_000_000
# Files of this kind are never changed once they are written, so one may be in two stores.
TABLE: Final = ".sst"
_PARTS: Final = count()

log = structlog.get_logger(__name__)


class CheckpointRestorer:
    """Restores partitions of a worker; used by their threads, each for its own partition."""

    def __init__(self, given: CheckpointDependencies) -> None:
        self._given = given
        # Partitions whose state was found wrong, and when: what was written before is not used.
        self._wrong_ms: dict[int, float] = {}
        self._restored_ms: dict[int, float] = {}

    def found_wrong(self, partition: int) -> None:
        """Use no checkpoint of a partition that was written by now."""
        self._wrong_ms[partition] = self._given.clock.wall_ms()

    def restored_ms(self, partition: int) -> float:
        """When a checkpoint of a partition was fetched last, epoch ms; 0 for never."""
        return self._restored_ms.get(partition, 0.0)

    def fetch(
        self,
        path: Path,
        stamp: Stamp,
        stale_ms: int,
        rows: rocks.RocksMap,
        ends: Callable[[], tuple[int, int]],
    ) -> Path | None:
        """A store that is to take the place of these rows, or None where there is no better one.

        They lie at `path`. What is fetched is of this stamp, and younger than `stale_ms`. `ends`
        gives the first offset of the changelog, and the one behind its last.
        """
        sought, to = self._sought(stamp, stale_ms, rows, ends()), path.with_name(f"{path.name}.new")
        if worth_looking(sought):
            folder = self._given.store.folder(sought.cluster, sought.changelog, sought.partition)
            for name, found in self._found(folder, sought):
                if self._usable(folder, found, name, to=to, own=path):
                    self._given.metrics.restored("checkpoint")
                    return to
            rocks.wipe(to)
            log.info(
                "no checkpoint is used", partition=sought.partition, local_offset=sought.offset,
                to_read=sought.unread,
            )  # fmt: skip
        self._given.metrics.restored("local" if sought.offset else "changelog")
        return None

    def _usable(
        self, folder: CheckpointFolder, found: Checkpoint, name: str, *, to: Path, own: Path
    ) -> bool:
        """Fetch a checkpoint and try it out; False where it is not what its index says."""
        clock, partition = self._given.clock, found.partition
        began_ms = clock.monotonic_ms()
        try:
            fetched = _fetched(folder, found, to, own)
            _try_out(to, found)
        except Exception as error:  # noqa: BLE001  # whatever a file system or RocksDB raises
            self._refused(partition, name, named(error))
            return False
        self._restored_ms[partition] = clock.wall_ms()
        log.info(
            "state is restored from a checkpoint", partition=partition, checkpoint=name,
            offset=found.offset, transaction=found.transaction, pending=found.pending,
            bytes=found.size, fetched_bytes=fetched,
            seconds=(clock.monotonic_ms() - began_ms) / 1000,
        )  # fmt: skip
        return True

    def _sought(
        self, stamp: Stamp, stale_ms: int, rows: rocks.RocksMap, ends: tuple[int, int]
    ) -> Sought:
        begun = ScheduleStore(rows).replayed()
        oldest_ms = self._given.clock.wall_ms() - stale_ms
        wrong_ms = self._wrong_ms.get(stamp.partition, 0.0)
        return Sought(
            stamp.cluster_id, stamp.topic_id, stamp.partition, STORE_FORMAT, begun.offset,
            *ends, max(oldest_ms, wrong_ms),
        )  # fmt: skip

    def _found(self, folder: CheckpointFolder, sought: Sought) -> list[tuple[str, Checkpoint]]:
        """Checkpoints that may be used, the one to be tried first in front; none where the store
        of checkpoints is away.
        """
        try:
            indexes = within(INDEXES_S, folder.indexes)
        except Exception as error:  # noqa: BLE001  # whatever a file system raises
            log.warning(
                "checkpoints cannot be looked for", partition=sought.partition,
                reason=named(error), to_do="see whether the store of checkpoints can be read",
            )  # fmt: skip
            return []
        found = believed(indexes, self._given.keys, partial(self._refused, sought.partition))
        return [(name, found[name]) for name in to_try(found, sought)]

    def _refused(self, partition: int, name: str, why: str) -> None:
        self._given.metrics.refused()
        log.warning("a checkpoint is not used", partition=partition, checkpoint=name, reason=why)


def _fetched(folder: CheckpointFolder, found: Checkpoint, to: Path, own: Path) -> int:
    """Bring all files of a checkpoint together; how many bytes were fetched for it.

    What is there from an earlier try, and tables of the `own` store, are used where they are the
    same. Raises BadCheckpoint for a file that is not what the index says.
    """
    to.mkdir(parents=True, exist_ok=True)
    names = {each.name for each in found.files}
    for left in to.iterdir():
        if left.name not in names:
            left.unlink()
    return sum(_file(folder, each, to / each.name, own / each.name) for each in found.files)


def _file(folder: CheckpointFolder, file: CheckpointFile, to: Path, own: Path) -> int:
    if _is(file, to):
        return 0
    to.unlink(missing_ok=True)
    if file.name.endswith(TABLE):
        with suppress(OSError):
            to.hardlink_to(own)
            if _is(file, to):
                return 0
            to.unlink()
    # What was given up may still be written to, so nobody else ever has its name.
    part = to.with_name(f"{next(_PARTS)}.part")
    within(FILE_S + file.size / BYTES_PER_S, lambda: folder.get_file(file.sha256, part))
    if not _is(file, part):
        raise BadCheckpoint(f"{file.name} is not what the index says: {file.sha256}")
    part.rename(to)
    return file.size


def _is(file: CheckpointFile, path: Path) -> bool:
    return path.is_file() and path.stat().st_size == file.size and sha256_of(path) == file.sha256


def _try_out(path: Path, found: Checkpoint) -> None:
    """Open a store and close it again; BadCheckpoint where it says other things than its index."""
    rows = rocks.RocksMap(path)
    try:
        begun, stamp = ScheduleStore(rows).replayed(), rows.get(keys.META_STAMP) or b""
    finally:
        rows.close()
    number = None if begun.manifest is None else begun.manifest.txn_seq
    said = found.offset, found.written_ms, found.pending, found.transaction
    if (begun.offset, begun.written_ms, begun.pending, number) != said:
        raise BadCheckpoint(f"the store in it goes to offset {begun.offset}, not {found.offset}")
    if not Stamp(found.cluster, found.changelog, found.partition).fits(stamp):
        raise BadCheckpoint(f"the store in it belongs to {stamp.decode(errors='replace')}")
