"""``belfry day-files sweep``: day files whose day is over, and that no schedule needs any more.

Workers write day files and read them, and remove none: a schedule that is paused may refer to one
for longer than its day, and only a look at all that waits tells. Without ``--apply`` it counts:

    belfry day-files sweep                what would be removed
    belfry day-files sweep --apply        removes it

Each name of a file is used once. So a file without a reference now will have none later, except a
file that was written this moment. That one is for a day far ahead, and only files whose day is over
are looked at.

Where a worker was killed amid writing, a file system may keep an unfinished file (`.part`), which
has no reference and is never completed. Such a file of the same age is removed as well, whatever
its day.

Exports and backups read payloads back from here (`whole`): a line without its payload would be a
loss that nobody sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from time import time
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from belfry.cli.failures import CommandError, Exit, WrongUse
from belfry.cli.help import Program
from belfry.cli.options import seconds
from belfry.cli.session import Session, with_session

if TYPE_CHECKING:
    from belfry.outputs.day_store import DayStore
    from belfry.store.layout.day_reference import DayFile

LEAST_S: Final = 24 * 3600.0
# Payloads that are asked for at once.
AT_ONCE: Final = 500

OlderThan = Annotated[
    float,
    typer.Option(
        "--older-than",
        parser=seconds,
        metavar="DURATION",
        help="Only files whose day has been over for so long, and unfinished ones that are so old;"
        " 24h at least.",
    ),
]
Apply = Annotated[bool, typer.Option("--apply", help="Do it; without this, only count.")]


class FileSweep(NamedTuple):
    """What a sweep has found: files by whether they may go, and the bytes of those that may.

    `unfinished` are files of workers that were killed while they wrote.
    """

    ahead: int
    kept: int
    over: int
    unfinished: int
    bytes: int
    removed: int


def register(app: typer.Typer) -> None:
    """Add ``day-files`` to the program."""
    group = Program(help="Payloads of what is due far ahead, which lie in files of a store.")
    group.command("sweep")(with_session(sweep))
    app.add_typer(group, name="day-files")


def sweep(
    session: Session,
    *,
    older_than: OlderThan = "7d",  # type: ignore[assignment]  # typer parses it
    apply: Apply = False,
) -> int:
    """Count day files whose day is over and that nothing waits for; remove them with --apply.

    Reads BELFRY_DAY_STORE and the changelog; needs no worker. Example:

    belfry day-files sweep --older-than 30d --apply
    """
    if older_than < LEAST_S:
        raise WrongUse(
            f"--older-than is {older_than:g} s, and has to be 24h or more: a schedule that fires"
            " late may read a file behind its day."
        )
    from belfry.host.errors import named
    from belfry.store.layout.day_reference import DAY_MS

    store = _store(session)
    before_ms = (time() - older_than) * 1000
    before = int(before_ms) // DAY_MS
    try:
        listed = list(store.all())
        past = [each for each in listed if each.file.day < before]
        waited = _referred(session) if past else set()
        over = [each for each in past if each.file not in waited]
        left = [each for each in store.unfinished() if (each.stored_ms or before_ms) < before_ms]
        for each in over if apply else ():
            store.remove(each.file)
        for one in left if apply else ():
            store.remove(one)
    except OSError as error:
        raise CommandError(
            f"BELFRY_DAY_STORE does not do what it is asked: {named(error)}. The next sweep goes"
            " on from there."
        ) from None
    found = FileSweep(
        len(listed) - len(past), len(past) - len(over), len(over), len(left),
        sum(each.size for each in over) + sum(one.size for one in left),
        len(over) + len(left) if apply else 0,
    )  # fmt: skip
    session.printer.one(found._asdict(), _text(found, apply=apply))
    return Exit.OK


def whole(session: Session, records: Iterable[bytes]) -> Iterator[bytes]:
    """Records with their payloads, also those that lie in day files; raises `CommandError`."""
    from belfry.host.errors import named
    from belfry.outputs.day_store import NotKept
    from belfry.store.layout.day_files import of_row, with_payload
    from belfry.store.layout.day_reference import decode_reference

    store: DayStore | None = None
    every = iter(records)
    while some := list(islice(every, AT_ONCE)):
        stand = {at: ref for at, each in enumerate(some) if (ref := of_row(each)) is not None}
        if stand:
            store = store or _store(session)
            try:
                found = store.payloads([decode_reference(each) for each in stand.values()])
            except (OSError, ValueError, NotKept) as error:
                raise CommandError(
                    "A payload that lies in a day file cannot be read, and nothing is left out in"
                    f" silence: {named(error)}. Are BELFRY_DAY_STORE and BELFRY_DAY_STORE_OPTIONS"
                    " those of the workers?"
                ) from None
            for at, payload in zip(stand, found, strict=True):
                some[at] = with_payload(some[at], payload)
        yield from some


def _referred(session: Session) -> set[DayFile]:
    """Files that something which waits refers to, by the changelog."""
    from belfry.cli.changelog import judges
    from belfry.client.export import Fold, folded

    topic, judge = session.settings.topic, judges(session)

    def fold_of(partition: int) -> Fold:
        return Fold(judge(partition), _stands_of)

    found: set[DayFile] = set()
    for _, fold in folded(session.cluster(), topic("changelog"), topic("client"), fold_of):
        for stands in fold.waiting.values():
            if stands:
                found.add(_file_of(stands))
        # Before the next partition is read, for two of them may not fit into memory.
        del fold
    return found


def _stands_of(row: bytes) -> bytes:
    """The reference in a row to a payload that lies elsewhere; empty if the row has its payload."""
    from belfry.store.layout.day_files import of_row

    return of_row(row) or b""


def _file_of(stands: bytes) -> DayFile:
    """The file of a reference; raises `CommandError` if this release cannot read the reference."""
    from belfry.store.layout.day_reference import decode_reference

    try:
        return decode_reference(stands).file
    except ValueError as error:
        raise CommandError(f"A row refers to a day file in a way of its own: {error}.") from None


def _store(session: Session) -> DayStore:
    """The store of the settings; raises `CommandError`, and `WrongUse` if they name no store."""
    from belfry.host.object_store import NoStore
    from belfry.outputs.day_store import day_store
    from belfry.settings import Settings

    try:
        store = day_store(session.settings_of(Settings, {}, all_names=False))
    except NoStore as error:
        raise CommandError(str(error)) from None
    if store is None:
        raise WrongUse(
            "No store of day files is set: give BELFRY_DAY_STORE and BELFRY_DAY_STORE_OPTIONS as"
            " the workers have them."
        )
    return store


def _text(found: FileSweep, *, apply: bool) -> str:
    """A sweep for people."""
    nothing = f"{found.over:,} are needed by nothing, {found.unfinished:,} were left unfinished"
    told = [
        f"{found.ahead:,} day files are of days that are not over for so long.",
        f"{found.kept:,} of other days hold payloads that something waits for.",
        f"{nothing} ({found.bytes:,} bytes).",
    ]
    told.append(f"{found.removed:,} removed." if apply else "Nothing was changed: see --apply.")
    return "\n".join(told)
