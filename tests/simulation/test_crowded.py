"""What is left of a crowded world when it is over does nothing in the worlds behind it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from unittest.mock import MagicMock

import pytest

from belfry.partitions.step_shares import FULL, StepShare
from tests.simulation import crowded
from tests.simulation.crowded import CountedRoom, CountedShare
from tests.simulation.seams import replaced
from tests.simulation.stage import Stage, enter, leave


def step_with(share: StepShare) -> Iterator[None]:
    """A step that is amid its wait."""
    with share:
        share.ask()
        yield


@pytest.mark.parametrize("another_plays", [True, False])
def test_a_step_that_is_cleared_away_behind_its_world_wakes_nobody(
    monkeypatch: pytest.MonkeyPatch, *, another_plays: bool
) -> None:
    monkeypatch.setattr(crowded, "machine", MagicMock())
    woken = MagicMock()
    with replaced(crowded.doors(1.0)):
        enter(Stage(Random(0)))
        room = CountedRoom()
        first, second = (CountedShare(room, woken) for _ in range(2))
        first.wants = FULL
        step = step_with(first)
        next(step)
        second.ask()
        leave()
        if another_plays:
            enter(Stage(Random(1)))
        step.close()  # type: ignore[attr-defined]
        if another_plays:
            leave()
    woken.assert_not_called()
    assert not room.problems
