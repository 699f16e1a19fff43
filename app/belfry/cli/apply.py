"""``belfry apply`` and ``diff``: policies and schedules as files declare them.

Both begin alike, and nothing is written before all of it has been looked at:

    files ─► declaration ─► existing objects ─► differences ─► checks of the writes
                                                               │
                                          diff: a table ◄──────┴──────► apply: writes, one by one

    $ belfry apply belfry.yaml
    created    payments
    updated    payments/report
    set demo: 2 changed, 3 unchanged, 0 failed

A mistake in the files is told with its file and line, all mistakes at once, and ends the command
before the first write. A write that is refused is told, and the others are tried all the same. To
repeat `apply` is safe: an object that is already as declared is not written again.

What differs, and in which order it is applied, is decided in `belfry.declared`. How it is read and
written is told in `belfry.cli.applied`, and how it is shown in `belfry.cli.differences`. Here are
the options, the comparison and the questions.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from getpass import getuser
from pathlib import Path
from socket import gethostname
from time import sleep, time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from belfry.cli.declared_files import days_named, texts
from belfry.cli.differences import MARKS, record_of, result, staying, table
from belfry.cli.failures import CommandError, Exit, WrongUse, confirmed
from belfry.cli.session import Session, with_session
from belfry.cli.shown import tame

if TYPE_CHECKING:
    from belfry.cli.applied import SessionWays
    from belfry.declared.applying import Done
    from belfry.declared.declaration import Declaration
    from belfry.declared.difference import Altered, Found

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        help="YAML, or folders of it (-: standard input); together they are one set.",
        show_default=False,
    ),
]
Prune = Annotated[
    bool,
    typer.Option(
        "--prune", help="Remove objects that the set has made and the files no longer declare."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Remove without a question.")]
ShareTopic = Annotated[
    bool, typer.Option("--share-topic", help="Allow the output_topic of another tenant's policy.")
]


def register(app: typer.Typer) -> None:
    """Add ``apply`` and ``diff`` to the program."""
    app.command("apply")(with_session(apply))
    app.command("diff")(with_session(diff))


def apply(
    session: Session,
    files: Files,
    *,
    prune: Prune = False,
    yes: Yes = False,
    share_topic: ShareTopic = False,
) -> int:
    """Make policies, calendars and schedules as files declare them; equal ones are not written.

    Says of each object what it did. Exit code 1 where one failed; the others are applied all the
    same. `belfry diff` shows the changes beforehand. docs/apply.md has the format. Example:

    belfry apply belfry.yaml
    """
    from belfry.cli.applied import SessionWays
    from belfry.declared.applying import Applying
    from belfry.declared.difference import removals

    ways = SessionWays(session, share_topic=share_topic)
    declared, found, altered = _compared(ways, files)
    removed = removals(declared, found)
    _warn(session, declared)
    if removed and not prune:
        session.printer.note(staying(removed))
        removed = []
    elif removed and not yes:
        _confirm(declared.name, removed)
    applying = Applying(declared, found, ways, f"{getuser()}@{gethostname()}", sleep)
    done: list[Done] = []

    def told() -> Iterator[tuple[dict[str, Any], str]]:
        """What becomes of each object, as soon as it is done; people are not told what stays as it
        is.
        """
        for each in applying.run(altered, removed):
            done.append(each)
            if each.altered.changes or not session.printer.for_people:
                yield result(each)

    session.printer.many(told())
    # A removal or a write that was refused is counted once, and shown with its reason above.
    failed = sum(each.problem is not None for each in done)
    changed = sum(each.altered.changes for each in done) - failed
    session.printer.note(
        f"set {declared.name}: {changed} changed, {len(done) - changed - failed} unchanged,"
        f" {failed} failed"
    )
    return Exit.ERROR if failed else Exit.OK


def diff(session: Session, files: Files, *, prune: Prune = False) -> int:
    """Show what `belfry apply` would change; nothing is written.

    Exit code 0 if nothing differs, 4 if something does. Example:

    belfry diff belfry.yaml
    """
    from belfry.cli.applied import SessionWays
    from belfry.declared.difference import removals

    declared, found, altered = _compared(SessionWays(session), files)
    removed = removals(declared, found)
    if removed and not prune:
        session.printer.note(staying(removed))
        removed = []
    changes = [each for each in [*altered, *removed] if each.changes]
    if session.printer.for_people:
        table(changes)
    else:
        session.printer.many((record_of(each), "") for each in changes)
    # People read the counts of plus, tilde and minus on stderr, beside the table on stdout.
    counts = {mark: sum(MARKS[each.alteration] == mark for each in changes) for mark in "+~-"}
    session.printer.note(
        f"set {declared.name}: {counts['+']} to create, {counts['~']} to update,"
        f" {counts['-']} to remove, {len(altered) + len(removed) - len(changes)} unchanged"
    )
    return Exit.CONFLICT if changes else Exit.OK


def _compared(ways: SessionWays, files: Sequence[Path]) -> tuple[Declaration, Found, list[Altered]]:
    """Declared objects, existing objects and their differences; `WrongUse` for files with mistakes.

    Schedules that would be written are checked against the clock of this machine, as a worker will
    check them: an instant too far ahead is told here, and not after half of the set is applied.
    """
    from belfry.declared.declaration import declaration
    from belfry.declared.difference import alterations
    from belfry.declared.yaml_lines import BadDeclaration, Complaints

    try:
        declared = declaration(list(texts(files)), days_named)
        found = ways.found(declared)
        altered = alterations(declared, found)
        complaints = Complaints()
        # Only planned writes are checked: a schedule that is as declared may be due in the past by
        # now.
        for each in altered:
            if each.changes and each.schedule is not None:
                each.schedule.check(int(time() * 1000), complaints)
        complaints.check()
    except BadDeclaration as error:
        lines = str(error).splitlines()
        for line in lines:
            print(tame(line), file=sys.stderr)
        count = f"{len(lines)} things are" if len(lines) > 1 else "one thing is"
        raise WrongUse(f"{count} wrong with what is declared; nothing was changed.") from None
    return declared, found, altered


def _warn(session: Session, declared: Declaration) -> None:
    """Say which targets hold credentials that everybody who reads the topics can read."""
    from belfry.schedules.header_secrets import literal_credentials, literal_warning

    pairs = {
        each.policy.tenant: [pair for target in each.policy.http_targets for pair in target.headers]
        for each in declared.policies.values()
    }
    for (tenant, schedule_id), schedule in declared.schedules.items():
        pairs[f"{tenant}/{schedule_id}"] = [
            (header["name"], header["value"])
            for target in schedule.request["http_targets"]
            for header in target["headers"]
        ]
    for name, found in pairs.items():
        warning = literal_warning(literal_credentials(found))
        if warning is not None:
            session.printer.note(f"Warning: {name}: {warning}.")


def _confirm(name: str, removed: Sequence[Altered]) -> None:
    """Ask, with names and the count, whether to remove objects; `WrongUse` without a terminal."""
    counts = Counter(each.name.partition(" ")[0] for each in removed)
    named = " and ".join(_counted(count, noun) for noun, count in counts.items())
    what = f"{named} that set {name} has made"
    unasked = f"--prune would remove {what}: say --yes where nobody can be asked."
    for each in removed:
        print(tame(f"- {each.name}"), file=sys.stderr)
    if not confirmed(f"Remove {what}?", unasked):
        raise CommandError("Nothing was changed.")


def _counted(count: int, noun: str) -> str:
    """A number with its noun: ``1 policy``, ``3 schedules``."""
    several = "policies" if noun == "policy" else f"{noun}s"
    return f"{count} {noun if count == 1 else several}"
