"""What ended here is shown as owned no more, whoever notices it first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from belfry.balance.roster import Standing
from belfry.worker.group import Group
from belfry.worker.owners import Owners


def test_an_assignment_takes_the_gauges_of_ended_runners_away() -> None:
    lost: list[int] = []
    kit: Any = SimpleNamespace(metrics=SimpleNamespace(lost=lost.append))
    owners = Owners(kit, Group(Standing("one")))
    ended: Any = SimpleNamespace(partition=3, alive=False)
    going: Any = SimpleNamespace(partition=1, alive=True)
    owners._runners |= {3: ended, 1: going}
    owners.assign([0, 1])
    assert lost == [3]
    assert owners.runners() == [going]
