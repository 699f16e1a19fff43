"""``belfry schedule export`` and ``import``: schedules as JSON lines, from one belfry to another.

An export reads the changelog and needs no worker. An import writes requests like any other, so that
its workers judge them. Neither changes the source that it reads.

A line holds the request for the schedule, and how far the schedule has come: its occurrence, its
version, its next instant. So an import goes on where the schedule stood and does not begin anew:

    exported   cron 0 9 * * MON, occurrence 12 is next, due 2026-12-07T09:00:00Z
    imported   made, due 2026-12-07T09:00:00.000Z, and its next fire is occurrence 12

An import may be repeated. Each request has the condition that no schedule of this name exists, and
the verdict tells a schedule that is the same (left) from another one (conflict).

`belfry restore` uses `create_all` with the schedules of a backup.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final

import typer

from belfry.cli.changelog import judges
from belfry.cli.day_files import whole
from belfry.cli.failures import Exit, WrongUse
from belfry.cli.import_outcomes import CONFLICT, REFUSED, ImportOutcomes
from belfry.cli.options import seconds
from belfry.cli.payload_keys import decrypting
from belfry.cli.session import Session
from belfry.schedules.instants import format_instant
from belfry.schedules.outcomes import Outcome

if TYPE_CHECKING:
    from belfry.client.verdict import Verdict
    from belfry.wire.quick_writing import Ready

Of = Annotated[
    str | None,
    typer.Option("--tenant", metavar="TENANT", help="Only this tenant's.  [default: all]"),
]
Source = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="What an export wrote (-: standard input).", show_default=False
    ),
]
OutcomesTimeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        parser=seconds,
        metavar="SECONDS",
        help="Longest wait for the outcomes of a thousand requests.  [default: 60]",
    ),
]
TIMEOUT_S = 60.0
# Above the lines of an export, on stderr.
EXPORTED: Final = "schedules that wait, one JSON object a line"


def export_(session: Session, *, tenant: Of = None) -> None:
    """Write every schedule that waits, one JSON object a line.

    Reads the changelog up to its end; needs no worker. Example:

    belfry schedule export > schedules.jsonl
    """
    from belfry.client.export import waiting_records
    from belfry.client.portable import portable

    settings = session.settings
    group = settings.topic("client")
    records = waiting_records(
        session.cluster(), settings.topic("changelog"), group, tenant, judges(session)
    )
    written = session.printer.counted(map(portable, whole(session, records)), "schedules written")
    told = ((found, _line(found)) for found in written)
    session.printer.listed(told, EXPORTED, "No schedule waits.")


def import_(session: Session, source: Source, *, timeout: OutcomesTimeout = None) -> int:
    """Create the schedules of an export; each goes on where it stood.

    Says of each what it did: made; left, because it lives or has fired since; conflict, because
    another of its name lives (exit code 4); refused (exit code 1). May be repeated. Example:

    belfry schedule import schedules.jsonl
    """
    with _opened(source) as lines:
        return create_all(session, _requests(lines), timeout or TIMEOUT_S)


def create_all(
    session: Session,
    requests: Iterable[dict[str, Any] | Ready],
    timeout_s: float,
    since_ms: int | None = None,
) -> int:
    """Create schedules, print what became of each, and count all; an exit code.

    `requests` are fields of requests, or ready ones, read as they are written, so a large file
    needs no memory. `timeout_s` is for the verdicts of one batch of them. Schedules that were
    cancelled since `since_ms` (epoch ms; None: that does not matter) are left. A refusal weighs
    more than a conflict. Raises `BelfryError` if Kafka or the workers do not answer: created
    schedules stay.
    """
    from belfry.client.portable import names_of

    printer = session.printer
    with (
        session.client() as client,
        printer.several() as shown,
        ImportOutcomes(printer, shown) as outcomes,
    ):
        gone = {} if since_ms is None else client.cancelled_since(since_ms)

        def wanted() -> Iterator[dict[str, Any] | Ready]:
            """Requests of schedules that still count; those cancelled since are told at once."""
            for each in requests:
                name = names_of(each)
                at_ms = gone.get(name)
                if at_ms is None:
                    yield each
                else:
                    outcomes.tell(_cancelled(name, at_ms))

        left = wanted() if gone else requests
        asked = printer.counted(decrypting(session, left), "schedules asked for")
        for verdict in client.create_all(asked, timeout_s=timeout_s):
            outcomes.tell(verdict)
    counts = outcomes.counts
    listed = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    printer.note(f"{sum(counts.values())} schedules: {listed or 'none'}")
    if counts[REFUSED]:
        return Exit.ERROR
    return Exit.CONFLICT if counts[CONFLICT] else Exit.OK


def _cancelled(name: tuple[str, str], at_ms: int) -> Verdict:
    """A verdict for a schedule that is not asked for, since it was cancelled after the backup."""
    from belfry.client.verdict import Verdict

    reason = f"It was cancelled since, at {format_instant(at_ms)}; --cancelled makes it again."
    return Verdict(*name, Outcome.CANCELLED, at_ms=at_ms, code="cancelled", reason=reason)


def _opened(source: Path) -> IO[bytes]:
    """The file, or standard input; `WrongUse` where it cannot be read."""
    try:
        return sys.stdin.buffer if str(source) == "-" else source.open("rb")
    except OSError as error:
        raise WrongUse(f"{source} cannot be read: {error.strerror}.") from None


def _requests(lines: IO[bytes]) -> Iterator[dict[str, Any] | Ready]:
    """The requests of an export, line by line; `WrongUse` names the first line that is not one."""
    import orjson

    from belfry.client.portable import NotPortable, request_fields
    from belfry.client.usual_lines import ready_of

    for number, line in enumerate(lines, 1):
        if (ready := ready_of(line)) is not None:
            yield ready
            continue
        if not line.strip():
            continue
        try:
            yield request_fields(orjson.loads(line))
        except (NotPortable, orjson.JSONDecodeError) as error:
            raise WrongUse(
                f"Line {number} is no schedule: {error}. What stands well above it was imported;"
                " mend the line and run the same again."
            ) from None


def _line(found: dict[str, Any]) -> str:
    """A schedule as one line of JSON."""
    import orjson

    return orjson.dumps(found).decode()
