"""Throttling: which windows are allowed, and when one is over."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.fields import EMPTY
from belfry.schedules.rejections import Rejection
from belfry.schedules.throttle import LONGEST_WINDOW_MS, is_within, throttle_problem


def asked(**fields: Any) -> Any:
    return {**EMPTY, "kind": "AFTER", "delay_ms": 7, **fields}


@pytest.mark.parametrize("window_ms", [None, 1, LONGEST_WINDOW_MS])
def test_windows_of_up_to_a_day_are_allowed(window_ms: int | None) -> None:
    assert throttle_problem(asked(throttle_ms=window_ms)) is None


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"throttle_ms": 0},
         ("throttle_ms 0 is not allowed: 1 to 86400000, a day, for so long the end of a schedule is"
         " remembered.")),
        ({"throttle_ms": LONGEST_WINDOW_MS + 1},
         ("throttle_ms 86400001 is not allowed: 1 to 86400000, a day, for so long the end of a"
         " schedule is remembered.")),
        ({"throttle_ms": 7, "kind": "EVERY"},
         ("throttle_ms is set, and kind EVERY recurs: its rule says how often it fires. Leave it"
         " empty, or use kind AT or AFTER.")),
        ({"throttle_ms": 7, "max_wait_ms": 9},
         "throttle_ms leaves what waits as it is, and max_wait_ms slides it: keep one of them."),
    ],
)  # fmt: skip
def test_others_are_refused_with_what_is_allowed(fields: dict[str, Any], why: str) -> None:
    assert throttle_problem(asked(**fields)) == Rejection("bad_throttle", why)


def test_the_end_of_a_window_is_no_part_of_it() -> None:
    assert is_within(1_009, 1_000, 10)
    assert not is_within(1_010, 1_000, 10)
