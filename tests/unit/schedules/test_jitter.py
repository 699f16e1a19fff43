"""Jitter spreads, stays within its bound, and is the same at every attempt."""

from __future__ import annotations

import pytest

from belfry.schedules.jitter import jitter_ms

T0 = 1_800_000_000_000


def test_jitter_is_a_function_of_schedule_and_instant() -> None:
    assert jitter_ms(b"demo/a", T0, 1_000) == jitter_ms(b"demo/a", T0, 1_000)
    assert len({jitter_ms(b"demo/%d" % n, T0, 10**9) for n in range(100)}) == 100
    assert len({jitter_ms(b"demo/a", T0 + n, 10**9) for n in range(100)}) == 100


def test_jitter_reaches_both_ends_of_its_bound_and_nothing_beyond() -> None:
    assert {jitter_ms(b"demo/%d" % n, T0, 3) for n in range(100)} == {0, 1, 2, 3}
    assert jitter_ms(b"demo/a", T0, 0) == 0


@pytest.mark.parametrize(
    ("schedule", "nominal_ms", "most_ms", "delay_ms"),
    [
        (b"t/a", T0, 60_000, 13_018),
        (b"t/a", T0 + 60_000, 60_000, 53_530),
        (b"t/a", T0, 1, 0),
        (b"demo/daily report", T0, 86_400_000, 83_901_832),
    ],
)
def test_frozen_delays(schedule: bytes, nominal_ms: int, most_ms: int, delay_ms: int) -> None:
    """Written once and never changed: a schedule that waits must not move with a release."""
    assert jitter_ms(schedule, nominal_ms, most_ms) == delay_ms
