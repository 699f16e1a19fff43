"""What an import or a restore did with each schedule: told in a word, counted, and printed.

verdict on CREATE                     told       counted as
ACCEPTED                              made       made
CONFLICT, the same definition         left       left, for they live
CONFLICT, another one                 conflict   conflict
TOO_LATE, or CANCELLED since          left       left, for they have fired …
any other                             refused    refused
"""

from __future__ import annotations

from collections import Counter
from time import monotonic, time
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from belfry.cli.results import verdict_json
from belfry.cli.shown import from_now, plain
from belfry.schedules.instants import format_instant
from belfry.schedules.outcomes import Outcome

if TYPE_CHECKING:
    from belfry.cli.shown import Printer, Tell
    from belfry.client.verdict import Verdict

REFUSED: Final = "refused"
CONFLICT: Final = "conflict"
# Seconds for which outcomes are held before they are printed together.
PRINTED_S: Final = 0.1


class ImportOutcomes:
    """Counts and prints what became of schedules; those of a tenth of a second together.

    To print and flush each by itself took longer than to ask for it. The end of the block prints
    those that are left, also where an error ends it.
    """

    def __init__(self, printer: Printer, shown: Tell) -> None:
        """`shown` prints one of them for programs."""
        self._printer = printer
        self._shown = shown
        self.counts: Counter[str] = Counter()
        self._held: list[tuple[Became, Verdict]] = []
        self._print_s = monotonic() + PRINTED_S

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._print()

    def tell(self, verdict: Verdict) -> None:
        """Count one, and print it soon; in the end at the latest."""
        found = became(verdict, int(time() * 1000))
        self.counts[found.counted] += 1
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
