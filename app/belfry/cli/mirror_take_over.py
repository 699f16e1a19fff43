"""``belfry mirror take-over``, ``fence`` and ``lost``: the one side ends, and the other begins.

Losses are listed from the records of the source behind the marks, and never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from belfry.cli.failures import Exit
from belfry.cli.mirror_sides import SourceHosts, Told, both, line, now_ms, status_line, told
from belfry.cli.session import Session
from belfry.cli.shown import amount, partitions_text

if TYPE_CHECKING:
    from belfry.mirror.looking import LaneStatus
    from belfry.mirror.taking_over import Said

Apply = Annotated[bool, typer.Option("--apply", help="Do it; without this, only say it.")]
Abandoned = Annotated[
    bool,
    typer.Option(
        "--without-source",
        help="The source cannot be reached: it is not fenced, and what was not carried is left.",
    ),
]


def take_over(
    session: Session, *, source: SourceHosts = None, without_source: Abandoned = False,
    apply: Apply = False,
) -> int:  # fmt: skip
    """Make this cluster the active side; changes nothing without --apply.

    The source is fenced first, and the rest is carried, so nothing is lost. If it cannot be
    reached, --without-source takes over with the records that are here: stop its workers, for it
    may still fire. Repeat an interrupted take-over with the same command. Example:

    belfry mirror take-over --source kafka-a:9092 --apply
    """
    from belfry.mirror.growth import grown_together
    from belfry.mirror.looking import statuses
    from belfry.mirror.policies import carry_policies, policies_in
    from belfry.mirror.sides import opened, with_marks
    from belfry.mirror.taking_over import abandoned, planned

    with told():
        if without_source:
            theirs, mine = None, opened("target", session.settings)
        else:
            theirs, mine = both(session, source)
        if not apply:
            return _shown(session, list(statuses(theirs, mine)), alone=theirs is None)
        if theirs is None:
            session.printer.many(map(_done, abandoned(mine, now_ms)))
        else:
            policies = policies_in(theirs.settings), policies_in(mine.settings)
            theirs, mine = grown_together(theirs, with_marks(mine), now_ms())
            doing = planned(theirs, mine, lambda: carry_policies(*policies), now_ms)
            session.printer.many(map(_done, doing))
    return Exit.OK


def _shown(session: Session, found: list[LaneStatus], *, alone: bool) -> int:
    """Say how things stand, and whether --apply takes over; the exit code.

    With `alone` there is no source to carry anything from, so each partition has to be here.
    """
    at_ms = now_ms()
    session.printer.many(status_line(each, at_ms) for each in found)
    wrong = [each.partition for each in found if not each.stands]
    if alone and wrong:
        session.printer.note(
            "nothing was changed, and --apply would be refused: this side follows nobody in"
            f" {partitions_text(wrong)}"
        )
        return Exit.ERROR
    session.printer.note("nothing was changed: --apply takes over")
    return Exit.OK


def fence(session: Session, *, source: SourceHosts = None, apply: Apply = False) -> int:
    """Keep a source from firing that has come back after a take-over without it.

    Refused unless this side took over later than the source. Example:

    belfry mirror fence --source kafka-a:9092 --apply
    """
    from belfry.mirror.taking_over import fenced_late

    with told():
        theirs, mine = both(session, source, taken_over=True)
        session.printer.many(map(_done, fenced_late(theirs, mine, apply=apply)))
    return Exit.OK


def lost(session: Session, *, source: SourceHosts = None) -> int:
    """List records of the source that were not carried: requests, and fires that come once more.

    Before a take-over it lists the losses of one now. Exit code 4 if there is any. Example:

    belfry mirror lost --source kafka-a:9092 -o jsonl
    """
    from belfry.cli.mirror_losses import lines

    found = 0

    def listed() -> Iterator[Told]:
        nonlocal found
        theirs, mine = both(session, source, taken_over=True)
        for each in lines(theirs, mine):
            found += 1
            yield each

    with told():
        session.printer.many(listed())
    session.printer.note(amount(found, "line") if found else "nothing is lost")
    return Exit.CONFLICT if found else Exit.OK


def _done(said: Said) -> Told:
    return line(said[0], "done", said[1])
