"""Carrying a linked store to the store of checkpoints: its files, its index, then the removals.

Only files that the newest checkpoint there has not got are sent, and the index comes last, so an
interrupted one does not count as a checkpoint.
"""

from __future__ import annotations

from pathlib import Path

from belfry.recovery.checkpoint_parts import CheckpointDependencies
from belfry.recovery.checkpoint_store import (
    INDEX,
    CheckpointFolder,
    CheckpointStore,
    believed,
)
from belfry.store.checkpoint import Checkpoint, encode_index
from belfry.store.checkpoint_choice import to_drop, unused_files


class CheckpointSender:
    """Sends checkpoints to one store; used by one thread, and raises whatever the store does."""

    def __init__(self, given: CheckpointDependencies, store: CheckpointStore) -> None:
        self._given = given
        self._store = store

    def newest_ms(self, cluster: str, changelog: str, partition: int) -> int:
        """When the newest checkpoint there was written, epoch ms; 0 if no checkpoint is there."""
        there = self._believed(self._store.folder(cluster, changelog, partition))
        now_ms = self._given.clock.wall_ms()
        # One of a clock that is far ahead would keep everybody from making another.
        written = [each.written_ms for each in there.values() if each.written_ms <= now_ms + 60_000]
        return max(written, default=0)

    def send(self, made: Checkpoint, files: Path) -> int:
        """Send a checkpoint whose files lie in this folder; how many bytes were new."""
        folder = self._store.folder(made.cluster, made.changelog, made.partition)
        there, sent = self._believed(folder), 0
        newest = max(there.values(), key=lambda each: each.offset, default=None)
        known = set() if newest is None else {each.sha256 for each in newest.files}
        for file in made.files:
            if file.sha256 not in known:
                folder.put_file(file.sha256, files / file.name)
                sent += file.size
                self._given.failpoints.reach("C1")
        index = encode_index(made, self._given.keys)
        name = f"{made.offset:020d}-{index.split()[3][:16].decode()}{INDEX}"
        self._given.failpoints.reach("C2")
        folder.put_index(name, index)
        _drop(folder, {**there, name: made}, self._given.clock.wall_ms())
        return sent

    def _believed(self, folder: CheckpointFolder) -> dict[str, Checkpoint]:
        return believed(folder.indexes(), self._given.keys, lambda _name, _why: None)


def _drop(folder: CheckpointFolder, there: dict[str, Checkpoint], now_ms: float) -> None:
    """Remove checkpoints that newer ones have replaced, and files that belong to no checkpoint."""
    dropped = to_drop(there)
    kept = [each for name, each in there.items() if name not in dropped]
    needed = {file.sha256 for each in kept for file in each.files}
    freed = {file.sha256 for name in dropped for file in there[name].files} - needed
    freed |= set(unused_files(folder.modified_ms(), kept, now_ms))
    folder.remove(dropped, sorted(freed))
