"""A standby closes its copy, whatever fails: one that stayed open would be locked for good."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from belfry.partitions.standby import Standby


class Copy:
    """A warm copy whose rows cannot be folded."""

    def __init__(self) -> None:
        self.closed = 0
        self.replay = SimpleNamespace(fold=self._fold)

    def _fold(self, _now_ms: int) -> None:
        raise RuntimeError("no row that anybody knows")

    def close(self) -> None:
        self.closed += 1


def standing_by(copy: Copy) -> Standby:
    """A standby that has this copy open, and is not started."""

    def open_warm(_partition: int, _stops: Any) -> Any:
        raise RuntimeError("the read failed")

    clock = SimpleNamespace(wall_ms=lambda: 0.0, monotonic_ms=lambda: 0.0)
    opener: Any = SimpleNamespace(clock=clock, open_warm=open_warm)
    standby = Standby(0, opener, lambda _partition: None)
    standby._warm = copy  # type: ignore[assignment]
    # Nobody waits between two turns.
    standby._stopping.set()
    return standby


def test_a_turn_that_fails_closes_a_copy_that_cannot_be_folded() -> None:
    copy = Copy()
    standby = standing_by(copy)
    standby._turn()
    assert copy.closed == 1
    assert not standby.warm
    assert "the read failed" in standby.problem


def test_its_end_closes_a_copy_that_cannot_be_folded() -> None:
    copy = Copy()
    standing_by(copy).stop()
    assert copy.closed == 1


def test_it_tells_whoever_opens_its_copy_that_it_is_to_stop() -> None:
    """A fetch of a checkpoint may take minutes, and a take-over waits for its end."""
    told: list[bool] = []

    def open_warm(_partition: int, stops: Any) -> Any:
        told.append(stops())
        standby.ask_to_stop()
        told.append(stops())
        raise RuntimeError("it is to stop")

    clock = SimpleNamespace(wall_ms=lambda: 0.0, monotonic_ms=lambda: 0.0)
    opener: Any = SimpleNamespace(clock=clock, open_warm=open_warm)
    standby = Standby(0, opener, lambda _partition: None)
    standby._turn()
    assert told == [False, True]
