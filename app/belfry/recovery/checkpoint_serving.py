"""Checkpoints that a worker keeps on its disk for other workers: the newest of each partition.

    links of a store ─► keep: one folder of a partition, its index, its files by digest
                          │
    newer links ──────────┼─► it is read just now: kept until nobody reads it ─┐
                          └─► else ────────────────────────────────────────────┴─► removed

A folder holds hard links, so it takes room only for tables that RocksDB has merged since.  That is
at most the size of the store, and of another one while somebody reads.  Nothing is kept where the
disk has less than twice its reserve left (`disk_reserve_mb`), and kept files go then: a worker
never loses a partition for the sake of another one's start.

Files are found by their digests, among those of the index.  Nobody names a path.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from shutil import disk_usage
from typing import Final

import structlog

from belfry.host import machine, rocks
from belfry.host.clock import SystemClock
from belfry.host.failpoints import Failpoints
from belfry.store.checkpoint import Checkpoint, IndexKeys, encode_index
from belfry.telemetry.checkpoint_metrics import CheckpointMetrics

# One that was replaced stays for so long after somebody has read of it.
READ_MS: Final = 30_000.0

log = structlog.get_logger(__name__)


class _Kept:
    """One checkpoint on this disk; `read_ms` says when somebody read of it last."""

    def __init__(self, folder: Path, made: Checkpoint, index: bytes) -> None:
        self.folder = folder
        self.size = made.size
        self.index = index
        self.files = {each.sha256: (folder / each.name, each.size) for each in made.files}
        self.read_ms = float("-inf")


class ServedCheckpoints:
    """The files that other workers may fetch; one thread keeps and removes, any thread reads."""

    def __init__(
        self,
        keys: IndexKeys,
        clock: SystemClock,
        metrics: CheckpointMetrics,
        data_dir: Path,
        reserve_bytes: int,
        *,
        failpoints: Failpoints = Failpoints(),  # noqa: B008  # reaches nothing
    ) -> None:
        """`keys` sign the indexes. Nothing is kept below twice `reserve_bytes` of free disk."""
        self._failpoints = failpoints
        self._keys = keys
        self._clock = clock
        self._metrics = metrics
        self._data_dir = data_dir
        self._reserve_bytes = reserve_bytes
        self._numbers = count()
        self._lock = machine.Lock()
        # By partition, the newest one first: one, and another while it is read.
        self._kept: dict[int, list[_Kept]] = {}

    # -- by the thread that makes them -----------------------------------------------------------

    def keep(self, made: Checkpoint, linked: Path) -> Path | None:
        """Keep a checkpoint that lies in this folder, in place of the one before.

        Returns where its files lie from now on; None where the disk has no room for it.
        """
        if self._free_bytes() < 2 * self._reserve_bytes + made.size:
            log.warning(
                "a checkpoint is not kept for other workers: the disk has little room",
                partition=made.partition, bytes=made.size, free_bytes=self._free_bytes(),
                to_do="give it more, or set BELFRY_CHECKPOINT_PEERS=never",
            )  # fmt: skip
            return None
        folder = linked.with_name(f"{linked.name}.{next(self._numbers)}")
        rocks.move(linked, folder)
        new = _Kept(folder, made, encode_index(made, self._keys))
        with self._lock:
            before = self._kept.get(made.partition, [])
            # Of those that are read, the one that was read last may be needed for longer.
            stays = sorted(before, key=lambda each: each.read_ms)[-1:]
            self._kept[made.partition] = [new, *stays]
        self._remove([each for each in before if each not in stays])
        self.sweep()
        self._metrics.kept()
        return folder

    def sweep(self) -> None:
        """Remove files that were replaced and are read no more; all files if the disk is short."""
        oldest_ms = self._clock.monotonic_ms() - READ_MS
        with self._lock:
            replaced = [each for kept in self._kept.values() for each in kept[1:]]
            gone = [each for each in replaced if each.read_ms < oldest_ms]
            for partition, kept in self._kept.items():
                self._kept[partition] = [each for each in kept if each not in gone]
        self._remove(gone)
        if self._kept and self._free_bytes() < 2 * self._reserve_bytes:
            log.warning("checkpoints for other workers are removed: the disk has little room")
            self.drop(list(self._kept))

    def drop(self, partitions: list[int]) -> None:
        """Keep nothing of these partitions any more."""
        with self._lock:
            gone = [each for partition in partitions for each in self._kept.pop(partition, [])]
        self._remove(gone)

    def partitions(self) -> list[int]:
        """Those of which something is kept."""
        return list(self._kept)

    # -- by the worker that serves them -----------------------------------------------------------

    def index(self, partition: int) -> bytes | None:
        """The index of the newest one of a partition, signed; None if nothing is kept."""
        with self._lock:
            kept = self._kept.get(partition)
            if not kept:
                return None
            kept[0].read_ms = self._clock.monotonic_ms()
            return kept[0].index

    def piece(self, partition: int, sha256: str, start: int, most: int) -> bytes | None:
        """Up to `most` bytes of a file from `start` on; None where it is of none that is kept."""
        with self._lock:
            kept = next((k for k in self._kept.get(partition, ()) if sha256 in k.files), None)
            if kept is None:
                return None
            kept.read_ms = self._clock.monotonic_ms()
            path, size = kept.files[sha256]
        self._failpoints.reach("C3")
        try:
            with path.open("rb") as file:
                file.seek(min(start, size))
                found = file.read(max(0, min(most, size - start)))
        except FileNotFoundError:
            return None
        self._metrics.served(len(found))
        return found

    def _free_bytes(self) -> int:
        return disk_usage(self._data_dir).free

    def _remove(self, gone: list[_Kept]) -> None:
        for each in gone:
            rocks.wipe(each.folder)
