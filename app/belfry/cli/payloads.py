"""``belfry payloads sweep``: stored payloads without a reference to them.

Workers store large payloads elsewhere and remove none, since no worker knows the last event that
claims one. The sweep reads all topics and knows. Without ``--apply`` it only counts:

    belfry payloads sweep                         counts unclaimed payloads
    belfry payloads sweep --apply                 puts them aside; a later sweep removes them

`belfry.cli.payload_sweep` has the order of its steps with the reasons, and
`belfry.cli.payload_claims` has the topics that it reads. Run it with the settings of the workers,
once a day for instance.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from belfry.cli.failures import CommandError, Exit, WrongUse
from belfry.cli.help import Program
from belfry.cli.options import seconds
from belfry.cli.payload_readable import readable
from belfry.cli.session import Session, with_session

if TYPE_CHECKING:
    from belfry.cli.payload_sweep import PayloadSweep, SweepResult
    from belfry.outputs.stored_payloads import SweptStore

# Seconds. Requests that carry a claim may be under way for so long: in an outbox, in a program that
# stores first and schedules later.
LEAST_S = 24 * 3600.0
# Seconds. A worker relies on its stored object for 60, and then its transaction begins.
STORED_S = 110.0

OlderThan = Annotated[
    float,
    typer.Option(
        "--older-than",
        parser=seconds,
        metavar="DURATION",
        help="Only objects that were stored so long ago; 24h at least.",
    ),
]
Also = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="Another topic whose records claim payloads: where events of a tenant went before its"
        " policy changed, a copy of yours; repeatable.",
    ),
]
Backups = Annotated[
    list[Path] | None,
    typer.Option(
        "--backup",
        metavar="FILE",
        help="A backup or export that may be restored: keep objects that it claims; repeatable.",
    ),
]
PerSecond = Annotated[
    int,
    typer.Option("--per-second", min=1, max=10_000, metavar="N", help="Objects a second."),
]
Apply = Annotated[bool, typer.Option("--apply", help="Do it; without this, only count.")]


def register(app: typer.Typer) -> None:
    """Add ``payloads`` to the program."""
    group = Program(help="Payloads: stored ones without a claim, and those that can be read.")
    group.command("sweep")(with_session(sweep))
    group.command("readable")(with_session(readable))
    app.add_typer(group, name="payloads")


def sweep(
    session: Session,
    *,
    older_than: OlderThan = "7d",  # type: ignore[assignment]  # typer parses it
    topic: Also = None,
    backup: Backups = None,
    per_second: PerSecond = 100,
    apply: Apply = False,
) -> int:
    """Count stored payloads without a claim; put them aside with --apply.

    Reads BELFRY_PAYLOAD_STORE, and everything that may claim an object there: pending schedules,
    requests on their way, events for as long as their topics keep them. Objects put aside lie in
    the folder .swept of the store; a sweep a day later or more puts back those that are claimed by
    then, and removes the rest. Example:

    belfry payloads sweep --older-than 30d --apply
    """
    from belfry.cli.payload_claims import ClaimReader
    from belfry.cli.payload_sweep import PayloadSweep, SweepTerms
    from belfry.cli.verified_topics import world_of
    from belfry.outputs.stored_payloads import StoreAway

    if older_than < LEAST_S:
        raise WrongUse(
            f"--older-than is {older_than:g} s, and has to be 24h or more: a request that claims a"
            " payload may be under way for so long, and nothing shows it."
        )
    world_of(session)
    now_ms = time() * 1000
    followed_s = STORED_S + session.settings.transaction_timeout_ms / 1000
    terms = SweepTerms(now_ms, now_ms - older_than * 1000, per_second, followed_s)
    run = PayloadSweep(_store(session), terms, session.printer.note)
    try:
        if run.list():
            _keep(run, backup or [])
            claims = ClaimReader(session, topic or [], run.objects.claim)
            try:
                run.read(claims)
                if apply:
                    run.act(claims)
            finally:
                claims.close()
    except StoreAway as error:
        raise CommandError(
            f"BELFRY_PAYLOAD_STORE does not do what it is asked: {error}. What was put aside is"
            " aside, and the next sweep goes on. A sweep lists, reads, writes and deletes there."
        ) from None
    session.printer.one(shown(run.found, apply=apply), _text(run.found, apply=apply))
    return Exit.OK


def _store(session: Session) -> SweptStore:
    """The store of the settings; raises `CommandError` if they name no store."""
    from belfry.host.object_store import NoStore
    from belfry.outputs.payload_store import payload_files
    from belfry.outputs.stored_payloads import SweptStore
    from belfry.settings import Settings

    settings = session.settings_of(Settings, {}, all_names=False)
    try:
        files, path = payload_files(settings)
    except NoStore as error:
        raise CommandError(str(error)) from None
    if files is None:
        raise WrongUse(
            "No store of payloads is set: give BELFRY_PAYLOAD_STORE and"
            " BELFRY_PAYLOAD_STORE_OPTIONS as the workers have them."
        )
    return SweptStore(files, path)


def _keep(run: PayloadSweep, backups: list[Path]) -> None:
    """Keep objects that files of JSON lines claim."""
    from belfry.wire.claim_check import claims_in

    for file in backups:
        try:
            with file.open("rb") as lines:
                for line in lines:
                    run.objects.claim(claims_in(line))
        except OSError as error:
            raise WrongUse(f"{file} cannot be read: {error.strerror}.") from None


def shown(found: SweepResult, *, apply: bool) -> dict[str, Any]:
    """A sweep for programs."""
    from belfry.cli.payload_list import PayloadSum

    told = {each.name: getattr(found, each.name) for each in fields(found)}
    sums = {name: each._asdict() for name, each in told.items() if isinstance(each, PayloadSum)}
    return {"applied": apply, **told, **sums}


def _text(found: SweepResult, *, apply: bool) -> str:
    """A sweep for people."""
    told = [
        f"{found.young:,} payloads are too young to be judged. Of {found.listed:,} others:",
        f"  {found.claimed.objects:,} are claimed ({found.claimed.bytes:,} bytes)",
        f"  {found.unclaimed.objects:,} are claimed by nothing ({found.unclaimed.bytes:,} bytes)",
        f"  {found.aside_claimed.objects:,} were put aside, and are claimed",
        f"  {found.aside_over.objects:,} were put aside a day ago, and are claimed by nothing",
    ]
    if not found.young + found.listed:
        told.append("Nothing lies there: is BELFRY_PAYLOAD_STORE the one of the workers?")
    elif apply:
        told.append(
            f"{found.put_aside:,} put aside, {found.put_back:,} put back, {found.removed:,} removed"
            + (f", {found.left:,} left since they were stored anew." if found.left else ".")
        )
    else:
        told.append("Nothing was changed: --apply puts aside, puts back and removes.")
    return "\n".join(told)
