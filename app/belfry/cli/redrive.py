"""``belfry redrive``: refused requests or fired events are sent again, each once.

    what       from                   to                                  once, because of
    rejected   belfry.rejected        where it was first received         a mark in belfry.rejected
    fires      the output topic       the same partition, same fire ids   a header of the copy

Request and mark, or copies of events, are committed in one transaction, so a kill leaves neither a
copy without its mark nor a mark without its copy. The same command goes on afterwards:

    12:00:00  redrive rejected demo --from …      500 would be sent; a person says yes
    12:00:03  300 are sent and marked             the machine goes down
    12:10:00  the same command                    200 would be sent, 300 were redriven before

Each command reads the range, shows the count, asks, and sends at a bounded rate. It sends ordinary
requests, or ordinary events: workers judge the request anew, and consumers see the same fire id
twice. docs/redrive.md has the details. `belfry.client` does the work, or a worker does it if its
address is given (`redrive_http.py`).
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import partial
from typing import Annotated, Any

import typer

from belfry.cli.failures import WrongUse
from belfry.cli.help import Program
from belfry.cli.looking import Prefix
from belfry.cli.options import Reason, Tenant
from belfry.cli.policies import kafka_policies
from belfry.cli.ranges import range_end
from belfry.cli.redrive_counts import EVENTS, REQUESTS, goes_on
from belfry.cli.redrive_http import EVERYBODY, redrive_by_http
from belfry.cli.redrive_kafka import sent_in_turn
from belfry.cli.session import Session, with_session
from belfry.schedules.instants import parse_instant
from belfry.schedules.rejections import CODES
from belfry.schedules.request import tenant_problem

Whose = Annotated[
    str,
    typer.Argument(
        metavar="TENANT",
        help="Whose requests; '*' for all, also of unknown ones.",
        show_default=False,
    ),
]


def _from(help_: str) -> Any:
    """The option --from, in ms since 1970; its meaning differs by command."""
    return typer.Option(
        "--from", parser=parse_instant, metavar="INSTANT", help=help_, show_default=False
    )


def _until(help_: str) -> Any:
    """The option --until, in ms since 1970; its meaning differs by command."""
    return typer.Option("--until", parser=parse_instant, metavar="INSTANT", help=help_)


def _per_second(what: str) -> Any:
    """The option --per-second: how many of these are sent in a second."""
    return typer.Option("--per-second", min=1, max=10_000, metavar="N", help=f"{what} a second.")


RefusedFrom = Annotated[int, _from("Refused then or later.")]
RefusedUntil = Annotated[int | None, _until("Refused before then.  [default: now]")]
FiredFrom = Annotated[int, _from("Fired then or later.")]
FiredUntil = Annotated[int | None, _until("Fired before then.  [default: now]")]
OneSchedule = Annotated[
    str | None, typer.Option("--id", metavar="ID", help="Only of this schedule.")
]
# Events carry no tenant, so with this option the tenant selects nothing.
Topic = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="All tenants' events of this topic that fit.  [default: by the tenant's policy]",
    ),
]
# Two redrives with two names send an event twice; the default is one name for all.
Name = Annotated[
    str,
    typer.Option(
        "--name",
        metavar="TEXT",
        help="Name of this redrive: an event is sent once under each name.",
    ),
]
Code = Annotated[
    str | None,
    typer.Option("--code", metavar="CODE", help="Only requests that were refused with this code."),
]
RequestsPerSecond = Annotated[int, _per_second("Requests")]
EventsPerSecond = Annotated[int, _per_second("Events")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether to begin.")]
Dry = Annotated[
    bool, typer.Option("--dry-run", "--dry", help="Show the count, and change nothing.")
]


def register(app: typer.Typer) -> None:
    """Add ``redrive`` with its commands to the program."""
    group = Program()
    group.command("rejected")(with_session(rejected))
    group.command("fires")(with_session(fires))
    app.add_typer(group, name="redrive", help="Send refused requests, or fired events, again.")


def rejected(
    session: Session,
    tenant: Whose,
    *,
    from_: RefusedFrom,
    until: RefusedUntil = None,
    code: Code = None,
    per_second: RequestsPerSecond = 100,
    yes: Yes = False,
    dry: Dry = False,
    reason: Reason = None,
) -> None:
    """Send requests again that were refused in a range, each once, as they were received.

    It counts by code first. Sent requests are marked, so the same command goes on after a crash.
    Example:

    belfry redrive rejected demo --from 2026-12-01T00:00:00Z --dry-run
    """
    if tenant != EVERYBODY:
        _check_tenant(tenant)
    _check_code(code)
    until = range_end(from_, until)
    if session.asks_http:
        body = {"what": "rejected", "range_from": from_, "range_until": until, "code": code}
        body |= {"per_second": per_second, "reason": reason}
        redrive_by_http(session, tenant, body, dry=dry, yes=yes)
        return
    with session.client() as client:
        found = client.redrive_preview(tenant, from_, until, code=code)
        if goes_on(session, REQUESTS, found, dry=dry, yes=yes):
            send = partial(client.redrive, tenant, from_, until, code=code, reason=reason)
            done = sent_in_turn(session, found, lambda told: send(per_second=per_second, told=told))
            session.printer.one(REQUESTS.json(done), REQUESTS.text(done, "were sent"))


def fires(
    session: Session,
    tenant: Tenant,
    *,
    from_: FiredFrom,
    until: FiredUntil = None,
    schedule_id: OneSchedule = None,
    prefix: Prefix = None,
    topic: Topic = None,
    name: Name = "redrive",
    per_second: EventsPerSecond = 100,
    yes: Yes = False,
    dry: Dry = False,
) -> None:
    """Send events again that have fired in a range, as they came out, with the same fire ids.

    It counts first. Under one name each event is sent again once, so the same command goes on
    after a crash. Example:

    belfry redrive fires demo --from 2026-12-01T00:00:00Z --dry-run
    """
    from belfry.client.refired import RefireRange

    _check_tenant(tenant)
    asked = RefireRange(from_, range_end(from_, until), schedule_id, prefix or "", name)
    if session.asks_http:
        if topic is not None:
            raise WrongUse("--topic reads a topic by Kafka's rights: leave --http-url out.")
        body = {"what": "fires", "range_from": from_, "range_until": asked.until_ms, "name": name}
        body |= {"schedule_id": schedule_id, "prefix": prefix, "per_second": per_second}
        redrive_by_http(session, tenant, body, dry=dry, yes=yes)
        return
    where = topic or _topic_of(session, tenant)
    if where == session.settings.topic("fired"):
        asked = asked._replace(tenant=tenant)
    with session.client() as client:
        found = client.refire_preview(where, asked)
        if goes_on(session, EVENTS, found, dry=dry, yes=yes):
            send = partial(client.refire, where, asked, per_second=per_second)
            done = sent_in_turn(session, found, lambda told: send(told=told))
            session.printer.one(EVENTS.json(done), EVENTS.text(done, "were sent"))


def _check_tenant(tenant: str) -> None:
    """Raise `WrongUse` where this cannot be the name of a tenant."""
    wrong = tenant_problem(tenant)
    if wrong is not None:
        raise WrongUse(wrong.reason)


def _check_code(code: str | None) -> None:
    """Raise `WrongUse` for a code that no refusal has, with the nearest one.

    A misspelt code would select nothing, and the command would say that there is nothing to send.
    """
    if code is None or code in CODES:
        return
    near = get_close_matches(code.lower(), CODES, n=1)
    todo = f"did you mean {near[0]}?" if near else "docs/rejections.md has all codes."
    raise WrongUse(f"--code {code[:60]!r} is no code of a refusal: {todo}")


def _topic_of(session: Session, tenant: str) -> str:
    """Where the events of a tenant come out; refused where others' do as well."""
    from belfry.client.refired import SharedTopic, refire_topic

    policies = kafka_policies(session).all()
    try:
        return refire_topic(tenant, policies, session.settings.topic(""))
    except SharedTopic as error:
        raise WrongUse(
            f"{error}, and an event does not say whose it is. Say --topic {error.topic} to send"
            " again what fits of all of them; --id and --prefix narrow it."
        ) from None
