"""Making checkpoints: a partition's store linked in its own thread, and carried away in another.

    partition's thread    turn ───► turn ────► flush, a second later: hard links ─► goes on
                           │ due?    ▲ wanted                              │
    belfry-checkpoints    look: is the newest one old enough?             carry: files, index, drop

The links take the partition's thread some ten milliseconds, and no row is copied: RocksDB never
changes a file that is written.  What they keep is carried away while the partition goes on.  Only
files that the newest checkpoint has not got are sent, and the index comes last, so a checkpoint
that was interrupted is none.

A standby makes checkpoints where there is one, since its thread holds nobody up.  No word is needed
for that: each looks how old the newest checkpoint is, and an owner waits half as long again.
"""

from __future__ import annotations

from pathlib import Path
from queue import Empty
from typing import Final, NamedTuple

import structlog

from belfry.host import machine, rocks
from belfry.host.background import Background
from belfry.host.errors import named
from belfry.host.rocks import RocksMap
from belfry.recovery.checkpoint_store import (
    INDEX,
    CheckpointDependencies,
    CheckpointFolder,
    believed,
    sha256_of,
)
from belfry.recovery.stamp import STORE_FORMAT, stamp_of
from belfry.store.checkpoint import Checkpoint, CheckpointFile, encode_index
from belfry.store.checkpoint_choice import to_drop, unused_files
from belfry.store.layout import keys
from belfry.store.schedules import ScheduleStore

# An owner leaves it to a standby for so much longer.
OWNER_WAITS: Final = 1.5
# So long after a flush the memory of a store holds little that the links have to wait for.
SETTLED_MS: Final = 1_000
_LOOK_S: Final = 0.5

log = structlog.get_logger(__name__)


class _Job(NamedTuple):
    """What the thread does next: look, or carry away what lies under `linked`."""

    partition: int
    folder: CheckpointFolder
    every_ms: float
    linked: Path | None = None
    made: Checkpoint | None = None


class CheckpointMaker:
    """Makes the checkpoints of a worker; `turn` is called in partitions' threads."""

    def __init__(self, given: CheckpointDependencies) -> None:
        self._given = given
        self._clock = given.clock
        # By partition: when its newest checkpoint was written, as far as this worker knows.
        self._newest_ms: dict[int, float] = {}
        # Those whose thread is to link, and those that are looked at, wanted or carried away.
        self._wanted: set[int] = set()
        self._busy: set[int] = set()
        # Digests of files that do not change any more, so each is read once.
        self._digests: dict[int, dict[tuple[str, int, int, int], str]] = {}
        self._jobs: machine.SimpleQueue[_Job] = machine.SimpleQueue()
        self._thread = Background("checkpoints", self._work, log, "a checkpoint failed")

    def start(self) -> None:
        """Begin to look and to carry; what a former process has left half done is removed."""
        for left in self._given.data_dir.glob("checkpoint-*"):
            rocks.wipe(left)
        self._thread.start()

    def stop(self) -> None:
        """Stop soon. What is on its way is left: without an index it is no checkpoint."""
        self._thread.stop(timeout_s=1.0)

    def turn(self, partition: int, rows: RocksMap, flushed_ms_ago: float, *, owner: bool) -> None:
        """Link the store where a checkpoint is wanted, or see whether one is.

        In the partition's thread, as often as it likes, where the store is what was committed.
        """
        if partition in self._wanted:
            if flushed_ms_ago >= SETTLED_MS:
                self._link(partition, rows)
            return
        every_ms = self._given.interval_s * 1000 * (OWNER_WAITS if owner else 1.0)
        known_ms = self._newest_ms.get(partition, 0.0)
        if partition not in self._busy and self._clock.wall_ms() - known_ms >= every_ms:
            cluster, changelog = stamp_of(rows.get(keys.META_STAMP) or b"")
            self._busy.add(partition)
            folder = self._given.store.folder(cluster, changelog, partition)
            self._jobs.put(_Job(partition, folder, every_ms))

    def _link(self, partition: int, rows: RocksMap) -> None:
        self._wanted.discard(partition)
        linked = self._given.data_dir / f"checkpoint-{partition}"
        try:
            made = _described(partition, rows)
            if made is None:
                self._done(partition)
                return
            rocks.wipe(linked)
            rows.checkpoint(linked)
        except Exception as error:  # noqa: BLE001  # the partition goes on without a checkpoint
            self._failed(partition, error)
            return
        folder = self._given.store.folder(made.cluster, made.changelog, partition)
        self._jobs.put(_Job(partition, folder, 0.0, linked, made))

    def _work(self) -> None:
        try:
            job = self._jobs.get(timeout=_LOOK_S)
        except Empty:
            return
        try:
            if job.linked is None or job.made is None:
                self._look(job)
            else:
                self._carry(job, job.linked, job.made)
        except Exception as error:  # noqa: BLE001  # whatever a file system raises
            if job.linked is not None:
                rocks.wipe(job.linked)
            self._failed(job.partition, error)

    def _look(self, job: _Job) -> None:
        """Want a checkpoint, unless somebody has made one lately."""
        now_ms = self._clock.wall_ms()
        there = self._believed(job)
        # One of a clock that is far ahead would keep everybody from making another.
        written = [each.written_ms for each in there.values() if each.written_ms <= now_ms + 60_000]
        newest_ms = max(written, default=0)
        if written:
            self._tell(job.partition, newest_ms)
        if now_ms - newest_ms >= job.every_ms:
            self._wanted.add(job.partition)
        else:
            self._busy.discard(job.partition)

    def _carry(self, job: _Job, linked: Path, made: Checkpoint) -> None:
        """Send what is not there yet, then the index, then drop what is replaced."""
        began_ms = self._clock.monotonic_ms()
        there = self._believed(job)
        newest = max(there.values(), key=lambda each: each.offset, default=None)
        known = set() if newest is None else {each.sha256 for each in newest.files}
        files, sent = self._digested(job.partition, linked), 0
        for file in files:
            if file.sha256 not in known:
                job.folder.put_file(file.sha256, linked / file.name)
                sent += file.size
                self._given.failpoints.reach("C1")
        made = made._replace(files=tuple(files))
        index = encode_index(made, self._given.keys)
        name = f"{made.offset:020d}-{index.split()[3][:16].decode()}{INDEX}"
        self._given.failpoints.reach("C2")
        job.folder.put_index(name, index)
        self._given.metrics.made(sent)
        self._tell(job.partition, made.written_ms)
        _drop(job.folder, {**there, name: made}, self._clock.wall_ms())
        rocks.wipe(linked)
        self._busy.discard(job.partition)
        seconds = (self._clock.monotonic_ms() - began_ms) / 1000
        log.info(
            "a checkpoint was made", partition=job.partition, offset=made.offset,
            transaction=made.transaction, bytes=made.size, sent_bytes=sent, seconds=seconds,
        )  # fmt: skip

    def _believed(self, job: _Job) -> dict[str, Checkpoint]:
        found = job.folder.indexes()
        return believed(found, self._given.keys, lambda _name, _why: None)

    def _digested(self, partition: int, linked: Path) -> list[CheckpointFile]:
        """The files under `linked`, with digests: those that were there before are not read."""
        before, now = self._digests.get(partition, {}), dict[tuple[str, int, int, int], str]()
        files = list[CheckpointFile]()
        for path in sorted(linked.iterdir()):
            stat = path.stat()
            same = path.name, stat.st_ino, stat.st_size, stat.st_mtime_ns
            now[same] = before.get(same) or sha256_of(path)
            files.append(CheckpointFile(path.name, stat.st_size, now[same]))
        self._digests[partition] = now
        return files

    def _tell(self, partition: int, written_ms: float) -> None:
        self._newest_ms[partition] = written_ms
        self._given.metrics.newest(partition, written_ms / 1000)

    def _done(self, partition: int) -> None:
        """Nothing to do before another interval has gone by."""
        self._newest_ms[partition] = self._clock.wall_ms()
        self._busy.discard(partition)

    def _failed(self, partition: int, error: Exception) -> None:
        self._given.metrics.failed()
        log.warning(
            "a checkpoint was not made", partition=partition, reason=named(error),
            to_do="see whether the store of checkpoints can be written to; the partition goes on,"
            " and the next try is made in its time",
        )  # fmt: skip
        self._done(partition)


def _described(partition: int, rows: RocksMap) -> Checkpoint | None:
    """What a store says of itself, without its files; None where there is nothing to keep."""
    begun = ScheduleStore(rows).replayed()
    if begun.manifest is None:
        return None
    cluster, changelog = stamp_of(rows.get(keys.META_STAMP) or b"")
    last = begun.manifest
    return Checkpoint(
        cluster, changelog, partition, STORE_FORMAT, begun.offset, begun.written_ms,
        last.txn_seq, begun.pending, last.digest.hex(), (),
    )  # fmt: skip


def _drop(folder: CheckpointFolder, there: dict[str, Checkpoint], now_ms: float) -> None:
    """Remove checkpoints that newer ones have replaced, and what belongs to none."""
    dropped = to_drop(there)
    kept = [each for name, each in there.items() if name not in dropped]
    needed = {file.sha256 for each in kept for file in each.files}
    freed = {file.sha256 for name in dropped for file in there[name].files} - needed
    freed |= set(unused_files(folder.modified_ms(), kept, now_ms))
    folder.remove(dropped, sorted(freed))
