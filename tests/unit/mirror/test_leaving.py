"""The lanes of a take-over are carried up to ends, whatever comes behind them."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.host import machine
from belfry.mirror import leaving
from belfry.mirror.leaving import DRAIN_S, STUCK_S, LeavingLanes


class HeldLane:
    """A lane whose changelog waits for others, while requests go on to come."""

    def __init__(self, _source: object, _target: object, _at: int, _now: int, together: Any,
                 **_: Any) -> None:  # fmt: skip
        self._together = together
        self._positions = {"changelog": 3, "schedules": 0}
        self.reader = SimpleNamespace(
            positions=self._positions, ends=lambda: {"changelog": 5, "schedules": 2}
        )
        self.turns = 0

    def leave(self) -> None:
        pass

    def turn(self, _wait_s: float, _now_ms: int) -> int:
        self.turns += 1
        assert self.turns < 10 * DRAIN_S, "it goes on for ever"
        self._positions["schedules"] += 1
        if self._together.open:
            self._positions["changelog"] = 5
        return 1

    def reached(self, ends: dict[str, int]) -> bool:
        return all(self._positions[kind] >= end for kind, end in ends.items())

    def close(self) -> None:
        pass


def test_requests_that_go_on_to_come_do_not_hide_that_lanes_are_stuck(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(leaving, "SourceTopics", lambda _: topics)
    monkeypatch.setattr(leaving, "Lane", HeldLane)
    seconds = count()
    monkeypatch.setattr(machine, "monotonic", lambda: float(next(seconds)))
    source: Any = SimpleNamespace(homes=1)
    lanes = LeavingLanes(source, source, lambda: 0)
    # Before the fence the rest is left for later.
    [lane] = lanes.opened([0])
    assert not lane.reached({"changelog": 5})
    assert next(seconds) < 4 * STUCK_S
    lanes.drain(fenced=True)
    assert lane.reached({"changelog": 5})
