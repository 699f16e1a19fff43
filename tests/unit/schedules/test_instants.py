"""Instants and durations as texts: fractions, faults and the shortest way to write them."""

from __future__ import annotations

import pytest

from belfry.schedules.instants import format_duration, parse_duration, parse_instant

NINE = 1_796_115_600_000  # 2026-12-01T09:00:00Z


@pytest.mark.parametrize(
    ("fraction", "ms"),
    [("", 0), (".5", 500), (".05", 50), (".005", 5), (".123", 123), (".1230", 123), (".000", 0),
     (".1231", 124), (".0001", 1), (".00000001", 1), (".9999", 1_000), (".120000", 120)],
)  # fmt: skip
def test_a_fraction_is_rounded_up_to_the_millisecond(fraction: str, ms: int) -> None:
    """So nothing is due before the instant that was asked for."""
    assert parse_instant(f"2026-12-01T09:00:00{fraction}Z") == NINE + ms


@pytest.mark.parametrize(
    ("text", "fault"),
    [("-5m", "it is negative; "), ("1mo", "months and years have no fixed length; "), ("soon", "")],
)
def test_a_duration_that_cannot_be_read_is_told_why(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match="no duration") as told:
        parse_duration(text)
    assert str(told.value).startswith(f"{text!r} is no duration: {fault}give ")


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0s"), (1, "1ms"), (999, "999ms"), (1_001, "1s1ms"), (60_000, "1m"), (90_000, "1m30s"),
     (3_600_000, "1h"), (864_000_000, "10d"), (90_061_001, "1d1h1m1s1ms")],
)  # fmt: skip
def test_a_duration_is_written_in_whole_units(ms: int, text: str) -> None:
    assert format_duration(ms) == text
    assert parse_duration(text) == ms
