"""``belfry events tail``: a tenant's events as they fire.

The command is an ordinary consumer of the tenant's output topic, with `read_committed`: it shows
what any reader of that topic sees. Without --group it remembers nothing, and begins with events
from now on.

    $ belfry events tail demo --max 1
    2026-12-01T09:00:00.000Z  hello #0  hello, belfry
    due instant               │     │   payload
                              │     occurrence, from 0 on
                              id of the schedule

It ends after --max events, after --timeout, or by Ctrl-C. Fewer events than --max within the
timeout are an error, so that a script notices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from belfry.cli.failures import CommandError
from belfry.cli.help import Program
from belfry.cli.options import seconds
from belfry.cli.results import event_json, event_text
from belfry.cli.session import Session, with_session

if TYPE_CHECKING:
    from belfry.client import Events, FiredRecord

# Longest wait for one event, so that the end of the time is noticed.
STEP_S = 0.5
# After so long without an event, the person may be waiting for one that has already fired.
QUIET_S = 3.0

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


Shared = Annotated[
    bool,
    typer.Option(
        "--shared", help="The tenant's policy shares an output: read its events from there."
    ),
]


def register(app: typer.Typer) -> None:
    """Add ``events`` with its command to the program."""
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
    shared: Shared = False,
) -> None:
    """Show a tenant's events as they fire.

    Only committed records are shown; Ctrl-C ends it. Each line says when it was due, which
    schedule and occurrence it is (-1: triggered by hand), and its payload.
    """
    client = session.client()
    start = {"from_beginning": from_beginning, "shared": shared}
    with client, client.events(tenant, group=group, **start) as events:
        existed = events.exists
        if not existed:
            session.printer.note(f"{events.topic} does not exist yet: waiting for a first event.")
        came = 0

        def quiet() -> None:
            """Say which events will come: one that fired a moment ago will not."""
            if existed and not from_beginning and group is None:
                session.printer.note(
                    f"Waiting for what fires on {events.topic} from now on; --from-beginning shows"
                    " what has fired."
                )

        def results() -> Iterator[tuple[dict[str, object], str]]:
            """Events as they come, counted for the check at the end."""
            nonlocal came
            for event in _until(events, max_, timeout, quiet):
                came += 1
                yield event_json(event), event_text(event)

        try:
            session.printer.many(results())
        # The usual end of the command: exit code 0, however many came.
        except KeyboardInterrupt:
            return
    if max_ is not None and came < max_:
        raise CommandError(
            f"{came} of {max_} events came on {events.topic} within {timeout:g} s. Check that a"
            " worker runs (`belfry doctor`), or wait longer (--timeout)."
        )


def _until(
    events: Events, most: int | None, timeout_s: float | None, quiet: Callable[[], None]
) -> Iterator[FiredRecord]:
    """Events until there were `most` of them, or until `timeout_s` seconds have passed.

    None means without such an end. It waits in steps of `STEP_S`, so that Ctrl-C and the end of the
    time are noticed in a quiet topic too. Where no event has come after `QUIET_S`, it calls `quiet`
    once.
    """
    began, told = monotonic(), False
    deadline = None if timeout_s is None else began + timeout_s
    for number in count():
        if number == most:
            return
        found = None
        while found is None:
            left = STEP_S if deadline is None else deadline - monotonic()
            if left <= 0:
                return
            found = events.next_within(min(STEP_S, left))
            if found is None and not (number or told) and monotonic() - began >= QUIET_S:
                told = True
                quiet()
        yield found
