"""``belfry schedule export`` and ``import``: schedules as JSON lines, from one belfry to another.

An export reads the changelog and needs no worker.  An import writes requests like any other, so
that its workers judge them.  Both leave what they read as it is.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from belfry.cli.failures import WrongUse
from belfry.cli.options import seconds
from belfry.cli.session import Session
from belfry.cli.shown import verdict_json, verdict_text

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
Patience = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        parser=seconds,
        metavar="SECONDS",
        help="Longest wait for the outcomes of some hundred requests.  [default: 60]",
    ),
]
PATIENCE_S = 60.0
REFUSED = 1
CONFLICTING = 4


def export_(session: Session, *, tenant: Of = None) -> None:
    """Write every schedule that waits, one JSON object a line.

    Reads the changelog up to its end; needs no worker. Example:

    belfry schedule export > schedules.jsonl
    """
    from belfry.client.export import waiting_records
    from belfry.client.portable import portable

    settings = session.settings
    group = settings.topic("client")
    records = waiting_records(session.cluster(), settings.topic("changelog"), group, tenant)
    session.printer.many((found, _line(found)) for found in map(portable, records))


def import_(session: Session, source: Source, *, timeout: Patience = None) -> int:
    """Create the schedules of an export; each goes on where it stood.

    A schedule that exists is left alone (exit code 4). To repeat an import that was cut short is
    safe for an hour. Example:

    belfry schedule import schedules.jsonl
    """
    with _opened(source) as lines:
        return create_all(session, _requests(lines), timeout or PATIENCE_S)


def create_all(session: Session, requests: Iterable[dict[str, Any]], timeout_s: float) -> int:
    """Create schedules, print what became of those that were not, and count all; an exit code."""
    counts: Counter[str] = Counter()
    with session.client() as client:
        for verdict in client.create_all(requests, timeout_s=timeout_s):
            outcome = verdict.outcome
            assert outcome is not None, "a verdict that was waited for has its outcome"
            counts[verdict.code if outcome == "DUPLICATE" and verdict.code else outcome] += 1
            if not session.printer.for_people:
                session.printer.one(verdict_json(verdict), "")
            elif outcome not in ("ACCEPTED", "DUPLICATE"):
                session.printer.one({}, verdict_text(verdict, 0))
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    session.printer.note(f"{sum(counts.values())} schedules: {told or 'none'}")
    if counts["REJECTED"]:
        return REFUSED
    return CONFLICTING if counts["CONFLICT"] else 0


def _opened(source: Path) -> IO[bytes]:
    try:
        return sys.stdin.buffer if str(source) == "-" else source.open("rb")
    except OSError as error:
        raise WrongUse(f"{source} cannot be read: {error.strerror}.") from None


def _requests(lines: IO[bytes]) -> Iterator[dict[str, Any]]:
    import orjson

    from belfry.client.portable import NotPortable, request_fields

    for number, line in enumerate(lines, 1):
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
    import orjson

    return orjson.dumps(found).decode()
