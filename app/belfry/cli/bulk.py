"""``belfry bulk``: one action on all schedules of a tenant that a filter matches, as a job.

The command asks a worker over HTTP for a count, shows it, and asks the person. Then it asks for the
job, and looks at its progress until it ends:

    $ belfry bulk pause demo --prefix order/
    1204 schedules of demo match: order/1, order/10, …
    PAUSE 1204 schedules of demo? [y/N]: y
    DONE    PAUSE   6f1c…  prefix=order/  1204 done, 0 unchanged, 0 refused, …

The job is an ordinary request and runs in the owner of the partition, with a cursor that is stored.
So it goes on after Ctrl-C, after a kill of the worker, and after a move to another one; `belfry
bulk get` finds it again. The count may differ from what the job does, for schedules come and go in
between.

The questions to the worker and the bar of progress are those of `belfry.cli.jobs`, which `belfry
backfill` has as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import typer

from belfry.cli.failures import Exit, WrongUse, ask_to_begin
from belfry.cli.help import Program
from belfry.cli.jobs import (
    JOBS,
    DryRun,
    JobId,
    NewJob,
    NoWait,
    Yes,
    counted_pages,
    followed,
    job_text,
    jobs_path,
)
from belfry.cli.looking import DueFrom, DueUntil, EventType, Group, Prefix
from belfry.cli.options import Reason, RequestId, Tenant
from belfry.cli.remote import Remote
from belfry.cli.session import Session, with_session
from belfry.cli.shown import plain
from belfry.schedules.bulk import JOB_STATES, MOST_PER_SECOND, PER_SECOND
from belfry.schedules.instants import parse_duration

# Ids of schedules that are shown beside a count.
SHOWN: Final = 10


def _signed(given: str) -> int:
    """Milliseconds of a duration; one that begins with a minus is negative."""
    return -parse_duration(given[1:]) if given.startswith("-") else parse_duration(given)


By = Annotated[
    int,
    typer.Option(
        "--by",
        parser=_signed,
        metavar="DURATION",
        help="How much later, such as 1h; earlier: --by=-1h.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """Which schedules a job is about, and how it goes about them.

    All filters have to match. Without any filter the job is about all schedules of the tenant.
    """

    prefix: Prefix = None
    group: Group = None
    event_type: EventType = None
    due_from: DueFrom = None
    due_until: DueUntil = None
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="PENDING or PAUSED.")
    ] = None
    per_second: Annotated[
        int,
        typer.Option(
            "--per-second", min=1, max=MOST_PER_SECOND, metavar="N", help="Schedules a second."
        ),
    ] = PER_SECOND
    job: NewJob = None
    yes: Yes = False
    dry: DryRun = False
    no_wait: NoWait = False
    request_id: RequestId = None
    reason: Reason = None

    def body(self, action: str, move_ms: int | None) -> dict[str, Any]:
        """The body that asks for the job.

        `move_ms` is by how much a MOVE puts instants off, in ms, negative for earlier; None for
        other actions. Raises `WrongUse` for a state that no filter knows.
        """
        if self.state is not None and self.state.upper() not in JOB_STATES:
            raise WrongUse(f"--state {self.state!r} is none of {', '.join(JOB_STATES)}.")
        said = {
            "action": action,
            "prefix": self.prefix,
            "group": self.group,
            "event_type": self.event_type,
            "due_from": self.due_from,
            "due_until": self.due_until,
            "state": None if self.state is None else self.state.upper(),
            "move_ms": move_ms,
            "per_second": self.per_second,
            "job": self.job,
            "request_id": self.request_id,
            "reason": self.reason,
        }
        return {name: value for name, value in said.items() if value is not None}


def register(app: typer.Typer) -> None:
    """Add ``bulk`` with its commands to the program."""
    group = Program()
    for command in (cancel, pause, resume, move, trigger, rekey, get, stop):
        group.command(command.__name__)(with_session(command))
    group.command("list")(with_session(list_))
    about = "One action on all schedules that a filter matches, as a job."
    app.add_typer(group, name="bulk", help=about)


def cancel(session: Session, tenant: Tenant, *, options: JobOptions) -> int:
    """End all schedules that the filter matches, before they fire.

    The count is shown first. Exit code 1 where some were refused. Example:

    belfry bulk cancel demo --prefix order/ --yes
    """
    return _run(session, tenant, options, "CANCEL")


def pause(session: Session, tenant: Tenant, *, options: JobOptions) -> int:
    """Hold all schedules that the filter matches until they are resumed."""
    return _run(session, tenant, options, "PAUSE")


def resume(session: Session, tenant: Tenant, *, options: JobOptions) -> int:
    """End the pause of all schedules that the filter matches."""
    return _run(session, tenant, options, "RESUME")


def move(session: Session, tenant: Tenant, *, by: By, options: JobOptions) -> int:
    """Let all schedules that the filter matches be due later, or earlier.

    Recurring schedules are refused: their rule says when they are due. Example:

    belfry bulk move demo --group eu --by 1h
    """
    return _run(session, tenant, options, "MOVE", by)


def trigger(session: Session, tenant: Tenant, *, options: JobOptions) -> int:
    """Fire all schedules that the filter matches once now; their own instants stay."""
    return _run(session, tenant, options, "TRIGGER")


def rekey(session: Session, tenant: Tenant, *, options: JobOptions) -> int:
    """Encrypt payloads at rest anew, under the newest key of the tenant.

    It matches schedules under any other key. A count of 0 with --dry-run means that no schedule
    needs an older key any more. Schedules whose large payload lies elsewhere are counted apart.
    Example:

    belfry bulk rekey clinic --yes
    """
    return _run(session, tenant, options, "REKEY")


def list_(session: Session, tenant: Tenant) -> None:
    """List the jobs of a tenant, the newest first; those that ended for a week."""
    found = Remote(session).get(jobs_path(tenant))["jobs"]
    none = f"{tenant} has no jobs, and none that ended within a week."
    session.printer.listed(((each, job_text(each)) for each in found), JOBS, none)


def get(session: Session, tenant: Tenant, job: JobId) -> None:
    """Show a job and its progress; exit code 3 when there is none."""
    found = Remote(session).get(jobs_path(tenant, job))
    session.printer.one(found, job_text(found))


def stop(session: Session, tenant: Tenant, job: JobId, *, reason: Reason = None) -> None:
    """Stop a job; what it has done stays."""
    query = "" if reason is None else f"?{urlencode({'reason': reason})}"
    verdict = Remote(session).ask("DELETE", jobs_path(tenant, job) + query)
    session.printer.one(verdict, f"{verdict['outcome']} {plain(job)}")


def _run(
    session: Session, tenant: str, options: JobOptions, action: str, move_ms: int | None = None
) -> int:
    """Show the count, ask, begin, and show the progress.

    No job begins if no schedule matches, with --dry-run, or if the person says no. Returns the exit
    code: `Exit.ERROR` if some schedules were refused.
    """
    remote, body = Remote(session), options.body(action, move_ms)
    counted = _count(remote, tenant, body)
    matched = counted["matched"]
    if options.dry or not matched:
        session.printer.one(counted, _counted(tenant, counted))
        return Exit.OK
    session.printer.note(_counted(tenant, counted))
    if not options.yes:
        ask_to_begin(f"{action} {matched} schedules of {tenant}?")
    verdict = remote.ask("POST", jobs_path(tenant), body)
    job = verdict["schedule_id"]
    if options.no_wait:
        session.printer.one(verdict, f"{verdict['outcome']} job {plain(job)}")
        return Exit.OK
    found = followed(session, remote, jobs_path(tenant, job), ("matched", matched))
    session.printer.one(found, job_text(found))
    return Exit.ERROR if found["refused"] else Exit.OK


def _count(remote: Remote, tenant: str, body: dict[str, Any]) -> dict[str, Any]:
    """How many schedules match now, and the ids of the first ones."""
    matched, elsewhere, sample = 0, 0, list[str]()
    for page in counted_pages(remote, tenant, body):
        if page.get("key"):
            # All pages, and the job, mean the key of the first worker that was asked.
            body["key"] = page["key"]
        matched += page["matched"]
        sample += page["sample"]
        elsewhere += page.get("sealed_elsewhere") or 0
    besides = {"sealed_elsewhere": elsewhere} if elsewhere else {}
    return {"matched": matched, "sample": sample[:SHOWN], **besides}


def _counted(tenant: str, counted: dict[str, Any]) -> str:
    """The count in a sentence for people, with some of the ids."""
    sample = ", ".join(plain(each) for each in counted["sample"])
    more = " …" if counted["matched"] > len(counted["sample"]) else ""
    found = f"{counted['matched']} schedules of {tenant} match" + f": {sample}{more}" * bool(sample)
    if elsewhere := counted.get("sealed_elsewhere"):
        found += f". {elsewhere} besides have payloads elsewhere, which keep the key they have"
    return found
