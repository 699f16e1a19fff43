"""A range of instants on the command line: from one on, and before another one or now.

`backfill` and `redrive` take such a range, by ``--from`` and ``--until``. Its end is fixed when the
command begins, so later events do not come into the range while the command counts and asks.
"""

from __future__ import annotations

from time import time

from belfry.cli.failures import WrongUse
from belfry.schedules.instants import format_instant


def range_end(from_ms: int, until_ms: int | None) -> int:
    """Where the range ends, in epoch ms: now unless given.

    `from_ms` is in it, the end is not. Raises `WrongUse` where it begins no sooner than it ends,
    with what to change.
    """
    end_ms = int(time() * 1000) if until_ms is None else until_ms
    if from_ms < end_ms:
        return end_ms
    begin = f"--from {format_instant(from_ms)}"
    if until_ms is None:
        raise WrongUse(f"{begin} is not over yet: give an instant of the past, or --until as well.")
    wrong = f"{begin} is not before --until {format_instant(end_ms)}"
    todo = "give a later --until" if from_ms == end_ms else "exchange them"
    raise WrongUse(f"{wrong}: {todo}.")
