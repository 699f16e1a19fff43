"""``belfry recover``: what to do about partitions whose evidence contradicts itself.

Looks and says what it would do; with ``--apply`` it does it. docs/recovery.md has the decisions.

The evidence of a partition is its changelog, its local states, its anchor and its input.
`belfry.recovery` compares them and plans; this module goes through the partitions and tells. With
--apply a partition goes through these steps, of which the write is one transaction:

    look ─► fence with a new epoch ─► look again ─► plan ─► write state and manifest ─► anchor

The fence stands before the second look, so that nobody changes what the plan is made of. A former
owner that still runs can no longer commit. A kill before the write leaves all as it was; a kill
behind it leaves an old anchor, which the next run mends.

    12:00:00  partition 3: changelog_lost, so its owner has stopped; no worker fires it
    12:05:00  belfry recover                                says what a recovery would need
    12:06:00  belfry recover --from local --data-dir d      says what it would do; writes nothing
    12:07:00  the same with --apply                         fences, writes, keeps the anchor
    12:07:03  its owner, which looks again every three seconds, takes it over and fires

Data directories that are named are locked meanwhile, so that no worker starts in one. Partitions in
which nothing contradicts are left alone, and the exit code is 0 when none is left over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from belfry.cli.failures import CommandError, Exit, WrongUse
from belfry.cli.session import Session, with_session

if TYPE_CHECKING:
    from belfry.recovery.partition_evidence import PartitionEvidence
    from belfry.recovery.recovery_plan import Choices, RecoveryPlan
    from belfry.recovery.rewind import Looker
    from belfry.store.identity import Identity

# Partition, first and last offset, such as 3:100-250; both ends are given up.
_LOST: Final = re.compile(r"(\d+):(\d+)-(\d+)")
# A line of the report, for programs and for people.
Told = tuple[dict[str, Any], str]

Source = Annotated[
    Literal["local", "log", "nothing"] | None,
    typer.Option("--from", help="Where the state comes from.", show_default=False),
]
Backup = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Begin with nothing, for a backup to be restored into."),
]
DataDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        help="A stopped worker's data directory; may be repeated, the newest state counts.",
    ),
]
Partitions = Annotated[
    list[int] | None,
    typer.Option("--partition", metavar="N", help="Only this partition; may be repeated."),
]
Lost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PARTITION:FIRST-LAST",
        help="Give up requests that left the input before they were read; may be repeated.",
    ),
]
Input = Annotated[
    bool,
    typer.Option("--accept-input", help="Go on in an input that was made anew or cut off."),
]
Apply = Annotated[bool, typer.Option("--apply", help="Do it; without this, only say it.")]


def register(app: typer.Typer) -> None:
    """Add ``recover`` to the program."""
    app.command("recover")(with_session(recover))


def recover(
    session: Session,
    *,
    source: Source = None,
    backup: Backup = None,
    data_dir: DataDirs = None,
    partition: Partitions = None,
    accept_lost: Lost = None,
    accept_input: Input = False,
    apply: Apply = False,
) -> int:
    """Say why partitions stop, and recover them; changes nothing without --apply.

    Exit code 1 while something contradicts. Example:

    belfry recover --from local --data-dir .belfry/worker
    """
    from belfry.recovery.partition_evidence import CannotRecover
    from belfry.recovery.rewind import held

    if backup is not None and source not in (None, "nothing"):
        raise WrongUse("--backup begins with nothing: leave --from out.")
    choices = _choices(source, backup, accept_lost or [], accept_input)
    dirs = data_dir or []
    try:
        with held(dirs):
            recovery = _Recovery(session, choices, dirs, apply)
            session.printer.many(recovery.run(partition))
    except CannotRecover as error:
        raise CommandError(str(error)) from None
    return Exit.ERROR if recovery.left else Exit.OK


def _choices(
    source: str | None, backup: Path | None, lost: list[str], accept_input: bool
) -> Choices:
    """What somebody has chosen, as the plan takes it.

    Lost ranges are by partition, with first and last offset, both included. A backup is read and
    checked as a whole here; it is restored afterwards, by `belfry restore`. Raises `WrongUse`.
    """
    from belfry.recovery.recovery_plan import NOTHING, Choices

    ranges: dict[int, tuple[int, int]] = {}
    for each in lost:
        match = _LOST.fullmatch(each)
        if match is None:
            raise WrongUse(
                f"--accept-lost {each!r} is no range: give PARTITION:FIRST-LAST, such as 3:100-250."
            )
        number, first, last = map(int, match.groups())
        ranges[number] = first, last
    if backup is None:
        return Choices(source, ranges, accept_input)
    from belfry.client.backup import count

    try:
        with backup.open("rb") as lines:
            count(lines)
    except OSError as error:
        raise WrongUse(f"{backup} cannot be read: {error.strerror}.") from None
    return Choices(NOTHING, ranges, accept_input, str(backup))


class _Recovery:
    """Goes through the partitions; `left` counts those that still have to be recovered.

    It reads Kafka and the data directories in the main thread, one partition after the other.
    Raises `CannotRecover` where topics are missing.
    """

    def __init__(
        self, session: Session, choices: Choices, data_dirs: list[Path], apply: bool
    ) -> None:
        from belfry.kafka.anchors import anchors_of
        from belfry.kafka.changelog_trust import ChangelogTrust
        from belfry.kafka.signature_marks import marks_of
        from belfry.recovery.identities import Identities
        from belfry.recovery.partition_evidence import CannotRecover
        from belfry.recovery.rewind import Looker

        self._settings = settings = session.settings
        self._choices = choices
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
        """What is found of each partition, what would be done, and what was done.

        `wanted` are numbers of partitions, None for all. Each item is a line for programs and for
        people, and is printed as it comes. A partition that cannot be recovered is told as refused,
        and the others go on. Raises `CannotRecover` for a number that no partition has.
        """
        from belfry.recovery.partition_evidence import CannotRecover

        for partition in wanted or range(self._homes):
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
        """What would be done, line by line; raises `CannotRecover` where no choice fits what is
        found.
        """
        from belfry.recovery.recovery_plan import plan

        planned = plan(found, self._choices)
        for line in planned.lines:
            yield _line(found.partition, "would do", line)

    def _do(self, partition: int) -> Iterator[Told]:
        """Fence, look again at what nobody changes any more, and write.

        Making the writer fences (`belfry.recovery.recovery_write`). What an earlier run or a dead
        owner has left open is aborted. Raises `CannotRecover` where somebody else's transaction is
        open, or where no choice fits what is found.
        """
        from contextlib import ExitStack, closing

        from belfry.recovery.partition_evidence import CannotRecover
        from belfry.recovery.recovery_plan import plan
        from belfry.recovery.recovery_write import RecoveryWriter

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
        from belfry.recovery.recovery_plan import anchor_behind

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
        """Write an anchor; what went wrong, in words, and empty where it is written."""
        try:
            newer = self._anchors.write({partition: identity})
        except ConnectionError as error:
            return (
                f"the changelog is right, and its anchor was not written: {error}. Whoever owns the"
                " partition next writes it too; to have it now, repeat `belfry recover --apply`"
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
