"""A schedule that a move loses is found where owners are killed amid it, and true moves are judged.

offset    40        41     42 to 44       45              46 …
          manifest  end    rolled back    the end of it   the same step once more
                           └──── what a kill leaves, and no trace of compaction ────┘
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from belfry.verification.findings import Breach
from belfry.verification.memory import Memory
from tests.unit.engine import moving_ring
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing
from tests.unit.verification.cluster import TENANT, traces, verified
from tests.unit.verification.test_lost_in_moves import (
    FAULTS,
    MEMORIES,
    Fault,
    asked,
    the_target_drops_one,
)
from tests.unit.verification.trace import Recording


@pytest.fixture(autouse=True)
def _recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving_ring, "Driver", Recording)


def moved_with_kills(ring: MovingRing) -> None:
    """Amid the move each owner is killed before each of its commits, so each step is begun twice.

    The target has no rows before, so no two rows of one schedule there tell of compaction.
    """
    ring.move(TENANT, (ring.home(TENANT) + 1) % PARTITIONS)
    for _ in range(20):
        for each in range(PARTITIONS):
            if ring.step(each, 1, commit=False):
                ring.kill(each)
                ring.step(each, 1)
    assert ring.at_rest()


# The last fault knows what it has sent, and would know it behind a rollback as well.
@pytest.mark.parametrize("make", MEMORIES)
@pytest.mark.parametrize(("fault", "breach"), FAULTS[:-1])
def test_a_fault_is_found_where_owners_are_killed_amid_the_move(
    fault: Fault, breach: Breach, make: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed owner leaves is rolled back: a hole in the offsets, as compaction leaves it."""
    ring = asked()
    fault(monkeypatch)
    moved_with_kills(ring)
    made = verified(ring, make())
    assert [each.breach for each in made.findings] == [breach]
    assert made.counts.moves_compacted == made.counts.compacted == 0


def test_kills_amid_a_move_are_no_finding_and_leave_nothing_unchecked() -> None:
    ring = asked()
    moved_with_kills(ring)
    made = verified(ring)
    assert made.findings == []
    assert made.counts.moves == 1
    assert made.counts.unchecked() == {}


def test_a_move_behind_holes_that_nobody_can_explain_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Compaction has removed what was rolled back, and may have removed rows as well."""
    ring = asked()
    the_target_drops_one(monkeypatch)
    moved_with_kills(ring)
    for trace in traces(ring):
        trace.void.clear()
    made = verified(ring)
    assert made.findings == []
    assert (made.counts.moves, made.counts.moves_compacted) == (0, 1)
