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
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import monotonic, time
from typing import IO, TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Self

import typer

from belfry.cli.changelog import judges
from belfry.cli.day_files import whole
from belfry.cli.failures import Exit, WrongUse
from belfry.cli.options import seconds
from belfry.cli.payload_keys import decrypting
from belfry.cli.results import verdict_json
from belfry.cli.session import Session
from belfry.cli.shown import from_now, plain
from belfry.schedules.instants import format_instant
from belfry.schedules.outcomes import Outcome

if TYPE_CHECKING:
    from belfry.cli.shown import Printer, Tell
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
REFUSED: Final = "refused"
CONFLICT: Final = "conflict"
# Seconds for which outcomes are held before they are printed together.
PRINTED_S: Final = 0.1


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
    needs no memory.
    `timeout_s` is for the verdicts of one batch of them. Schedules that were cancelled since
    `since_ms` (epoch ms; None: that does not matter) are left. A refusal weighs more than a
    conflict. Raises `BelfryError` if Kafka or the workers do not answer: created schedules stay.
    """
    from belfry.client.portable import names_of

    counts: Counter[str] = Counter()
    printer = session.printer
    with (
        session.client() as client,
        printer.several() as shown,
        _Told(printer, shown, counts) as told,
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
                    told.tell(_cancelled(name, at_ms))

        left = wanted() if gone else requests
        asked = session.printer.counted(decrypting(session, left), "schedules asked for")
        for verdict in client.create_all(asked, timeout_s=timeout_s):
            told.tell(verdict)
    listed = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    session.printer.note(f"{sum(counts.values())} schedules: {listed or 'none'}")
    if counts[REFUSED]:
        return Exit.ERROR
    return Exit.CONFLICT if counts[CONFLICT] else Exit.OK


class _Told:
    """Counts and prints what became of schedules, a tenth of a second's at a time.

    To print each by itself, and to flush it, cost more than to ask for it.
    """

    def __init__(self, printer: Printer, shown: Tell, counts: Counter[str]) -> None:
        """`shown` prints one of them for programs."""
        self._printer = printer
        self._shown = shown
        self._counts = counts
        self._held: list[tuple[Became, Verdict]] = []
        self._print_s = monotonic() + PRINTED_S

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._print()

    def tell(self, verdict: Verdict) -> None:
        """Count one, and print it soon; in the end at the latest."""
        found = became(verdict, int(time() * 1000))
        self._counts[found.counted] += 1
        self._held.append((found, verdict))
        if monotonic() > self._print_s:
            self._print()

    def _print(self) -> None:
        held, self._held = self._held, []
        self._print_s = monotonic() + PRINTED_S
        if self._printer.for_people:
            self._printer.lines(
                f"{found.result:8}  {plain(verdict.name)}: {found.what}" for found, verdict in held
            )
            return
        for found, verdict in held:
            self._shown({"result": found.result, **verdict_json(verdict)}, "")


class Became(NamedTuple):
    """What became of one schedule of a file: in a word, in a sentence, and how it is counted.

    `result` is made, left, conflict or refused; `counted` may tell kinds of "left" apart.
    """

    result: str
    what: str
    counted: str


def became(verdict: Verdict, now_ms: int) -> Became:
    """What an import did with a schedule, by the verdict on its request.

    CREATE is refused as a conflict where the name is taken. The code ``same_definition`` says that
    it is taken by this very schedule, which a repeated import made.
    """
    reason = plain(verdict.reason or "")
    outcome = verdict.outcome
    due = ""
    if verdict.due_ms is not None:
        due = f"due {format_instant(verdict.due_ms)} ({from_now(verdict.due_ms, now_ms)})"
    if outcome is Outcome.ACCEPTED:
        return Became("made", f"version {verdict.version}, {due}", "made")
    if outcome is Outcome.CONFLICT and verdict.code == "same_definition":
        return Became("left", f"it lives, as it is told here, {due}", "left, for they live")
    if outcome is Outcome.TOO_LATE:
        return Became("left", reason, "left, for they have fired or ended since")
    if outcome is Outcome.CANCELLED:
        return Became("left", reason, "left, for they were cancelled since")
    if outcome is Outcome.CONFLICT:
        return Became(CONFLICT, "another definition lives under this name; it stays", CONFLICT)
    return Became(REFUSED, f"{outcome} ({verdict.code}) {reason}", REFUSED)


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
