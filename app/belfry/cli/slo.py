"""``belfry slo``: how available belfry was, by the events that it schedules to itself.

Workers with a canary ask every few seconds for an event on each partition, and write their
observations to a topic (docs/slo.md). This command reads that topic, counts, and compares with the
goals:

    availability   of all events that were to be asked for, those that were accepted
    reach          of those that were accepted, those that came out
    within 1 s     of those that were accepted, those that a reader had within a second

An error budget is the share of failures that a goal allows: with a goal of 99.95 % one event in 2
000 may fail, and half of that used leaves 50 %. The command needs no worker, so it works after an
outage too.

    12:00:00 … 12:05:00   no worker runs; with an interval of 10 s and 4 partitions
                          120 events are never asked for: availability falls, the others do not

Events of the last half minute are not judged, since they may still come out.
"""

from __future__ import annotations

from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from belfry.cli.failures import CommandError, Exit, WrongUse
from belfry.cli.options import ago
from belfry.cli.session import Session, with_session
from belfry.cli.shown import instant_json

if TYPE_CHECKING:
    from belfry.canary.objectives import Attainment, Report

# The setting to name if nothing was measured.
SWITCH: Final = "BELFRY_CANARY_INTERVAL_MS=10000 on all workers"
# After that it is said that nothing was asked for.
# Milliseconds without an event that was asked for, after which the report says so.
QUIET_MS: Final = 600_000


Since = Annotated[
    int | None,
    typer.Option(
        "--since",
        parser=ago,
        metavar="WHEN",
        help="From then on: 2h, 7d, or an instant in RFC 3339.  [default: the month, in UTC]",
    ),
]
Until = Annotated[
    int | None,
    typer.Option(
        "--until",
        parser=ago,
        metavar="WHEN",
        help="Up to then.  [default: half a minute ago]",
    ),
]


def register(app: typer.Typer) -> None:
    """Add ``slo`` to the program."""
    app.command("slo")(with_session(slo))


def slo(session: Session, *, since: Since = None, until: Until = None) -> None:
    """Show availability, reach, the share within a second, and the rest of the error budgets.

    Workers measure it if BELFRY_CANARY_INTERVAL_MS is set. Only belfry's own events are counted.
    Reads topics and needs no worker. Example:

    belfry slo --since 7d
    """
    from belfry.canary.objectives import GRACE_MS, report
    from belfry.canary.rows import slots_until
    from belfry.client.errors import MissingTopic
    from belfry.tenants.canary import SLO_TOPIC

    now_ms = int(time() * 1000)
    from_ms = _month_ms(now_ms) if since is None else since
    until_ms = now_ms - GRACE_MS if until is None else min(until, now_ms - GRACE_MS)
    if from_ms >= until_ms:
        raise WrongUse(
            f"From {instant_json(from_ms)} until {instant_json(until_ms)} there is nothing to"
            " judge: events have half a minute to come out. Let --since be earlier than --until,"
            " and more than half a minute ago."
        )
    try:
        slots = slots_until(session.cluster(), session.settings.topic(SLO_TOPIC), from_ms, until_ms)
        found = report(slots.rows.values(), from_ms, until_ms)
    except MissingTopic:
        found = None
    if found is None:
        raise CommandError(
            f"Nothing was measured from {instant_json(from_ms)} until {instant_json(until_ms)}:"
            f" workers measure only where they are told to. Set {SWITCH}, and ask again after a"
            " few minutes.",
            Exit.NOT_FOUND,
        )
    session.printer.one(shown(found), "\n".join(lines(found)))


def _month_ms(now_ms: int) -> int:
    """When the month began, in UTC, as epoch ms."""
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    begin = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return int(begin.timestamp() * 1000)


def shown(found: Report) -> dict[str, Any]:
    """A report for programs; shares from 0 to 1.

    `events` are those that were to be asked for, by the interval and the partitions; `asked` were,
    and `accepted` had a verdict that says yes. A share is null if there was nothing to judge.
    """
    return {
        "from": instant_json(found.first_ms),
        "until": instant_json(found.until_ms),
        "last_asked_at": instant_json(found.asked_ms),
        "events": found.slots,
        "asked": found.asked,
        "accepted": found.accepted,
        "objectives": [_objective(each) for each in found.objectives()],
    }


def _objective(each: Attainment) -> dict[str, Any]:
    """A goal and what was measured; `share` and `budget_left` are null if there was nothing to
    judge.
    """
    return {
        "objective": each.goal.name,
        "goal": each.goal.share,
        "share": each.share,
        "good": each.good,
        "of": each.of,
        "met": each.met,
        "budget_left": each.budget_left,
    }


def lines(found: Report) -> list[str]:
    """A report for people: the range, a line for each goal, and what to know about them."""
    told = [f"from {instant_json(found.first_ms)} until {instant_json(found.until_ms)}"]
    told += [_line(each) for each in found.objectives()]
    if unasked := found.slots - found.asked:
        told.append(f"{unasked:,} of {found.slots:,} events nobody asked for: no owner was there.")
    if found.until_ms - found.asked_ms > QUIET_MS:
        told.append(
            f"Nothing was asked for since {instant_json(found.asked_ms)}: no worker runs, or the"
            " canary is switched off (BELFRY_CANARY_INTERVAL_MS). In that case end the time with"
            " --until."
        )
    return told


def _line(each: Attainment) -> str:
    """A goal in a line for people."""
    name, goal = f"{each.goal.name:12}", f"goal {each.goal.share:.2%}"
    if each.share is None or each.budget_left is None:
        return f"{name} nothing to judge   {goal}"
    verdict = "met" if each.met else "MISSED"
    missed = each.of - each.good
    return (
        f"{name} {each.share:>10.4%}   {goal}   {verdict:6}   {missed:,} of {each.of:,} failed,"
        f" {each.budget_left:.0%} of the error budget left"
    )
