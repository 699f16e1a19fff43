"""``belfry bulk``: one action on all schedules of a tenant that a filter matches, as a job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import sleep
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

import typer

from belfry.cli.failures import Exit, WrongUse, ask_to_begin
from belfry.cli.help import Program
from belfry.cli.looking import DueFrom, DueUntil, EventType, Group, Prefix
from belfry.cli.options import Reason, RequestId, Tenant
from belfry.cli.remote import Remote, tenant_path
from belfry.cli.session import Session, with_session
from belfry.cli.shown import plain
from belfry.schedules.bulk import BACKFILL, JOB_STATES, MOST_PER_SECOND, PER_SECOND
from belfry.schedules.instants import parse_duration

LOOK_S: Final = 0.25
RUNNING: Final = "RUNNING"
SHOWN: Final = 10

JobId = Annotated[
    str, typer.Argument(metavar="JOB", help="As `belfry bulk list` shows it.", show_default=False)
]
NewJob = Annotated[
    str | None, typer.Option("--job", metavar="TEXT", help="Id of the job.  [default: new]")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether to begin.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", "--dry", help="Show the count, and change nothing.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Return once the job has begun.")]


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
    """Which schedules a job is about, and how it goes about them."""

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
        """The body that asks for the job."""
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
    """Add the commands to the program."""
    group = Program()
    for command in (cancel, pause, resume, move, trigger, get, stop):
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

    What recurs is refused: its rule says when it is due. Example:

    belfry bulk move demo --group eu --by 1h
    """
    return _run(session, tenant, options, "MOVE", by)


def trigger(session: Session, tenant: Tenant, *, options: JobOptions) -> int:
    """Fire all schedules that the filter matches once now; their own instants stay."""
    return _run(session, tenant, options, "TRIGGER")


def list_(session: Session, tenant: Tenant) -> None:
    """List the jobs of a tenant, the newest first; those that ended for a week."""
    found = Remote(session).get(jobs_path(tenant))["jobs"]
    session.printer.many((each, job_text(each)) for each in found)


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
    """Show the count, ask, begin, and show the progress."""
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
    """How many schedules match now."""
    matched, sample = 0, list[str]()
    for page in counted_pages(remote, tenant, body):
        matched += page["matched"]
        sample += page["sample"]
    return {"matched": matched, "sample": sample[:SHOWN]}


def counted_pages(remote: Remote, tenant: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a job would match now, page after page."""
    query: dict[str, Any] = {"dry": "true"}
    while True:
        page = remote.ask("POST", f"{jobs_path(tenant)}?{urlencode(query)}", body)
        yield page
        if page["cursor"] is None:
            return
        query["cursor"] = page["cursor"]


def followed(
    session: Session, remote: Remote, path: str, expected: tuple[str, int]
) -> dict[str, Any]:
    """The job once it has ended; its progress is shown where somebody looks.

    `expected` is what of the job counts, and how far that will go.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    shown = session.printer.for_people and console.is_terminal
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not shown, transient=True) as progress:
        what, most = expected
        task = progress.add_task("", total=most)
        while True:
            found: dict[str, Any] = remote.get(path)
            progress.update(task, completed=found[what], total=max(most, found[what]))
            if found["state"] != RUNNING:
                return found
            sleep(LOOK_S)


def jobs_path(tenant: str, job: str | None = None) -> str:
    jobs = f"{tenant_path(tenant)}/jobs"
    return jobs if job is None else f"{jobs}/{quote(job, safe='')}"


def _counted(tenant: str, counted: dict[str, Any]) -> str:
    sample = ", ".join(plain(each) for each in counted["sample"])
    more = " …" if counted["matched"] > len(counted["sample"]) else ""
    return f"{counted['matched']} schedules of {tenant} match" + (
        f": {sample}{more}" * bool(sample)
    )


def job_text(found: dict[str, Any]) -> str:
    filters = " ".join(f"{name}={plain(str(value))}" for name, value in found["filter"].items())
    counts = f"{found['done']} done, {found['unchanged']} unchanged, {found['refused']} refused"
    codes = ", ".join(f"{code}: {count}" for code, count in found["refusals"].items())
    named = f"{found['state']:7} {found['action']:7} {plain(found['job'])}"
    if found["action"] == BACKFILL:
        counts += f", {found['fired']} fired"
    return (
        f"{named}  {filters or 'all'}  {counts}"
        + (f" ({codes})" * bool(codes))
        + f", {found['examined']} looked at, begun {found['begun_at']}"
    )
