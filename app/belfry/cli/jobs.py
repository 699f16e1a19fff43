"""Jobs as commands ask for them: counted first, then begun, then looked at until they end.

`belfry bulk` and `belfry backfill` are one job each, and the same three questions to a worker:

    POST …/jobs?dry=true   what would match now, page after page      nothing is begun
    POST …/jobs            the job                                    it has an id
    GET  …/jobs/ID         its progress, four times a second          until it has ended

The job runs in the owners of the partitions, and not here. So a command that is interrupted, or
cannot reach its worker any more, loses only the bar of progress; `belfry bulk get` shows the job.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import sleep
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

import typer

from belfry.cli.progress import progress_of
from belfry.cli.remote import Remote, tenant_path
from belfry.cli.session import Session
from belfry.cli.shown import plain
from belfry.schedules.bulk import BACKFILL

# Seconds between two looks at a job that runs.
LOOK_S: Final = 0.25
RUNNING: Final = "RUNNING"
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


def counted_pages(remote: Remote, tenant: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a job would match now, page after page.

    A page is the answer of ``POST …/jobs?dry=true``: a worker counts for a bounded time, and gives
    a cursor where more is left. Each page is asked for when the one before has been used.
    """
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

    `expected` is what of the job counts, and how far that will go: ``("matched", 1204)`` or
    ``("fired", 720)``. It blocks, with a look every `LOOK_S` seconds. Raises `CommandError` if the
    worker does not answer; the job goes on all the same.
    """
    what, most = expected
    with progress_of(session.printer) as tell:
        while True:
            found: dict[str, Any] = remote.get(path)
            tell(what, found[what], max(most, found[what]))
            if found["state"] != RUNNING:
                return found
            sleep(LOOK_S)


def jobs_path(tenant: str, job: str | None = None) -> str:
    """The path of a tenant's jobs, or of one of them; ids are quoted."""
    jobs = f"{tenant_path(tenant)}/jobs"
    return jobs if job is None else f"{jobs}/{quote(job, safe='')}"


# Above lines of `job_text`.
JOBS: Final = f"{'state':7} {'action':7} job, filter, and how far it is"


def job_text(found: dict[str, Any]) -> str:
    """A job in a line for people: state, action, id, filter, counts, and when it began.

    Refusals are counted by their codes. Texts of others cannot steer the terminal.
    """
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
