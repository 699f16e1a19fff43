"""What is known of the clock's skew, to the millisecond: by several probes, and after steps.

least ≤ skew ≤ most; taken is max(least, most - 2), since a record is under way for 2 ms
"""

from __future__ import annotations

import pytest

from belfry.firing.clock_guard import SEVERAL, SPAN_MS, ClockGuard

T0 = 1_800_000_000_000
# Of a probe that was slow, and says next to nothing.
WIDE = -300, 400


class Watched(ClockGuard):
    """A guard whose wall clock lies `T0` above the monotonic one, and was set by `stepped_ms`."""

    def __init__(self) -> None:
        super().__init__(500)
        self.stepped_ms = 0
        self.observe(T0, 0)

    def step(self, step_ms: int, at_ms: int) -> None:
        """The wall clock is set, and somebody looks."""
        self.stepped_ms += step_ms
        self.observe(T0 + at_ms + self.stepped_ms, at_ms)

    def probe(self, least: int, most: int, at_ms: int = 10, late_ms: float = 0) -> None:
        """A probe that proves these bounds, acknowledged at a monotonic instant.

        Somebody has seen the clock gain `late_ms` since.
        """
        acknowledged_ms = T0 + at_ms
        self.observe(acknowledged_ms + self.stepped_ms + late_ms, at_ms)
        acknowledged_ms += self.stepped_ms
        appended_ms = acknowledged_ms - most
        self.probed(appended_ms + least, appended_ms, acknowledged_ms, at_ms)


@pytest.mark.parametrize(("most", "skew_ms"), [(25, 23), (21, 20)], ids=["by most", "by least"])
@pytest.mark.parametrize("spans", [0, 1], ids=["of this span", "of the one before"])
def test_bounds_move_with_a_step_of_the_clock(most: int, skew_ms: int, spans: int) -> None:
    guard = Watched()
    guard.probe(20, most)
    at_ms = 20 + spans * SPAN_MS
    guard.probe(*WIDE, at_ms)
    assert guard.skew_ms == skew_ms
    guard.step(40, at_ms + 10)
    assert guard.skew_ms == skew_ms + 40
    guard.probe(*WIDE, at_ms + 20)
    assert guard.skew_ms == skew_ms + 40
    assert guard.may_fire


def test_bounds_are_remembered_for_one_to_two_spans() -> None:
    guard = Watched()
    guard.probe(20, 25)
    guard.probe(*WIDE, SPAN_MS)
    assert guard.skew_ms == 23, "it was in the span before"
    guard.probe(*WIDE, 2 * SPAN_MS - 1)
    assert guard.skew_ms == 23
    guard.probe(*WIDE, 2 * SPAN_MS)
    assert guard.skew_ms == 398


@pytest.mark.parametrize(
    ("least", "most", "skew_ms"),
    [(27, 30, 27), (28, 30, 28), (10, 18, 20), (10, 17, 15), (15, 30, 23), (21, 24, 22)],
    ids=["2 above", "3 above", "2 below", "3 below", "wider", "narrower"],
)
def test_bounds_are_joined_unless_they_are_more_than_the_noise_apart(
    least: int, most: int, skew_ms: int
) -> None:
    guard = Watched()
    guard.probe(20, 25)
    guard.probe(least, most)
    assert guard.skew_ms == skew_ms


@pytest.mark.parametrize(
    ("late_ms", "skew_ms"), [(0.25, 23.25), (2, 25), (3, 26), (-2, 23), (-3, 23)]
)
def test_what_the_clock_gained_since_the_acknowledgement_counts(
    late_ms: float, skew_ms: float
) -> None:
    """What it lost since is left to the next probe."""
    guard = Watched()
    guard.probe(20, 25, late_ms=late_ms)
    assert guard.skew_ms == skew_ms


def test_vague_probes_are_counted_over_a_step() -> None:
    guard = Watched()
    for number in range(SEVERAL):
        assert guard.wants_probe(100), number
        guard.probe(*WIDE, 100)
        guard.step(40, 100)
        guard.probe(*WIDE, 100)
        if 2 * (number + 1) >= SEVERAL:
            break
    assert not guard.wants_probe(100)


@pytest.mark.parametrize(
    ("least", "most", "says"),
    [(501, 900, "501 ms ahead of"), (-900, -501, "501 ms behind")],
)
def test_beyond_the_tolerance_the_reason_is_told_in_full(least: int, most: int, says: str) -> None:
    guard = Watched()
    guard.probe(least, most)
    assert guard.paused_because == (
        f"the clock is {says} the broker's; 500 ms are allowed: synchronise both with NTP"
    )
    assert guard.skew_ms == 0
    guard.probe(*((500, 900) if least > 0 else (-900, -500)))
    assert guard.may_fire
