"""What is remembered of expressions is bounded, however many rules are shown for however long."""

from __future__ import annotations

import tracemalloc

from belfry.schedules.triggers.clock import Clock
from belfry.schedules.triggers.expression import MOST_KEPT, Expression
from belfry.schedules.triggers.zones import zone

MOST_MB = 100


def walked(number: int) -> Clock:
    """The clock of an expression of its own, asked for a thousand instants as a preview asks."""
    found = Clock(Expression(f"{number % 60} {number // 60} * * *"), zone("UTC"))
    instant_ms = 1_700_000_000_000
    for _ in range(1_000):
        instant_ms = found.memo.get(instant_ms) or found.remember(instant_ms)
    return found


def test_all_that_are_kept_take_less_than_a_hundred_megabytes() -> None:
    walked(0)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [walked(number) for number in range(40)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    each = (after - before) / len(kept)
    assert each * MOST_KEPT < MOST_MB * 1e6, f"{each:.0f} bytes each"
