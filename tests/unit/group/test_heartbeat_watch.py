"""What a standby may say of an owner by its heartbeats, to the millisecond.

assigned ───── excused for 2 s ───── first heartbeat ─ second: it lives ──── none: it is quiet
"""

from __future__ import annotations

from math import inf

import pytest

from belfry.group.heartbeat_watch import FOUND_AGAIN_MS
from belfry.group.silence import LONGEST_GAP_MS, PROMPT_MS
from tests.unit.group.looking import BEGUN, LATER, Looking, beat

LIMIT = 1_000.0


def test_an_owner_that_was_just_assigned_is_excused_and_then_it_is_quiet() -> None:
    found = Looking(beats=False)
    assert found.excused(BEGUN + FOUND_AGAIN_MS - 1)
    assert found.quiet_ms(BEGUN + FOUND_AGAIN_MS - 1) == 0.0
    assert not found.excused(BEGUN + FOUND_AGAIN_MS)
    assert found.quiet_ms(LATER) == 1_000
    assert found.heard_ms is None
    assert not found.lives(LATER, LIMIT)


def test_the_first_heartbeat_may_be_a_dead_owners_and_the_second_one_is_none() -> None:
    found = Looking(beats=False)
    found.looked(LATER, LATER, 7, beat(1))
    assert not found.lives(LATER, LIMIT)
    found.looked(LATER + 100, LATER + 100, 7, beat(1))
    assert not found.lives(LATER + 100, LIMIT), "it is the same one"
    found.looked(LATER + 200, LATER + 200, 8, beat(1))
    assert found.lives(LATER + 200, LIMIT)
    assert found.quiet_ms(LATER + 200) == 0


def test_silence_counts_from_the_last_heartbeat() -> None:
    found = Looking()
    found.look_on(LATER, LATER + 900)
    assert found.quiet_ms(LATER + 900) == 900
    assert found.lives(LATER + LIMIT - 1, LIMIT)
    assert not found.lives(LATER + LIMIT, LIMIT)


def test_a_heartbeat_vouches_for_what_it_names_while_it_is_fresh() -> None:
    found = Looking()
    assert found.vouches(1, LATER, LIMIT)
    assert not found.vouches(3, LATER, LIMIT)
    assert not found.vouches(1, LATER + LIMIT, LIMIT)
    found.looked(LATER + 100, LATER + 100, 99, beat(3))
    assert found.vouches(3, LATER + 100, LIMIT)
    assert not found.vouches(1, LATER + 100, LIMIT)


def test_a_heartbeat_that_another_worker_left_says_nothing() -> None:
    found = Looking()
    found.looked(LATER + 100, LATER + 100, 99, beat(3, worker="another"))
    assert found.heard_ms == LATER
    assert not found.vouches(3, LATER + 100, LIMIT)
    assert found.vouches(1, LATER + 100, LIMIT)


@pytest.mark.parametrize(("took_ms", "quiet_ms"), [(PROMPT_MS, 500.0), (251.0, 0.0)])
def test_an_answer_that_is_slow_may_be_what_was_silent(took_ms: float, quiet_ms: float) -> None:
    found = Looking()
    found.look_on(LATER, LATER + 200)
    found.look(LATER + 500, took_ms)
    assert found.quiet_ms(LATER + 500) == quiet_ms


@pytest.mark.parametrize(("gap_ms", "quiet_ms"), [(LONGEST_GAP_MS, 600.0), (601.0, 0.0)])
def test_who_did_not_look_for_long_accuses_nobody(gap_ms: float, quiet_ms: float) -> None:
    found = Looking()
    now_ms = LATER + gap_ms
    assert found.excused(now_ms) == (gap_ms > LONGEST_GAP_MS)
    found.look(now_ms)
    assert found.quiet_ms(now_ms) == quiet_ms
    found.look_on(now_ms, now_ms + 400)
    assert found.quiet_ms(now_ms + 400) == quiet_ms + 400


def test_a_broker_that_was_away_gives_the_owner_time_to_find_it() -> None:
    found = Looking()
    found.unanswered(LATER + 100)
    assert found.away_ms == LATER + 100
    back_ms = LATER + 100 + FOUND_AGAIN_MS
    found.look_on(LATER + 100, back_ms)
    assert found.excused(back_ms - 1)
    assert not found.excused(back_ms)
    # A slow answer does not shorten the excuse, and does not lengthen what is longer.
    found.unanswered(back_ms)
    found.looked(back_ms + 1, back_ms + 301, 999, None)
    assert found.excused(back_ms + FOUND_AGAIN_MS - 1)


def test_before_any_failure_the_broker_was_never_away() -> None:
    assert Looking().away_ms == -inf
