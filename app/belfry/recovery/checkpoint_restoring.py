"""Restoring a partition's store from a checkpoint, where much of the changelog would be read else.

    local state is old, or there is none
      └─ other workers' indexes ─► those that may be used, newest first ─┐
         the store's indexes    ─► those that may be used, newest first ─┤
                                     files, by their digests ─► opened, used
                                     damaged, missing, too slow: the next one
                                     none left: the changelog, as ever

Other workers come first: theirs is as new, and no store has to be asked.

A checkpoint becomes local state and nothing more.  Records read behind it are checked as ever:
numbers of transactions, how many schedules wait.  Where that finds it wrong, the changelog is read
from its beginning, and no checkpoint that there was by then is used again by this process.

A store of checkpoints that is away or never answers costs some seconds, and no promise.  Nobody is
asked where local state is near the changelog's end, so a usual take-over knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from belfry.host import rocks
from belfry.host.errors import named
from belfry.host.object_store import within
from belfry.recovery.checkpoint_fetching import Bring, fetched, try_out
from belfry.recovery.checkpoint_parts import CheckpointDependencies
from belfry.recovery.checkpoint_peers import PeerCheckpoints
from belfry.recovery.checkpoint_store import CheckpointStore, believed
from belfry.recovery.stamp import STORE_FORMAT, Stamp
from belfry.store.checkpoint import Checkpoint, CheckpointFile, IndexKeys
from belfry.store.checkpoint_choice import Sought, to_try, worth_looking
from belfry.store.fetch_budget import FetchBudget, NotWanted, Stops
from belfry.store.schedules import ScheduleStore

# Seconds for the indexes, and for a file: so many, and one for each MB.
INDEXES_S: Final = 15.0
FILE_S: Final = 30.0
BYTES_PER_S: Final = 1_000_000

log = structlog.get_logger(__name__)


class _Candidate(NamedTuple):
    """A checkpoint that may be used: its name there, from where, and how its files are had.

    `begin` is called before the first of them, `done` with bytes that are here.
    """

    name: str
    found: Checkpoint
    source: str
    bring: Bring
    begin: Callable[[], object]
    done: Callable[[int], object]


class CheckpointRestorer:
    """Restores partitions of a worker; used by their threads, each for its own partition."""

    def __init__(self, given: CheckpointDependencies) -> None:
        self._given = given
        # Partitions whose state was found wrong, and when: checkpoints written before are not used.
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
        stops: Stops | None = None,
    ) -> Path | None:
        """A store that is to take the place of these rows, or None where there is no better one.

        They lie at `path`. A fetched checkpoint is of this stamp, and younger than `stale_ms`.
        `ends` gives the first offset of the changelog, and the one behind its last. Nobody waits
        for a standby, until `stops` says that it is to stop: then nothing is fetched any more.
        """
        sought, to = self._sought(stamp, stale_ms, rows, ends()), path.with_name(f"{path.name}.new")
        if worth_looking(sought):
            for candidate in self._candidates(sought, stops):
                if self._usable(candidate, to=to, own=path):
                    self._given.metrics.restored(candidate.source)
                    return to
                if stops is not None and stops():
                    break
            rocks.wipe(to)
            log.info(
                "no checkpoint is used", partition=sought.partition, local_offset=sought.offset,
                to_read=sought.unread,
            )  # fmt: skip
        self._given.metrics.restored("local" if sought.offset else "changelog")
        return None

    def _usable(self, candidate: _Candidate, *, to: Path, own: Path) -> bool:
        """Fetch a checkpoint and try it out; False where it differs from its index."""
        clock, found = self._given.clock, candidate.found
        began_ms = clock.monotonic_ms()
        try:
            candidate.begin()
            size = fetched(candidate.bring, found, to, own, candidate.done)
            try_out(to, found)
        except NotWanted as error:
            log.info("a checkpoint is not fetched", partition=found.partition, reason=str(error))
            return False
        except Exception as error:  # noqa: BLE001  # whatever a file system or RocksDB raises
            self._refused(found.partition, candidate.name, named(error))
            return False
        self._restored_ms[found.partition] = clock.wall_ms()
        self._given.metrics.fetched(candidate.source, size)
        log.info(
            "state is restored from a checkpoint", partition=found.partition,
            source=candidate.source, checkpoint=candidate.name, offset=found.offset,
            transaction=found.transaction, pending=found.pending, bytes=found.size,
            fetched_bytes=size, seconds=(clock.monotonic_ms() - began_ms) / 1000,
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

    def _candidates(self, sought: Sought, stops: Stops | None) -> Iterator[_Candidate]:
        """Checkpoints that may be used, the one to be tried first in front.

        The store is not asked before those of other workers have failed.
        """
        if self._given.peers is not None:
            clock = self._given.clock
            budget = FetchBudget(sought.unread, clock.monotonic_ms(), stops)
            yield from self._of_peers(self._given.peers, sought, budget)
        if self._given.store is not None:
            yield from self._stored(self._given.store, sought, stops)

    def _of_peers(
        self, peers: PeerCheckpoints, sought: Sought, budget: FetchBudget
    ) -> Iterator[_Candidate]:
        indexes = peers.indexes(sought.partition, budget)
        for url, found in self._to_try(indexes, peers.keys, sought):
            bring = partial(peers.get_file, (url, sought.partition), budget=budget)
            begin = partial(budget.begin, found.size, self._given.clock.monotonic_ms())
            yield _Candidate(url, found, "peer", bring, begin, budget.done)

    def _stored(
        self, store: CheckpointStore, sought: Sought, stops: Stops | None
    ) -> Iterator[_Candidate]:
        """Those of the store; none where it is away."""
        folder = store.folder(sought.cluster, sought.changelog, sought.partition)

        def bring(file: CheckpointFile, to: Path) -> None:
            if stops is not None and stops():
                raise NotWanted
            seconds = FILE_S + file.size / BYTES_PER_S
            within(seconds, lambda: folder.get_file(file.sha256, to))

        try:
            indexes = within(INDEXES_S, folder.indexes)
        except Exception as error:  # noqa: BLE001  # whatever a file system raises
            log.warning(
                "checkpoints cannot be looked for", partition=sought.partition,
                reason=named(error), to_do="see whether the store of checkpoints can be read",
            )  # fmt: skip
            return
        for name, found in self._to_try(indexes, self._given.keys, sought):
            yield _Candidate(name, found, "checkpoint", bring, lambda: None, lambda _size: None)

    def _to_try(
        self, indexes: dict[str, bytes], keys: IndexKeys, sought: Sought
    ) -> list[tuple[str, Checkpoint]]:
        found = believed(indexes, keys, partial(self._refused, sought.partition))
        return [(name, found[name]) for name in to_try(found, sought)]

    def _refused(self, partition: int, name: str, why: str) -> None:
        self._given.metrics.refused()
        log.warning("a checkpoint is not used", partition=partition, checkpoint=name, reason=why)
