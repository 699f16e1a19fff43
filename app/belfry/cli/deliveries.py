"""``belfry deliveries``: HTTP deliveries that were given up or have no end, and another try.

A delivery that fails is tried again with growing pauses, until it arrives or is given up. These
commands are for the two cases in which a person has to look:

    given up   the last attempt failed, or a target refused for good; kept for 14 days
    open       fired, and no end is known: `waiting` for a dispatcher, or `retrying`

    $ belfry deliveries list payments
    …  payments/order-1  fire 0b6e…  attempt 12  https://example.com/hook  …
    $ belfry deliveries replay --fire-id 0b6e…
    replayed 1: belfry delivers them now

They read the topics of deliveries and of lifecycle from Kafka, and write replays there. No worker
has to run for that, but some dispatcher has to before anything is delivered. A receiver that
remembers fire ids is not harmed by a replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from belfry.cli import log_lines
from belfry.cli.failures import CommandError, Exit, WrongUse
from belfry.cli.help import Program
from belfry.cli.session import Session, with_session
from belfry.cli.shown import instant_json, plain
from belfry.schedules.instants import parse_duration

if TYPE_CHECKING:
    from belfry.delivery.dead_letters import Letter

# Above the lines of a list.
DELIVERIES: Final = "code, schedule, fire, attempt, target, and why"
Tenant = Annotated[str | None, typer.Argument(help="Only this tenant's.", metavar="TENANT")]
Open = Annotated[
    bool, typer.Option("--open", help="Deliveries that have no end yet, instead of those given up.")
]
Older = Annotated[
    int,
    typer.Option(
        "--older",
        parser=parse_duration,
        metavar="DURATION",
        help="With --open: only of events that fired longer ago than this.",
    ),
]
FireId = Annotated[
    list[str] | None,
    typer.Option("--fire-id", metavar="ID", help="Only of this fire; repeatable."),
]


def register(app: typer.Typer) -> None:
    """Add ``deliveries`` with its commands to the program."""
    group = Program()
    group.command("list")(with_session(list_))
    group.command("replay")(with_session(replay))
    app.add_typer(group, name="deliveries", help="HTTP deliveries: given up, or without an end.")


def list_(
    session: Session,
    tenant: Tenant = None,
    *,
    fire_id: FireId = None,
    still_open: Open = False,
    older: Older = "5m",  # type: ignore[assignment]  # typer parses it
) -> None:
    """List the deliveries that were given up within the last 14 days, and why.

    With --open those of the last 7 days that have no end: `waiting` for a dispatcher, or `retrying`
    until the next attempt. Arrivals are known only of tenants whose lifecycle is ALL.
    """
    found = list(_chosen(_letters(session, older if still_open else None), tenant, fire_id))
    none = "Every delivery has an end." if still_open else "No delivery was given up."
    session.printer.listed(((_json(each), _text(each)) for each in found), DELIVERIES, none)


def replay(
    session: Session,
    tenant: Tenant = None,
    *,
    fire_id: FireId = None,
    still_open: Open = False,
    older: Older = "5m",  # type: ignore[assignment]  # typer parses it
    everything: Annotated[
        bool, typer.Option("--all", help="All of the tenant's, or of everybody's.")
    ] = False,
) -> None:
    """Deliver given-up events again, from the first attempt on and under the same ids.

    With --open it does so for deliveries without an end. Their attempts may still be on their way:
    a receiver may get one twice, under one id.
    """
    from belfry.delivery.dead_letters import replay as send

    if bool(fire_id) == everything:
        raise WrongUse("Say what is to be delivered again: --fire-id ID, or --all.")
    # A delivery that was given up twice is sent once.
    found = {
        (letter.work.event.fire_id, letter.work.state.number): letter
        for letter in _chosen(_letters(session, older if still_open else None), tenant, fire_id)
    }
    if not found:
        raise CommandError(
            "No such delivery " + ("is open." if still_open else "was given up."), Exit.NOT_FOUND
        )
    number = send(session.settings, found.values(), int(time() * 1000))
    session.printer.one({"replayed": number}, f"replayed {number}: belfry delivers them now")


def _letters(session: Session, open_ms: int | None) -> Iterator[Letter]:
    """Deliveries that were given up, or that have been open for so long.

    `open_ms` is how long ago its event must have fired, in ms; None asks for given-up deliveries.
    """
    from belfry.delivery.dead_letters import dead_letters
    from belfry.delivery.open_deliveries import open_deliveries

    log_lines.to_stderr()
    # Brokers that do not answer are told of once, and not by each client that looks for them.
    session.admin()
    if open_ms is None:
        return dead_letters(session.settings)
    return open_deliveries(session.settings, int(time() * 1000) - open_ms)


def _chosen(
    letters: Iterable[Letter], tenant: str | None, ids: list[str] | None
) -> Iterator[Letter]:
    """Those of the tenant and of the fires that were asked for; None and an empty list let all
    pass.
    """
    for letter in letters:
        event = letter.work.event
        if tenant in (None, event.tenant) and (not ids or event.fire_id in ids):
            yield letter


def _json(letter: Letter) -> dict[str, Any]:
    """A delivery for programs: `attempt` counts from 1, `targets` are addresses without headers."""
    event, state = letter.work.event, letter.work.state
    return {
        "tenant": event.tenant,
        "schedule_id": event.schedule_id,
        "fire_id": event.fire_id,
        "at": instant_json(letter.at_ms),
        "code": letter.code,
        "reason": letter.reason,
        "attempt": state.attempt,
        "targets": [target.url for target in state.targets],
    }


def _text(letter: Letter) -> str:
    """A delivery in a line for people."""
    event, state = letter.work.event, letter.work.state
    # Schedule ids, addresses and answers of servers are others' words.
    return plain(
        f"{letter.code}  {event.tenant}/{event.schedule_id}  fire {event.fire_id}  attempt"
        f" {state.attempt}  {state.targets[0].url}  {letter.reason}"
    )
