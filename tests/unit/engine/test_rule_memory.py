"""Rules that are kept compiled are bounded, however many different ones a tenant asks for."""

from __future__ import annotations

import tracemalloc

from belfry.engine.compiled_rule import CompiledRule, compiled, compiled_bare
from belfry.schedules.rule import Rule, encode_rule
from belfry.schedules.triggers import MOST_RULES

MOST_MB = 120
SOME = 200


def rule(number: int) -> bytes:
    """A rule of its own, as a schedule of each customer has one."""
    minute, hour, day = number % 60, number // 60 % 24, 1 + number // 1_440 % 28
    return encode_rule(Rule("CRON", when=f"{minute},59 {hour},23 {day} * *"))


def fired(number: int) -> CompiledRule:
    """A rule that was asked when it fires next."""
    found = compiled(rule(number))
    found.after_ms(1_800_000_000_000)
    return found


def test_all_that_are_kept_take_little_more_than_a_hundred_megabytes() -> None:
    fired(SOME)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [fired(number) for number in range(SOME)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    each = (after - before) / len(kept)
    assert compiled_bare.cache_info().maxsize == MOST_RULES
    assert each * MOST_RULES < MOST_MB * 1e6, f"{each:.0f} bytes each"
