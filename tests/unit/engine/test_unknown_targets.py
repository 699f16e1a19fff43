"""Records of moves that name a partition which does not exist: nothing is sent to it."""

from __future__ import annotations

import pytest

from belfry.wire.moves import GIVE, READY, MoveRecord
from tests.unit.engine.driver import HOUR, T0
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing

NOWHERE = 99


def ring_with_one() -> tuple[MovingRing, int, int, int]:
    """A ring with a schedule, its group, its home, and a partition that is not its home."""
    ring = MovingRing()
    home = ring.home("demo")
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    return ring, ring.group("demo"), home, (home + 1) % PARTITIONS


def test_a_target_that_does_not_exist_is_refused_where_it_says_that_it_is_ready() -> None:
    ring, group, home, _ = ring_with_one()
    ring.sign(home, MoveRecord(READY, group, NOWHERE, 7))
    ring.settle()
    assert ring.refused == ["bad_move"]
    assert ring.pending()[home] == 1 == sum(ring.pending())


@pytest.mark.parametrize("other", [NOWHERE, 2])
def test_another_target_than_the_one_that_was_asked_gets_nothing(other: int) -> None:
    """The move is right, and the target is not the one that the home has judged."""
    ring, group, home, target = ring_with_one()
    wrong = other if other == NOWHERE else (home + other) % PARTITIONS
    ring.move("demo", target)
    ring.step(home)
    move = ring.drivers[home].engine._parts.groups.homes[group].move
    ring.sign(home, MoveRecord(READY, group, wrong, move))
    ring.settle()
    assert ring.at_rest()
    assert ring.pending()[target] == 1 == sum(ring.pending())


def test_a_group_stays_that_is_to_be_given_to_no_partition() -> None:
    """Only a home with a fault asks for it; it is told, and requests go on."""
    ring, group, _, target = ring_with_one()
    ring.move("demo", target)
    ring.settle()
    ring.sign(target, MoveRecord(GIVE, group, NOWHERE, 1_000_000))
    ring.settle()
    assert ring.pending()[target] == 1 == sum(ring.pending())
    ring.ask("demo", schedule_id="b", at=T0 + HOUR)
    ring.settle()
    assert ring.pending()[target] == 2 == sum(ring.pending())
    assert ring.at_rest()
