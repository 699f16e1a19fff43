"""One run of `belfry recover`: partition after partition, what is found, and what is done.

With --apply a partition goes through these steps, of which the write is one transaction:

    look ─► fence with a new epoch ─► look again ─► plan ─► write state and manifest ─► anchor

The fence stands before the second look, so that nobody changes the evidence under the plan. A
former owner that still runs can no longer commit. A kill before the write changes nothing; a kill
after it leaves an old anchor, which the next run mends.

`belfry.recovery` decides what a finding is and what may be done. This module has the order of the
steps, and their messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belfry.kafka.anchors import anchors_of
from belfry.kafka.changelog_trust import ChangelogTrust
from belfry.kafka.signature_marks import marks_of
from belfry.recovery.identities import Identities
from belfry.recovery.partition_evidence import CannotRecover, PartitionEvidence
from belfry.recovery.recovery_plan import Choices, RecoveryPlan, anchor_behind, plan
from belfry.recovery.recovery_write import RecoveryWriter
from belfry.recovery.rewind import Looker

if TYPE_CHECKING:
    from belfry.cli.session import Session
    from belfry.store.identity import Identity

# A line of the report, for programs and for people.
Told = tuple[dict[str, Any], str]


class PartitionRecovery:
    """Goes through the partitions; `left` counts those that still have to be recovered.

    It reads Kafka and the data directories in the main thread, one partition after the other.
    Raises `CannotRecover` where topics are missing.
    """

    def __init__(
        self, session: Session, choices: Choices, data_dirs: list[Path], apply: bool
    ) -> None:
        self._settings = settings = session.settings
        self._choices = choices
        self._counted = session.printer.counted
        self._apply = apply
        self.left = 0
        cluster, admin = session.admin()
        known = cluster.reach(admin)
        names = settings.topic("changelog"), settings.topic("schedules")
        missing = [name for name in names if name not in known.topics]
        if missing:
            raise CannotRecover(
                f"{', '.join(missing)} does not exist: create it with `belfry topics create`, and"
                " look again."
            )
        self._homes = len(known.topics[names[0]].partitions)
        self._anchors = anchors_of(settings)
        identities = Identities(admin, str(known.cluster_id), names, self._anchors)
        properties = settings.kafka_properties()
        trust = ChangelogTrust(settings, marks_of(settings))
        self._looker: Looker = Looker(properties, names, identities, data_dirs, trust)

    def run(self, wanted: list[int] | None) -> Iterator[Told]:
        """Of each partition the finding, the plan, and what was done.

        `wanted` are numbers of partitions, None for all. Each item is a line for programs and for
        people, and is printed as it comes. A partition that cannot be recovered is told as refused,
        and the others go on. Raises `CannotRecover` for a number that no partition has.
        """
        for partition in self._counted(wanted or range(self._homes), "partitions looked at"):
            if partition >= self._homes:
                raise CannotRecover(
                    f"Partition {partition} keeps no state: there are {self._homes}, from 0 on."
                )
            with self._looker.look(partition) as found:
                if found.problem is None:
                    yield _line(partition, "ok", "nothing contradicts; left as it is")
                    yield from self._mend_anchor(found)
                    continue
                # It counts as left over until a write has succeeded.
                self.left += 1
                yield _line(partition, "stopped", f"{found.problem.code}: {found.problem.what}")
                try:
                    yield from self._do(partition) if self._apply else self._say(found)
                except CannotRecover as error:
                    yield _line(partition, "refused", str(error))

    def _say(self, found: PartitionEvidence) -> Iterator[Told]:
        """The plan, line by line; raises `CannotRecover` if no choice fits the finding."""
        planned = plan(found, self._choices)
        for line in planned.lines:
            yield _line(found.partition, "would do", line)

    def _do(self, partition: int) -> Iterator[Told]:
        """Fence, look again while nobody can change the evidence, and write.

        Making the writer fences (`belfry.recovery.recovery_write`). It aborts an open transaction
        of an earlier run or a dead owner. Raises `CannotRecover` if a stranger's transaction is
        open, or if no choice fits the finding.
        """
        with closing(RecoveryWriter(self._settings, partition)) as writer, ExitStack() as undo:
            found = undo.enter_context(self._looker.look(partition))
            if found.held_back:
                writer.abort_what_is_torn()
                found = undo.enter_context(self._looker.look(partition))
            if found.problem is None:
                self.left -= 1
                yield _line(partition, "ok", "nothing contradicts any more; left as it is")
                yield from self._mend_anchor(found)
                return
            if found.held_back:
                raise CannotRecover(
                    "somebody else's transaction is open in the changelog: `belfry doctor` names"
                    " it; nothing was changed"
                )
            planned: RecoveryPlan = plan(found, self._choices)
            manifest = writer.write(found, planned)
            # Behind the write: an anchor of a state that was never written would be the worse
            # contradiction.
            failed = self._keep_anchor(partition, planned.identity)
            self.left -= not failed
            for line in planned.lines:
                yield _line(partition, "done", line)
            done = (
                f"transaction {manifest.txn_seq}: {manifest.pending} schedules wait, requests from"
                f" offset {manifest.position} on"
            )
            yield _line(partition, "done", done)
            if failed:
                yield _line(partition, "failed", failed)

    def _mend_anchor(self, found: PartitionEvidence) -> Iterator[Told]:
        """Write the anchor of a partition that is well, where it tells of an earlier state."""
        identity = anchor_behind(found)
        if identity is None:
            return
        was = "none is there"
        if found.anchor is not None:
            was = f"it is of generation {found.anchor.generation} in {found.anchor.changelog}"
        told = f"write the anchor: {was}, the changelog is of generation {identity.generation}"
        if not self._apply:
            yield _line(found.partition, "would do", told)
        elif failed := self._keep_anchor(found.partition, identity):
            self.left += 1
            yield _line(found.partition, "failed", failed)
        else:
            yield _line(found.partition, "done", told)

    def _keep_anchor(self, partition: int, identity: Identity) -> str:
        """Write an anchor; the reason of a failure in words, or an empty text."""
        try:
            newer = self._anchors.write({partition: identity})
        except ConnectionError as error:
            return (
                f"the changelog is right, and its anchor was not written: {error}. The"
                " partition's next owner writes it too; for it now, repeat `belfry recover --apply`"
            )
        if newer:
            return (
                f"the anchor is of generation {newer[partition].generation}, which is later:"
                " somebody else has recovered the partition meanwhile; look again"
            )
        return ""


def _line(partition: int, what: str, told: str) -> Told:
    """A line of the report, for programs and for people."""
    text = f"partition {partition:<4} {what:9} {told}"
    return {"partition": partition, "what": what, "detail": told}, text
