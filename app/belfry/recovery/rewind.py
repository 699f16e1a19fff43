"""Evidence of a partition: its changelog, local copies of its state, the anchor, the input.

A recovery looks at all of it and decides (`recovery_plan.py`), then writes one transaction under
the partition's transactional id (`recovery_write.py`). Copies are opened for reading alone.

The changelog is folded into a store of its own in a temporary folder, as a take-over would fold it.
So a look takes as long as a take-over without local state, and disturbs nobody: it fences nobody,
commits nothing, and leaves no group behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from belfry.host import rocks
from belfry.kafka.changelog_reader import ChangelogReader
from belfry.kafka.changelog_trust import ChangelogTrust, NotTrusted
from belfry.kafka.log_bounds import LogBounds
from belfry.kafka.signature_marks import Mark
from belfry.recovery.copies import copies_in
from belfry.recovery.evidence import READ_RECORDS, Evidence
from belfry.recovery.identities import Identities
from belfry.recovery.partition_evidence import (
    CannotRecover,
    PartitionEvidence,
    ahead_of_log,
    hole_in_changelog,
)
from belfry.store.identity import Contradiction
from belfry.store.replay import HoleInChangelog, Replay
from belfry.store.schedules import ScheduleStore


class Looker:
    """Gathers the evidence about partitions.

    `data_dirs` are those of stopped workers, in which copies are looked for. Each look asks Kafka
    anew. Raises ConnectionError where brokers do not answer, and CannotRecover.
    """

    def __init__(
        self,
        properties: dict[str, Any],
        topics: tuple[str, str],
        identities: Identities,
        data_dirs: Iterable[Path],
        trust: ChangelogTrust | None = None,
    ) -> None:
        """`topics` are the changelog and the input, by name; `trust` judges their rows."""
        self._trust = trust
        self._properties = properties
        self._topics = topics
        self._identities = identities
        self._data_dirs = list(data_dirs)

    @contextmanager
    def look(self, partition: int) -> Iterator[PartitionEvidence]:
        """All evidence of a partition; reads of its changelog live as long."""
        changelog, schedules = self._topics
        with ExitStack() as undo:
            folder = undo.enter_context(TemporaryDirectory(prefix="belfry-recover-"))
            rows = undo.enter_context(closing(rocks.RocksMap(Path(folder) / "log")))
            log = undo.enter_context(
                closing(ChangelogReader(self._properties, changelog, partition))
            )
            source = LogBounds(self._properties, schedules, partition)
            evidence = Evidence(partition, self._identities.now(), self._identities.anchors, source)
            replay = Replay(ScheduleStore(rows))
            found = self._read(partition, log, evidence, replay, rows)
            found.low, found.end = source.ends()[0], source.log_end()
            found.copies = [
                copy for data_dir in self._data_dirs for copy in copies_in(data_dir, partition)
            ]
            found.problem = found.problem or _problem(found, evidence, replay)
            yield found

    def _read(
        self,
        partition: int,
        log: ChangelogReader,
        evidence: Evidence,
        replay: Replay,
        rows: rocks.RocksMap,
    ) -> PartitionEvidence:
        """Fold the changelog; a hole in it is a problem that is told, and no error here."""
        low, stable = log.ends()
        end = log.log_end()
        log.seek(low)
        hole = None
        if self._trust is not None:
            mark = _check(self._trust, partition)
            log.sieve = self._trust.sieve(partition, evidence.here.changelog, mark)
        try:
            for messages in log.read_until(stable, READ_RECORDS):
                replay.apply(*log.changes(messages), 0)
            replay.check()
        except HoleInChangelog as error:
            hole = hole_in_changelog(str(error))
        return PartitionEvidence(
            partition,
            evidence.here,
            evidence.anchor(),
            ScheduleStore(rows),
            replay.manifest,
            replay.identity,
            end,
            stable < end,
            0,
            0,
            problem=hole,
        )


def _check(trust: ChangelogTrust, partition: int) -> Mark:
    """The mark of the partition's signatures; CannotRecover where rows could not be judged or
    signed.
    """
    try:
        mark = trust.check(partition)
    except NotTrusted as error:
        raise CannotRecover(str(error)) from error
    if mark.keys and not trust.signs:
        raise CannotRecover(
            "workers sign their rows, and a recovery has to: give this command the same"
            " BELFRY_CHANGELOG and BELFRY_HTTP_WORKER_SECRET as they have"
        )
    return mark


def _problem(found: PartitionEvidence, evidence: Evidence, replay: Replay) -> Contradiction | None:
    """The problem at which a worker on these data directories would stop."""
    ahead = ahead_of_log(found)
    if ahead is not None:
        return ahead
    try:
        evidence.check(replay)
    except Contradiction as error:
        return error
    return None
