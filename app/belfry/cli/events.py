"""``belfry events tail``: a tenant's events as they fire."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from belfry.cli.failures import CommandError
from belfry.cli.help import Program
from belfry.cli.options import seconds
from belfry.cli.session import Session, with_session
from belfry.cli.shown import event_json, event_text

if TYPE_CHECKING:
    from belfry.client import Events, FiredRecord

STEP_S = 0.5

TailTenant = Annotated[
    str, typer.Argument(metavar="TENANT", help="Whose events.", show_default=False)
]
Max = Annotated[
    int | None,
    typer.Option("--max", "-n", min=1, metavar="N", help="End after so many events."),
]
FromBeginning = Annotated[
    bool,
    typer.Option(
        "--from-beginning", help="All events that the topic holds, not only those from now on."
    ),
]
ConsumerGroup = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="NAME",
        help="Read as this consumer group: go on where it left off, and remember it.",
    ),
]
TailTimeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        parser=seconds,
        metavar="SECONDS",
        help="End after so long, with exit code 1 if fewer than --max came.  [default: never]",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    group = Program()
    # Typer makes a lone command the group itself, unless there is a callback.
    group.callback()(_events)
    group.command("tail")(with_session(tail))
    app.add_typer(group, name="events", help="Watch events as they fire.")


def _events() -> None:
    """Watch events as they fire."""


def tail(
    session: Session,
    tenant: TailTenant,
    *,
    max_: Max = None,
    from_beginning: FromBeginning = False,
    group: ConsumerGroup = None,
    timeout: TailTimeout = None,
) -> None:
    """Show a tenant's events as they fire.

    Only committed records are shown; Ctrl-C ends it. Each line says when it was due, which
    schedule and occurrence it is (-1: triggered by hand), and its payload.
    """
    client = session.client()
    with client, client.events(tenant, from_beginning=from_beginning, group=group) as events:
        if not events.exists:
            session.printer.note(f"{events.topic} does not exist yet: waiting for a first event.")
        came = 0

        def results() -> Iterator[tuple[dict[str, object], str]]:
            nonlocal came
            for event in _until(events, max_, timeout):
                came += 1
                yield event_json(event), event_text(event)

        try:
            session.printer.many(results())
        except KeyboardInterrupt:
            return
    if max_ is not None and came < max_:
        raise CommandError(
            f"{came} of {max_} events came on {events.topic} within {timeout:g} s. Check that a"
            " worker runs (`belfry doctor`), or wait longer (--timeout)."
        )


def _until(events: Events, most: int | None, timeout_s: float | None) -> Iterator[FiredRecord]:
    deadline = None if timeout_s is None else monotonic() + timeout_s
    for number in count():
        if number == most:
            return
        found = None
        while found is None:
            left = STEP_S if deadline is None else deadline - monotonic()
            if left <= 0:
                return
            found = events.next_within(min(STEP_S, left))
        yield found
