"""``belfry backfill``: the occurrences of a rule in a range of the past fire now, as a job.

It is for the case in which a consumer was broken last week and its events are wanted again, or in
which a rule is new and its past is wanted too. The job runs in the workers, so it goes on where
this command is interrupted:

    12:00:00.000  the worker counts: 720 occurrences of 1 schedule
    12:00:02.000  a person says yes; the request is written, and the job begins
    12:00:02.250  the job is looked at four times a second, for the progress bar
    12:00:09.500  720 fired, 0 refused: exit code 0

At most 100 occurrences a second fire unless --per-second says otherwise, so that schedules that are
due now are not held up. Each occurrence has an id that depends on the job, so its event is not
taken for the one that fired in its time. All questions go to a worker over HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from belfry.cli.failures import CommandError, Exit, WrongUse, ask_to_begin
from belfry.cli.jobs import (
    DryRun,
    NewJob,
    NoWait,
    Yes,
    counted_pages,
    followed,
    job_text,
    jobs_path,
)
from belfry.cli.looking import EventType, Group, Prefix
from belfry.cli.options import Reason, RequestId, Tenant
from belfry.cli.ranges import range_end
from belfry.cli.remote import Remote
from belfry.cli.session import Session, with_session
from belfry.cli.shown import plain
from belfry.schedules.backfill import MOST_OCCURRENCES
from belfry.schedules.bulk import BACKFILL, MOST_PER_SECOND
from belfry.schedules.instants import parse_instant

# Occurrences a second where nobody says otherwise.
# Low on purpose: consumers get these events besides those that are due now.
PER_SECOND = 100

OneId = Annotated[
    str | None,
    typer.Argument(
        metavar="ID",
        help="Id of the schedule; leave it out to give a filter.",
        show_default=False,
    ),
]
From = Annotated[
    int,
    typer.Option(
        "--from",
        parser=parse_instant,
        metavar="INSTANT",
        help="Occurrences then or later.",
        show_default=False,
    ),
]
Until = Annotated[
    int | None,
    typer.Option(
        "--until",
        parser=parse_instant,
        metavar="INSTANT",
        help="Occurrences before then.  [default: now]",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillOptions:
    """Which schedules a backfill is about, and how it goes about them.

    A schedule is named by its id, or several by a filter, and never both. `per_second` counts
    occurrences, of all partitions together. `job` is the id of the job, and a second job of that id
    is a conflict; without it a job gets a new id.
    """

    prefix: Prefix = None
    group: Group = None
    event_type: EventType = None
    per_second: Annotated[
        int,
        typer.Option(
            "--per-second", min=1, max=MOST_PER_SECOND, metavar="N", help="Occurrences a second."
        ),
    ] = PER_SECOND
    job: NewJob = None
    yes: Yes = False
    dry: DryRun = False
    no_wait: NoWait = False
    request_id: RequestId = None
    reason: Reason = None

    def body(self, schedule_id: str | None, from_ms: int, until_ms: int | None) -> dict[str, Any]:
        """The body that asks for the job.

        Instants are ms since 1970; without `until_ms` the range ends now. Options that were not
        given are left out. Raises `WrongUse` if neither an id nor a filter says whose occurrences
        are meant, or if an id and a filter contradict.
        """
        filters = {"prefix": self.prefix, "group": self.group, "event_type": self.event_type}
        given = [name for name, value in filters.items() if value is not None]
        if schedule_id is None and not given:
            raise WrongUse(
                "Say whose occurrences: give an ID, or a filter (--prefix, --group, --event-type);"
                " --prefix '' takes all schedules of the tenant."
            )
        if schedule_id is not None and given:
            raise WrongUse(f"ID and --{given[0].replace('_', '-')} contradict: keep one.")
        said = {
            "action": BACKFILL,
            "schedule_id": schedule_id,
            **filters,
            "range_from": from_ms,
            "range_until": range_end(from_ms, until_ms),
            "per_second": self.per_second,
            "job": self.job,
            "request_id": self.request_id,
            "reason": self.reason,
        }
        return {name: value for name, value in said.items() if value is not None}


def register(app: typer.Typer) -> None:
    """Add ``backfill`` to the program."""
    app.command("backfill")(with_session(backfill))


def backfill(
    session: Session,
    tenant: Tenant,
    schedule_id: OneId = None,
    *,
    from_: From,
    until: Until = None,
    options: BackfillOptions,
) -> int:
    """Fire the occurrences that a rule has in a range of the past, each once, at a rate.

    The count is shown first, with the first and the last of them. Exit code 1 where schedules were
    refused. `belfry bulk get`, `list` and `stop` know the job. Example:

    belfry backfill demo report --from 2026-11-01T00:00:00Z --until 2026-12-01T00:00:00Z
    """
    remote, body = Remote(session), options.body(schedule_id, from_, until)
    counted = _count(counted_pages(remote, tenant, body))
    number = counted["occurrences"]
    if schedule_id is not None and not counted["matched"] and not options.dry:
        raise CommandError(f"No schedule {schedule_id!r} of {tenant} waits.", Exit.NOT_FOUND)
    if options.dry or not number:
        session.printer.one(counted, _counted(counted))
        return Exit.OK
    session.printer.note(_counted(counted))
    # Workers would refuse a longer range, schedule by schedule: so the command refuses it first.
    if number > MOST_OCCURRENCES:
        raise CommandError(
            f"A job fires at most {MOST_OCCURRENCES} occurrences: give a shorter range, or fewer"
            " schedules. Nothing was begun."
        )
    if not options.yes:
        ask_to_begin(f"Fire {number} occurrences of the past?")
    verdict = remote.ask("POST", jobs_path(tenant), body)
    job = verdict["schedule_id"]
    if options.no_wait:
        session.printer.one(verdict, f"{verdict['outcome']} job {plain(job)}")
        return Exit.OK
    found = followed(session, remote, jobs_path(tenant, job), ("fired", number))
    session.printer.one(found, job_text(found))
    return Exit.ERROR if found["refused"] else Exit.OK


def _count(pages: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """How many occurrences there are of how many schedules, the first and the last.

    A large tenant is counted in pages, and each page has its own first and last. The key is parsed
    as an instant, since texts of instants with different precision do not sort.
    """
    found = list(pages)
    firsts = [each["first"] for each in found if each["first"] is not None]
    lasts = [each["last"] for each in found if each["last"] is not None]
    return {
        "matched": sum(each["matched"] for each in found),
        "occurrences": sum(each["occurrences"] for each in found),
        "first": min(firsts, default=None, key=parse_instant),
        "last": max(lasts, default=None, key=parse_instant),
    }


def _counted(counted: dict[str, Any]) -> str:
    """The count in a sentence for people."""
    number, matched = counted["occurrences"], counted["matched"]
    schedules = "1 schedule" if matched == 1 else f"{matched} schedules"
    if not number:
        return f"0 occurrences of {schedules}"
    return f"{number} occurrences of {schedules}, from {counted['first']} to {counted['last']}"
