"""Debouncing: which longest waits are allowed, and the instants of a run of requests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belfry.schedules.checks import trigger_problem
from belfry.schedules.debounce import slid_ms
from belfry.schedules.fields import EMPTY
from belfry.schedules.preview import words_of

NOW = 1_800_000_000_000
MINUTE = 60_000


def asked(**fields: Any) -> Any:
    names = {"tenant": "demo", "schedule_id": "a", "kind": "AFTER", "delay_ms": 5 * MINUTE}
    return {**EMPTY, **names, **fields}


#        a        b        c        d
#   0    ├────────┼────────┼────────┼────────┤ 12
#        └──5     └──8     └──11    └─ ─ ─ ─ ┤── ─ 14
@pytest.mark.parametrize(("arrived", "due"), [(0, 5), (3, 8), (6, 11), (7, 12), (9, 12), (12, 12)])
def test_each_request_slides_the_instant_up_to_the_longest_wait(arrived: int, due: int) -> None:
    found = slid_ms(NOW + arrived * MINUTE, 5 * MINUTE, NOW, 12 * MINUTE)
    assert found == NOW + due * MINUTE


DELAYS = st.integers(0, 1_000)


@given(st.lists(DELAYS, min_size=1), DELAYS, DELAYS)
def test_a_run_is_due_when_a_timer_that_is_set_anew_would_ring(
    gaps: list[int], delay_ms: int, more_ms: int
) -> None:
    """The oracle walks from millisecond to millisecond of importance, as a timer does."""
    longest_ms, first_ms, now_ms = delay_ms + more_ms, NOW, NOW
    rings_ms = first_ms + delay_ms
    for gap_ms in gaps:
        if now_ms + gap_ms >= rings_ms:
            break
        now_ms += gap_ms
        left_ms = longest_ms - (now_ms - first_ms)
        rings_ms = now_ms + (delay_ms if delay_ms < left_ms else left_ms)
        assert slid_ms(now_ms, delay_ms, first_ms, longest_ms) == rings_ms
        assert now_ms <= rings_ms <= first_ms + longest_ms


@pytest.mark.parametrize("longest_ms", [5 * MINUTE, 5 * MINUTE + 1, 100 * 36525 * 864_000])
def test_a_wait_from_the_delay_on_is_allowed(longest_ms: int) -> None:
    assert trigger_problem(asked(max_wait_ms=longest_ms), NOW) is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"max_wait_ms": 5 * MINUTE - 1}, "shorter than delay_ms (300000): give a longer wait"),
        ({"max_wait_ms": 100 * 36525 * 864_000 + 1}, "longer than 100 years (3155760000000)"),
        ({"max_wait_ms": 7, "kind": "AT", "at": NOW, "delay_ms": None}, "kind AT has no delay"),
        ({"max_wait_ms": 7, "kind": "EVERY", "interval_ms": 5}, "kind EVERY has no delay"),
    ],
)
def test_others_are_refused_with_what_is_allowed(fields: dict[str, Any], said: str) -> None:
    found = trigger_problem(asked(**fields), NOW)
    assert found is not None
    assert found.code == "bad_max_wait"
    assert said in found.reason


def test_a_moved_delay_comes_back_from_an_export() -> None:
    standing = {"next_at": NOW, "occurrence": 0, "version": 2, "paused": False}
    assert trigger_problem(asked(max_wait_ms=7, standing=standing), NOW) is None


def test_it_is_told_in_words() -> None:
    assert words_of(asked(max_wait_ms=60 * MINUTE)) == (
        "Once, 5m after Kafka has the request; each further request slides it, at the latest to 1h"
        " after the first one"
    )
