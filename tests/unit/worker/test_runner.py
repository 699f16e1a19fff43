"""A take-over fences only while there is a reason to: the group's word, or a silent owner."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belfry.engine.ownership import Event, Ownership
from belfry.worker.outcome import Fenced
from belfry.worker.runner import PartitionRunner


@pytest.mark.parametrize(
    ("at_first", "at_the_fence", "fences"),
    [(True, True, True), (True, False, False), (False, False, True)],
    ids=["assigned", "moved meanwhile", "ahead of the group"],
)
def test_who_lost_a_partition_while_taking_it_over_fences_nobody(
    at_first: bool, at_the_fence: bool, fences: bool
) -> None:
    fenced: list[int] = []

    def take_over(term: Any) -> None:
        runner.rightful = at_the_fence
        term.moved(Event.CAUGHT_UP)
        fenced.append(term.partition)
        raise Fenced("the end of this test")

    kit: Any = SimpleNamespace(clock=SimpleNamespace(monotonic_ms=float), take_over=take_over)
    runner = PartitionRunner(3, kit)
    runner.rightful = at_first
    runner.start()
    assert runner.join(10)
    assert fenced == [3] * fences
    assert runner.state is Ownership.STOPPED
