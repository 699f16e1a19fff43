"""Lateness is told of the last minute, by looks alone."""

from __future__ import annotations

from belfry.telemetry.recent_lateness import APART_S, OLD_S, RecentLateness


class Clock:
    """A histogram of one bound, and an instant."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.counts = (0, 0)
        self.recent = RecentLateness((0.1,), lambda: self.counts, lambda: self.now_s)

    def look(self, now_s: float, *counts: int) -> tuple[float, tuple[int, ...]]:
        self.now_s, self.counts = now_s, (counts[0], counts[1])
        found = self.recent.look()
        assert found.bounds_seconds == (0.1,)
        return found.seconds, found.counts


def test_a_look_tells_of_the_last_minute() -> None:
    clock = Clock()
    assert clock.look(30, 10, 20) == (30, (10, 20))
    assert clock.look(60, 15, 30) == (60, (15, 30))
    # The newest look that is a minute old: that of second 30.
    assert clock.look(90, 16, 31) == (60, (6, 11))
    # After a long pause it is the last one, and the time is told.
    assert clock.look(900, 20, 40) == (810, (4, 9))
    assert clock.look(901, 21, 41) == (811, (5, 10))


def test_looks_that_are_kept_are_few() -> None:
    clock = Clock()
    for tenth in range(1, 3_000):
        clock.look(tenth / 10, tenth, tenth)
    assert len(clock.recent._kept) <= OLD_S / APART_S + 2
