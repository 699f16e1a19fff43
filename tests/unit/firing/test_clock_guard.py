"""The clock guard: which instant is now, and when nobody knows.

local   ──sent────────────────acknowledged──►
broker  ───────appended─────────────────────►
"""

from __future__ import annotations

import pytest

from belfry.firing.clock_guard import ON_THE_WAY_MS, PROBE_AGE_MS, SEVERAL, SPAN_MS, ClockGuard

T0 = 1_800_000_000_000
M0 = 1_000
OFFSET = T0 - M0


def probe(
    guard: ClockGuard, sent_ms: int, appended_ms: int, acknowledged_ms: int, stepped_ms: int = 0
) -> None:
    """A probe by a clock that lies `OFFSET` above the monotonic one, and what it has stepped."""
    at_ms = acknowledged_ms - OFFSET - stepped_ms
    guard.probed(sent_ms, appended_ms, acknowledged_ms, at_ms)


@pytest.fixture
def guard() -> ClockGuard:
    """A guard that has seen both clocks and one good probe."""
    guard = ClockGuard(500)
    guard.observe(T0, M0)
    probe(guard, T0, T0 + 2, T0 + 4)
    return guard


def test_nothing_fires_before_the_clocks_were_compared() -> None:
    guard = ClockGuard(500)
    guard.observe(T0, 1_000)
    assert not guard.may_fire
    assert guard.wants_probe(1_000)
    assert "not been compared" in guard.paused_because


def test_a_probe_from_before_the_first_look_proves_nothing() -> None:
    # The clock steps by 40 s after the probe was sent, and before anybody has looked at it.
    guard = ClockGuard(500)
    guard.probed(T0, T0 + 2, T0 + 40_005, M0 + 5)
    guard.observe(T0 + 40_005, 1_005)
    assert not guard.may_fire
    assert guard.wants_probe(1_005)


def test_clocks_that_agree_cost_nothing(guard: ClockGuard) -> None:
    assert guard.may_fire
    assert guard.skew_ms == 0
    assert guard.now_ms(T0 + 7) == T0 + 7


def test_a_clock_that_is_ahead_waits_for_the_brokers(guard: ClockGuard) -> None:
    # local  0────100────►     broker reads 60 when the local clock reads at least 100
    probe(guard, T0 + 100, T0 + 60, T0 + 102)
    assert guard.skew_ms == 40
    assert guard.now_ms(T0 + 140) == T0 + 100


def test_the_largest_bound_counts(guard: ClockGuard) -> None:
    for ahead_ms in (10, 40, 20):
        probe(guard, T0 + ahead_ms, T0, T0 + 41)
    assert guard.skew_ms == 40


def test_a_slow_first_probe_lets_nothing_fire_early() -> None:
    # The clock is 400 ms ahead, and the first record travels for 219 ms: its lower bound is 181.
    guard = ClockGuard(500)
    guard.observe(T0 + 400, M0)
    guard.probed(T0 + 400, T0 + 219, T0 + 620, M0 + 220)
    assert guard.now_ms(T0 + 1_400) <= T0 + 1_000 + ON_THE_WAY_MS
    assert guard.wants_probe(M0 + 221)
    # A quick one tells the truth, and its answer was slow.
    guard.probed(T0 + 1_400, T0 + 1_001, T0 + 1_700, M0 + 1_300)
    assert guard.skew_ms == 399


def test_probes_that_stay_slow_are_not_asked_for_without_end() -> None:
    guard = ClockGuard(500)
    guard.observe(T0, M0)
    for number in range(SEVERAL):
        assert guard.wants_probe(M0), number
        probe(guard, T0, T0 + 40, T0 + 80)
    assert not guard.wants_probe(M0 + 80)
    assert guard.skew_ms == 40 - ON_THE_WAY_MS


def test_bounds_that_are_old_are_forgotten(guard: ClockGuard) -> None:
    # The clock drifts ahead of the broker's: an upper bound of long ago no longer holds.
    for span in range(1, 4):
        at_ms = T0 + span * SPAN_MS
        probe(guard, at_ms, at_ms - 9 * span + 12, at_ms + 13)
    assert guard.skew_ms == 13 + 18 - 12 - ON_THE_WAY_MS


def test_probes_that_contradict_older_ones_replace_them(guard: ClockGuard) -> None:
    # The broker's clock is set back by 300 ms, and forward again.
    probe(guard, T0 + 10, T0 - 288, T0 + 14)
    assert guard.skew_ms == 300
    probe(guard, T0 + 20, T0 + 22, T0 + 24)
    assert guard.skew_ms == 0


def test_a_clock_that_is_behind_is_never_moved_ahead(guard: ClockGuard) -> None:
    probe(guard, T0, T0 + 300, T0 + 5)
    assert guard.may_fire
    assert guard.now_ms(T0) == T0


@pytest.mark.parametrize(("appended", "words"), [(-501, "501 ms ahead of"), (507, "502 ms behind")])
def test_too_much_skew_pauses_and_says_so(guard: ClockGuard, appended: int, words: str) -> None:
    probe(guard, T0, T0 + appended, T0 + 5)
    assert not guard.may_fire
    assert words in guard.paused_because
    assert "NTP" in guard.paused_because


def test_a_slow_probe_is_no_skew(guard: ClockGuard) -> None:
    probe(guard, T0, T0 + 4_000, T0 + 9_000)
    assert guard.may_fire
    assert guard.skew_ms == 0


def test_a_slow_probe_of_which_nothing_else_is_known_holds_firing_back_and_pauses_nothing() -> None:
    guard = ClockGuard(500)
    guard.observe(T0, M0)
    probe(guard, T0, T0 + 4_000, T0 + 9_000)
    assert guard.may_fire
    assert guard.skew_ms == 5_000 - ON_THE_WAY_MS


def test_a_sane_probe_ends_the_pause(guard: ClockGuard) -> None:
    probe(guard, T0, T0 - 501, T0 + 5)
    probe(guard, T0 + 10, T0 + 12, T0 + 14)
    assert guard.may_fire
    assert guard.skew_ms == 0


@pytest.mark.parametrize("step_ms", [501, -501, 3_600_000])
def test_a_step_of_the_wall_clock_pauses_until_a_probe(guard: ClockGuard, step_ms: int) -> None:
    # wall ─────┐ step      monotonic ───────►
    #           └────────►
    guard.observe(T0 + 10 + step_ms, 1_010)
    assert not guard.may_fire
    assert f"stepped by {step_ms} ms" in guard.paused_because
    assert guard.wants_probe(1_010)
    probe(guard, T0 + step_ms, T0 + step_ms + 1, T0 + step_ms + 3, step_ms)
    assert guard.may_fire


def test_a_probe_from_before_a_step_that_somebody_saw_is_moved_by_it(guard: ClockGuard) -> None:
    # Another partition's thread sees the step while the acknowledgement waits to be told.
    guard.observe(T0 + 10 + 300, M0 + 10)
    probe(guard, T0 + 5, T0 + 7, T0 + 9)
    assert guard.now_ms(T0 + 10 + 300) == T0 + 10


def test_a_step_amid_a_probe_fires_nothing_early(guard: ClockGuard) -> None:
    guard.observe(T0 + 10 + 300, M0 + 10)
    probe(guard, T0 + 5, T0 + 11, T0 + 13 + 300, 300)
    assert guard.now_ms(T0 + 20 + 300) <= T0 + 20 + ON_THE_WAY_MS


def test_small_steps_add_up(guard: ClockGuard) -> None:
    # 400 ms three times are 1 200 ms: more than the tolerance of 500.
    trusted = []
    for step in (400, 800, 1_200):
        guard.observe(T0 + step, 1_000)
        trusted.append(guard.may_fire)
    assert trusted == [True, False, False]
    assert "stepped by 800 ms" in guard.paused_because


def test_a_small_step_ahead_fires_nothing_early_and_asks_for_a_probe(guard: ClockGuard) -> None:
    guard.observe(T0 + 310, 1_010)
    assert guard.may_fire
    assert guard.wants_probe(1_010)
    assert guard.now_ms(T0 + 310) == T0 + 10
    # The broker's clock says that the step was right.
    probe(guard, T0 + 310, T0 + 311, T0 + 313, 300)
    assert guard.now_ms(T0 + 320) == T0 + 320
    assert not guard.wants_probe(1_020)


def test_a_small_step_back_moves_nothing_ahead(guard: ClockGuard) -> None:
    guard.observe(T0 - 290, 1_010)
    assert guard.wants_probe(1_010)
    assert guard.now_ms(T0 - 290) == T0 - 290


@pytest.mark.parametrize("noise_ms", [-2, -1, 1, 2])
def test_the_noise_of_reading_two_clocks_is_no_step(guard: ClockGuard, noise_ms: int) -> None:
    guard.observe(T0 + 10 + noise_ms, 1_010)
    assert not guard.wants_probe(1_010)
    # What was gained counts all the same, and what was lost moves nothing ahead.
    assert guard.now_ms(T0 + 10 + noise_ms) == T0 + 10 + min(0, noise_ms)


def test_clocks_that_run_together_are_trusted_for_long(guard: ClockGuard) -> None:
    for second in range(1, 100):
        guard.observe(T0 + second * 1_000, 1_000 + second * 1_000)
    assert guard.may_fire


def test_the_clock_is_compared_again_now_and_then(guard: ClockGuard) -> None:
    # The probe was acknowledged when the monotonic clock read 1 004.
    assert not guard.wants_probe(1_004 + PROBE_AGE_MS - 1)
    assert guard.wants_probe(1_004 + PROBE_AGE_MS)


# -- the edges of what is allowed ------------------------------------------------------------------


def test_before_anything_is_known_the_local_clock_is_taken_as_it_is() -> None:
    guard = ClockGuard(500)
    assert (guard.skew_ms, guard.now_ms(T0)) == (0, T0)
    assert guard.paused_because == "the clock has not been compared with the broker's yet"


def test_a_step_that_is_just_allowed_pauses_nothing(guard: ClockGuard) -> None:
    guard.observe(T0 + 510, M0 + 10)
    assert guard.may_fire
    guard.observe(T0 + 511, M0 + 10)
    assert not guard.may_fire


@pytest.mark.parametrize("side", [1, -1])
def test_a_skew_that_is_just_allowed_pauses_nothing(side: int) -> None:
    guard = ClockGuard(500)
    guard.observe(T0, M0)
    probe(guard, T0, T0 - side * 500, T0)
    assert guard.paused_because == ""
    probe(guard, T0, T0 - side * 501, T0)
    assert f"501 ms {'ahead of' if side > 0 else 'behind'} the broker's" in guard.paused_because


def test_what_was_proven_of_a_clock_that_is_not_trusted_is_forgotten(guard: ClockGuard) -> None:
    # 40 ms ahead; then it steps by 600 ms, of which alone is known.
    probe(guard, T0 + 100, T0 + 60, T0 + 102)
    assert guard.skew_ms == 40
    guard.observe(T0 + 700, M0 + 100)
    assert not guard.may_fire
    assert guard.skew_ms == 600


def test_a_clock_that_gains_a_little_between_probes_is_held_back_by_all_of_it() -> None:
    guard = ClockGuard(1_000)
    # Records travel for 8 ms either way, and the clock gains 1 ms a second: 40 ms in all.
    for second in range(41):
        monotonic_ms, true_ms = 1_000 * second, T0 + 1_000 * second
        wall_ms = true_ms + second
        guard.observe(wall_ms, monotonic_ms)
        assert wall_ms - guard.now_ms(wall_ms) >= second
        guard.probed(wall_ms, true_ms + 8, wall_ms + 16, monotonic_ms + 16)


def test_a_clock_that_drifts_ahead_is_never_ahead_of_the_brokers(guard: ClockGuard) -> None:
    """It gains 1 in 100; each record is with the broker at once, so nothing makes up for it."""
    for after_ms in range(0, 10_000, 7):
        wall_ms = T0 + 1.01 * after_ms
        guard.observe(wall_ms, M0 + after_ms)
        assert guard.now_ms(wall_ms) <= T0 + after_ms
        if after_ms % 700 == 0:
            probe(guard, int(wall_ms), T0 + after_ms, int(wall_ms), round(wall_ms - T0 - after_ms))
