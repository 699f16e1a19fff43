"""An owner is silent only when everybody else was heard well all the time.

heard ─────── look ── look ── look ── … ── over
  0          1/3 of time-out            time-out
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from belfry.group.silence import LONGEST_GAP_MS, LOOK_EVERY_MS, PROMPT_MS, Silence

PATIENCE = 1_000.0


def until_over(
    silence: Silence,
    *,
    end: Callable[[float], int] = lambda _: 50,
    takes: Callable[[float], float] = lambda _: 2.0,
    gaps: Callable[[float], float] = lambda _: 0.0,
    most_ms: float = 10_000.0,
) -> float | None:
    """When the time-out is over, for a log that was read up to 50 and ends at `end(now)`."""
    now_ms = 0.0
    while now_ms < most_ms:
        now_ms += 20 + gaps(now_ms)
        silence.here(now_ms)
        if silence.wants_look(now_ms):
            asked_ms, now_ms = now_ms, now_ms + takes(now_ms)
            silence.looked(asked_ms, now_ms, 50, end(now_ms))
        if silence.over(now_ms):
            return now_ms
    return None


def test_patience_ends_a_second_after_the_last_sign_of_life() -> None:
    found = until_over(Silence(PATIENCE, 0.0))
    assert found is not None
    assert 1_000 <= found < 1_100


def test_a_step_that_comes_is_a_sign_of_life() -> None:
    silence = Silence(PATIENCE, 0.0)
    silence.here(900.0)
    silence.heard(900.0)
    assert not silence.over(1_500.0)
    assert silence.over(1_900.0)


def test_an_open_transaction_that_grows_is_a_sign_of_life() -> None:
    assert until_over(Silence(PATIENCE, 0.0), end=lambda now_ms: 50 + int(now_ms)) is None


def test_an_open_transaction_that_a_dead_owner_left_is_none() -> None:
    found = until_over(Silence(PATIENCE, 0.0), end=lambda _: 70)
    assert found is not None
    assert 1_300 <= found < 1_500


def test_a_broker_that_answers_slowly_may_be_what_is_silent() -> None:
    assert until_over(Silence(PATIENCE, 0.0), takes=lambda _: 300.0) is None


def test_a_broker_that_stalled_for_a_while_gives_the_owner_its_time_again() -> None:
    found = until_over(Silence(PATIENCE, 0.0), takes=lambda now_ms: 400.0 if now_ms < 800 else 2.0)
    assert found is not None
    assert found > 1_700


def test_a_process_that_slept_accuses_nobody() -> None:
    found = until_over(
        Silence(PATIENCE, 0.0), gaps=lambda now_ms: 5_000.0 if 300 < now_ms < 340 else 0.0
    )
    assert found is not None
    assert found > 6_300


def test_a_broker_that_does_not_answer_is_waited_for() -> None:
    silence = Silence(PATIENCE, 0.0)
    silence.here(500.0)
    silence.unanswered(900.0)
    assert not silence.over(1_800.0)
    assert silence.over(1_900.0)


def test_looks_begin_at_a_third_of_the_time_out_and_leave_the_broker_time() -> None:
    silence = Silence(900.0, 5_000.0)
    assert not silence.wants_look(5_299.0)
    assert silence.wants_look(5_300.0)
    silence.looked(5_300.0, 5_302.0, 50, 50)
    assert not silence.wants_look(5_301.0 + LOOK_EVERY_MS)
    assert silence.wants_look(5_302.0 + LOOK_EVERY_MS)


@pytest.mark.parametrize(("gap_ms", "accuses"), [(LONGEST_GAP_MS, True), (601.0, False)])
def test_a_gap_is_too_long_beyond_its_bound(gap_ms: float, accuses: bool) -> None:
    silence = Silence(PATIENCE, 0.0)
    silence.here(gap_ms)
    assert silence.over(PATIENCE) == accuses


@pytest.mark.parametrize(("took_ms", "accuses"), [(PROMPT_MS, True), (251.0, False)])
def test_an_answer_is_slow_beyond_its_bound(took_ms: float, accuses: bool) -> None:
    silence = Silence(PATIENCE, 0.0)
    silence.looked(PATIENCE - took_ms, PATIENCE, 50, 50)
    assert silence.over(PATIENCE) == accuses


def test_the_first_record_of_a_log_is_a_sign_of_life() -> None:
    silence = Silence(PATIENCE, 0.0)
    silence.looked(500.0, 502.0, 0, 1)
    assert not silence.over(1_499.0)
    assert silence.over(1_500.0), "it counts from when it was asked"
