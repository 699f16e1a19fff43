"""How far long work is: a bar where somebody looks, a note now and then where nobody does.

    at a terminal      requests taken in ━━━━━━━━╺━━━━━ 240,000/400,000 0:00:03      gone at the end
    to a file, a log   240,000 of 400,000 requests taken in …                        every 5 s
    --output json      nothing: a program waits for the result alone

All of it goes to stderr, so that results can be sent elsewhere.

The work tells how far it is, and only then anything is drawn, at most ten times a second. No thread
draws by itself: `belfry bench` measures on this machine, and partly this very process, and the cost
of the display must not be in the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

from belfry.cli.shown import PROGRESS_S

if TYPE_CHECKING:
    from rich.console import Console

    from belfry.cli.shown import Printer

# It takes the counted noun, how many there are by now, and how many there will be.
Tell = Callable[[str, int, int], None]
# Seconds between two drawings of the bar.
DRAWN_S: Final = 0.1


@contextmanager
def progress_of(printer: Printer, now_s: Callable[[], float] = monotonic) -> Iterator[Tell]:
    """The function for long work to call as it goes on; the bar is gone behind the block.

    Nothing else may be printed within the block.
    """
    if not printer.for_people:
        yield lambda _what, _done, _of: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with _bar(console, now_s) as tell:
            yield tell
    else:
        yield _notes(printer, now_s)


def _notes(printer: Printer, now_s: Callable[[], float]) -> Tell:
    """A note every `PROGRESS_S` seconds."""
    next_s = now_s() + PROGRESS_S

    def tell(what: str, done: int, of: int) -> None:
        """Say it, if it is time to."""
        nonlocal next_s
        if (at_s := now_s()) >= next_s:
            printer.note(f"{done:,} of {of:,} {what} …")
            next_s = at_s + PROGRESS_S

    return tell


@contextmanager
def _bar(console: Console, now_s: Callable[[], float]) -> Iterator[Tell]:
    """A bar that begins anew with each thing that is counted."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    counts = TextColumn("{task.completed:,.0f}/{task.total:,.0f}")
    columns = (TextColumn("{task.description}"), BarColumn(), counts, TimeRemainingColumn())
    counted, drawn_s = "", now_s() - DRAWN_S
    with Progress(
        *columns,
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as progress:
        task = progress.add_task("", total=1, visible=False)

        def tell(what: str, done: int, of: int) -> None:
            """Draw it, if it is something new or time to."""
            nonlocal counted, drawn_s
            is_new, at_s = what != counted, now_s()
            if not is_new and done < of and at_s < drawn_s + DRAWN_S:
                return
            counted, drawn_s, total = what, at_s, max(of, done)
            # Each of the two draws.
            if is_new:
                progress.reset(task, completed=done, total=total, description=what, visible=True)
            else:
                progress.update(task, completed=done, total=total, refresh=True)

        yield tell
