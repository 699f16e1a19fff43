"""``belfry schedule``: requests about one schedule, through Kafka, and the verdict on each.

    12:00:00.000  the request is written to belfry.schedules, with a request id
    12:00:00.008  a worker takes it in; its verdict is committed with the change
    12:00:00.012  the verdict is read from belfry.lifecycle and printed

A verdict that says no is an error: exit code 3 for NOT_FOUND, 4 for a conflict or TOO_LATE, 1 for
the others. Programs get the verdict as JSON all the same. If no verdict comes in time, the request
stands, and asking again with the same --request-id is safe for an hour.

The group has also commands that read over HTTP; these are `looking`, `past` and `why`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from belfry.cli import looking
from belfry.cli.bound_options import check_recurring
from belfry.cli.event_options import EventOptions
from belfry.cli.help import Program
from belfry.cli.options import ASKING, RequestOptions, ScheduleId, Tenant
from belfry.cli.past import history
from belfry.cli.portability import export_, import_
from belfry.cli.preview import preview
from belfry.cli.results import verdict_json, verdict_text
from belfry.cli.rule_options import RuleOptions
from belfry.cli.session import Session, with_session
from belfry.cli.updating import update
from belfry.cli.when_options import When
from belfry.cli.why import why

if TYPE_CHECKING:
    from belfry.client import Client, Verdict

# What a command asks of the client: it returns the verdict, or raises `Refused`.
Ask = Callable[["Client"], "Verdict"]

CreateOnly = Annotated[
    bool,
    typer.Option(
        "--create-only",
        help="Leave an existing schedule alone: exit code 4.",
        rich_help_panel=ASKING,
    ),
]

FireId = Annotated[
    str,
    typer.Argument(
        metavar="FIRE_ID", help="As in the event's header belfry-fire-id.", show_default=False
    ),
]


def register(app: typer.Typer) -> None:
    """Add ``schedule`` with its commands to the program."""
    group = Program()
    group.command("create")(with_session(create))
    for action in (cancel, trigger, pause, resume, ack):
        group.command(action.__name__)(with_session(action))
    group.command("get")(with_session(looking.get))
    group.command("list")(with_session(looking.list_))
    group.command("history")(with_session(history))
    group.command("why")(with_session(why))
    group.command("locks")(with_session(looking.locks))
    group.command("update")(with_session(update))
    group.command("preview")(with_session(preview))
    group.command("export")(with_session(export_))
    group.command("import")(with_session(import_))
    about = "Create, get, list, locks, update, cancel, trigger, pause, resume, ack, preview …"
    app.add_typer(group, name="schedule", help=about)


def create(
    session: Session,
    tenant: Tenant,
    schedule_id: ScheduleId,
    *,
    when: When,
    rule: RuleOptions,
    event: EventOptions,
    create_only: CreateOnly = False,
    asking: RequestOptions,
) -> None:
    """Create a schedule, or replace the content of an existing one.

    The event comes out on the topic belfry.fired.TENANT. Example:

    belfry schedule create demo hello --in 5m --payload 'hello, belfry'
    """
    when.check()
    when.check_zone_of_rule(rule.except_cron, rule.calendar)
    check_recurring(rule, when.recurs)
    said = {**when.arguments(), **asdict(rule), **event.arguments()}
    # The client takes None for "not given"; a flag that was not given is False.
    said["serial"] = rule.serial or None
    options: Any = {name: value for name, value in said.items() if value is not None}
    # UPSERT creates or replaces; a definition that is as before is UNCHANGED.
    action: Any = "CREATE" if create_only else "UPSERT"
    options |= asking.arguments() | {"action": action}
    warning = event.warning()
    if warning is not None:
        session.printer.note(f"Warning: {warning}.")
    _ask(session, lambda client: client.schedule(tenant, schedule_id, **options))


def cancel(
    session: Session, tenant: Tenant, schedule_id: ScheduleId, *, asking: RequestOptions
) -> None:
    """End a schedule before it fires.

    Exit code 3 if there is no such schedule, 4 if it has fired already.
    """
    _ask(session, lambda client: client.cancel(tenant, schedule_id, **asking.arguments()))


def trigger(
    session: Session, tenant: Tenant, schedule_id: ScheduleId, *, asking: RequestOptions
) -> None:
    """Fire once now; the schedule's own instants stay as they are."""
    _ask(session, lambda client: client.trigger(tenant, schedule_id, **asking.arguments()))


def pause(
    session: Session, tenant: Tenant, schedule_id: ScheduleId, *, asking: RequestOptions
) -> None:
    """Hold a schedule until it is resumed."""
    _ask(session, lambda client: client.pause(tenant, schedule_id, **asking.arguments()))


def resume(
    session: Session, tenant: Tenant, schedule_id: ScheduleId, *, asking: RequestOptions
) -> None:
    """End the pause of a schedule."""
    _ask(session, lambda client: client.resume(tenant, schedule_id, **asking.arguments()))


def ack(
    session: Session,
    tenant: Tenant,
    schedule_id: ScheduleId,
    fire_id: FireId,
    *,
    asking: RequestOptions,
) -> None:
    """Acknowledge a fire, so that the next event behind it goes on.

    The next event is one of the same serial group, or the next occurrence of a schedule with
    --overlap. UNCHANGED if no event waits for this fire.
    """
    _ask(session, lambda client: client.ack(tenant, schedule_id, fire_id, **asking.arguments()))


def _ask(session: Session, ask: Ask) -> None:
    """Ask, and print the verdict; a no is printed for programs as well, then told as an error.

    `ask` gets a client that is closed afterwards. Raises `Refused` for a verdict that says no; its
    exit code is worked out in `belfry.cli.failures`.
    """
    from belfry.client import Refused

    try:
        with session.client() as client:
            verdict = ask(client)
    except Refused as refused:
        if not session.printer.for_people:
            session.printer.one(verdict_json(refused.verdict), "")
        raise
    session.printer.one(verdict_json(verdict), verdict_text(verdict, int(time() * 1000)))
