"""Making checkpoints: a partition's store linked in its own thread, and carried away in another.

    partition's thread    turn ───► turn ────► flush, a second later: hard links ─► goes on
                           │ due?    ▲ wanted                              │
    belfry-checkpoints    look: is the newest one old enough?     keep for other workers, send

A flush and the links take the partition's thread some ten milliseconds, and no row is copied:
RocksDB never changes a file that is written.  The other threads of the process run during the
flush, and are held up by the links alone.  The linked files are carried away while the partition
goes on, to other workers (`checkpoint_serving.py`), to the store of checkpoints
(`checkpoint_sending.py`), or to both.

A standby makes checkpoints where there is one, since its thread holds nobody up.  No word is needed
for that: each looks how old the newest checkpoint is, and an owner waits half as long again.  Files
kept for others lie on a worker's own disk, so there owner and standby go by their own ones.
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
from belfry.recovery.checkpoint_parts import CheckpointDependencies
from belfry.recovery.checkpoint_sending import CheckpointSender
from belfry.recovery.checkpoint_serving import ServedCheckpoints
from belfry.recovery.checkpoint_store import sha256_of
from belfry.recovery.stamp import STORE_FORMAT, stamp_of
from belfry.store.checkpoint import Checkpoint, CheckpointFile
from belfry.store.layout import keys
from belfry.store.schedules import ScheduleStore

# An owner leaves it to a standby for so much longer.
OWNER_WAITS: Final = 1.5
# So long after a flush the memory of a store holds little that the links have to wait for.
SETTLED_MS: Final = 1_000
_LOOK_S: Final = 0.5
# Files of a partition that nobody here has held for so many intervals are removed.
FORGOTTEN_AFTER: Final = 3

log = structlog.get_logger(__name__)


class _Job(NamedTuple):
    """The next work of the thread: look, or carry away the files under `linked`.

    `sends` says that it goes to the store of checkpoints.
    """

    partition: int
    stamp: tuple[str, str] = ("", "")
    every_ms: float = 0.0
    linked: Path | None = None
    made: Checkpoint | None = None
    sends: bool = False


class CheckpointMaker:
    """Makes the checkpoints of a worker; `turn` is called in partitions' threads."""

    def __init__(self, given: CheckpointDependencies) -> None:
        self._given = given
        self._clock = given.clock
        self._sender = None if given.store is None else CheckpointSender(given, given.store)
        # By partition: when its newest checkpoint in the store was written, as far as this worker
        # knows; when the one that is kept here was; and when the partition was held here last.
        self._newest_ms: dict[int, float] = {}
        self._kept_ms: dict[int, float] = {}
        self._held_ms: dict[int, float] = {}
        # Those whose thread is to link, and whether that is sent to the store; and those that are
        # looked at, wanted or carried away.
        self._wanted: dict[int, bool] = {}
        self._busy: set[int] = set()
        # Digests of files that do not change any more, so each is read once.
        self._digests: dict[int, dict[tuple[str, int, int, int], str]] = {}
        self._jobs: machine.SimpleQueue[_Job] = machine.SimpleQueue()
        self._thread = Background("checkpoints", self._work, log, "a checkpoint failed")

    @property
    def served(self) -> ServedCheckpoints | None:
        """The files that other workers may fetch, None where nothing is kept for them."""
        return self._given.served

    def start(self) -> None:
        """Begin to look and to carry; leftovers of a former process are removed."""
        for left in self._given.data_dir.glob("checkpoint-*"):
            rocks.wipe(left)
        self._thread.start()

    def stop(self) -> None:
        """Stop soon. Files on their way are left: without an index they are no checkpoint."""
        self._thread.stop(timeout_s=1.0)

    def turn(self, partition: int, rows: RocksMap, flushed_ms_ago: float, *, owner: bool) -> None:
        """Link the store where a checkpoint is wanted, or see whether one is.

        In the partition's thread, as often as it likes, where the store holds the committed state.
        """
        if partition in self._wanted:
            if flushed_ms_ago >= SETTLED_MS:
                self._link(partition, rows)
            return
        now_ms = self._held_ms[partition] = self._clock.wall_ms()
        if partition in self._busy:
            return
        every_ms = self._given.interval_s * 1000 * (OWNER_WAITS if owner else 1.0)
        if self._sender and now_ms - self._newest_ms.get(partition, 0.0) >= every_ms:
            self._busy.add(partition)
            stamp = stamp_of(rows.get(keys.META_STAMP) or b"")
            self._jobs.put(_Job(partition, stamp, every_ms))
        elif self.served and now_ms - self._kept_ms.get(partition, 0.0) >= every_ms:
            self._busy.add(partition)
            self._wanted[partition] = False

    def _link(self, partition: int, rows: RocksMap) -> None:
        sends = self._wanted.pop(partition)
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
        self._jobs.put(_Job(partition, linked=linked, made=made, sends=sends))

    def _work(self) -> None:
        try:
            job = self._jobs.get(timeout=_LOOK_S)
        except Empty:
            self._forget()
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
        assert self._sender is not None
        newest_ms = self._sender.newest_ms(*job.stamp, job.partition)
        if newest_ms:
            self._tell(job.partition, newest_ms)
        if self._clock.wall_ms() - newest_ms >= job.every_ms:
            self._wanted[job.partition] = True
        else:
            self._busy.discard(job.partition)

    def _carry(self, job: _Job, linked: Path, made: Checkpoint) -> None:
        """Keep the linked files for other workers, and send them to the store; or one of both."""
        began_ms = self._clock.monotonic_ms()
        made = made._replace(files=tuple(self._digested(job.partition, linked)))
        kept = None if self.served is None else self.served.keep(made, linked)
        # Where it could not be kept it is tried again in its time.
        self._kept_ms[job.partition] = self._clock.wall_ms()
        sent = None
        if job.sends and self._sender is not None:
            sent = self._sender.send(made, kept or linked)
            self._given.metrics.made(sent)
            self._tell(job.partition, made.written_ms)
        rocks.wipe(linked)
        self._busy.discard(job.partition)
        seconds = (self._clock.monotonic_ms() - began_ms) / 1000
        log.info(
            "a checkpoint was made", partition=job.partition, offset=made.offset,
            transaction=made.transaction, pending=made.pending, bytes=made.size, sent_bytes=sent,
            kept=kept is not None, seconds=seconds,
        )  # fmt: skip

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

    def _forget(self) -> None:
        """Remove files that are kept for others and not needed any more."""
        if self.served is None:
            return
        self.served.sweep()
        oldest_ms = self._clock.wall_ms() - FORGOTTEN_AFTER * self._given.interval_s * 1000
        kept = self.served.partitions()
        self.served.drop([each for each in kept if self._held_ms.get(each, 0.0) < oldest_ms])

    def _tell(self, partition: int, written_ms: float) -> None:
        self._newest_ms[partition] = written_ms
        self._given.metrics.newest(partition, written_ms / 1000)

    def _done(self, partition: int) -> None:
        """Nothing to do before another interval has gone by."""
        self._newest_ms[partition] = self._kept_ms[partition] = self._clock.wall_ms()
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
    """The description of a store, without its files; None where there is nothing to keep."""
    begun = ScheduleStore(rows).replayed()
    if begun.manifest is None:
        return None
    cluster, changelog = stamp_of(rows.get(keys.META_STAMP) or b"")
    last = begun.manifest
    return Checkpoint(
        cluster, changelog, partition, STORE_FORMAT, begun.offset, begun.written_ms,
        last.txn_seq, begun.pending, last.digest.hex(), (),
    )  # fmt: skip
