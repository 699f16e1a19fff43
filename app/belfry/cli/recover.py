"""``belfry recover``: what to do about partitions whose evidence contradicts itself.

Looks and says what it would do; with ``--apply`` it does it. docs/recovery.md has the decisions.

The evidence of a partition is its changelog, its local states, its anchor and its input.
`belfry.recovery` compares them and plans, and `belfry.cli.recover_partitions` goes through the
partitions. This module has the choices of the operator. An example:

    12:00:00  partition 3: changelog_lost, so its owner has stopped; no worker fires it
    12:05:00  belfry recover                                says what a recovery would need
    12:06:00  belfry recover --from local --data-dir d      says what it would do; writes nothing
    12:07:00  the same with --apply                         fences, writes, keeps the anchor
    12:07:03  its owner, which looks again every three seconds, takes it over and fires

Data directories that are named are locked meanwhile, so that no worker starts in one. Partitions
without a contradiction are left alone, and the exit code is 0 when no other is left.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from belfry.cli import log_lines
from belfry.cli.failures import CommandError, Exit, WrongUse
from belfry.cli.session import Session, with_session

if TYPE_CHECKING:
    from belfry.recovery.recovery_plan import Choices

# Partition, first and last offset, such as 3:100-250; both ends are given up.
_LOST: Final = re.compile(r"(\d+):(\d+)-(\d+)")

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
    from belfry.cli.recover_partitions import PartitionRecovery
    from belfry.recovery.copies import held
    from belfry.recovery.partition_evidence import CannotRecover

    if backup is not None and source not in (None, "nothing"):
        raise WrongUse("--backup begins with nothing: leave --from out.")
    log_lines.to_stderr()
    choices = _choices(source, backup, accept_lost or [], accept_input)
    dirs = data_dir or []
    try:
        with held(dirs):
            recovery = PartitionRecovery(session, choices, dirs, apply)
            session.printer.many(recovery.run(partition))
    except CannotRecover as error:
        raise CommandError(str(error)) from None
    return Exit.ERROR if recovery.left else Exit.OK


def _choices(
    source: str | None, backup: Path | None, lost: list[str], accept_input: bool
) -> Choices:
    """The operator's choice, as the plan takes it.

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
