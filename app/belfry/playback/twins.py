"""Steps that may have gone in several ways with the same bytes, and the state after each.

Where a schedule waits (in the timeline, in a backlog, behind a lock) and whose turn is next is in
no log.  Where a step held back due rows, and did not fire them, two sizes of it may be alike:

    step 309 fired nothing, its watermark is 57.371, and tenant a's events wait for an ack
    at most 10 000, at 57.371    what is due up to then is in a's backlog
    at most 100, at 58.829       one more is, due at 57.372: the step had room for it
    step 310                     fires as the second says

Both go on as players of their own (`branches.py`), until the bytes of one of them differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Final

from belfry.playback.attempts import Attempt
from belfry.playback.logged import LoggedStep
from belfry.store.ordered_map import OrderedMap

# Before the key that RocksDB's maps end with.
ALL_ROWS: Final = b"", b"\xff"
COPIED_AT_ONCE: Final = 10_000


def other_ways(
    fit: Attempt,
    step: LoggedStep,
    sizes: Sequence[int],
    seen: list[tuple[object, ...]],
    tried: Callable[[Attempt], tuple[object, ...] | None],
) -> list[Attempt]:
    """One attempt for each other thing that a step may leave behind, with the same bytes as `fit`.

    A step may have been of one of these `sizes`.  `seen` are the states that others leave, that of
    the likeliest first, and takes new ones.  `tried` gives the state after an attempt; None: other
    bytes.
    """
    leaves, others = seen[0], list[Attempt]()
    for attempts in _in_doubt(fit, step, sizes):
        fitted = False
        for attempt in attempts:
            found = tried(attempt)
            if found is not None and found not in seen:
                seen.append(found)
                others.append(attempt)
            if found == leaves or (fitted and found is None):
                # A larger one does the same, or more than the step has done.
                break
            fitted = fitted or found is not None
    return others


def _in_doubt(fit: Attempt, step: LoggedStep, sizes: Sequence[int]) -> Iterator[list[Attempt]]:
    """Attempts by instants that the step may have been at, from small sizes to large ones.

    Fires tell the instant.  Where nothing fired, the watermark may be of long before: the step may
    have stopped amid due rows.  Or it is the instant, and the step let go rows behind a lock, of
    which no row tells.  Or the step did not look at due rows.
    """
    fired = step.manifest.fired
    instants = [max(fit.now_ms, step.written_ms), fit.now_ms, step.manifest.watermark_ms]
    sizes = sorted({fit.at_most, max(1, fired), *(each for each in sizes if each >= fired)})
    for now_ms in [fit.now_ms] if fired else dict.fromkeys(instants):
        yield [fit._replace(now_ms=now_ms, at_most=size, fires=True) for size in sizes]
    if not fired:
        yield [fit._replace(fires=False)]


def copied(rows: OrderedMap, into: OrderedMap) -> OrderedMap:
    """An empty map with all rows of another one."""
    left = rows.scan(*ALL_ROWS)
    while some := dict(islice(left, COPIED_AT_ONCE)):
        into.write(some)
    return into


def same_rows(one: OrderedMap, other: OrderedMap) -> bool:
    """Whether two maps hold the same."""
    return all(a == b for a, b in zip_longest(one.scan(*ALL_ROWS), other.scan(*ALL_ROWS)))
