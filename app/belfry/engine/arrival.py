"""Arrival: the instant that a request counts from, which is the meaning of *accepted*.

    belfry.schedules   ──●──────────────────────────── append time, by the broker's clock
    owner                        ●──────────────────── read, perhaps days later

A request counts from when Kafka had it, on whichever topic it came in first.  So it means the same
however late it is read, whichever worker reads it, and however often a step is done again.  An
occurrence that is due between the two instants exists: it is late.

    12:00:00.000   AFTER 5m is appended
    12:00:00.004   a worker reads it               due 12:05:00.000
    or, all workers being down,
    12:20:00.000   a worker reads it               due 12:05:00.000: it fires 15 min late, unless
                                                   it says that it may not be so late
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.instant_bounds import SECONDS_LIMIT
from belfry.wire.batch import SourceBatch

# Brokers' clocks differ by less, and the clock guard's instant lags behind by less.
MOST_AHEAD_MS: Final = 60_000


def arrival_ms(appended_ms: int, now_ms: int) -> int:
    """When a request with this append time came in; `now_ms` where that cannot be true.

    A record has no append time, or any that its producer likes, where somebody has changed the
    topic's settings.
    """
    return appended_ms if SECONDS_LIMIT <= appended_ms <= now_ms + MOST_AHEAD_MS else now_ms


def newest_ms(batch: SourceBatch) -> int | None:
    """The newest append time of a batch; None where it has none that can be believed.

    It is past by the brokers' clock, so it stands for now where the worker's clock is not trusted.
    """
    if not batch.records:
        return SECONDS_LIMIT
    found = max(record[1] for record in batch.records) if batch.appended else 0
    return found if found >= SECONDS_LIMIT else None
