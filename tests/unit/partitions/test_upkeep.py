"""How long the loop of a partition may rest, by what its upkeep has to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belfry.partitions.upkeep import HEARTBEAT_MS, JOBS_EVERY_S, MOVES_EVERY_S, Upkeep


def longest_s(*, under_way: bool, moves: bool, may_fire: bool = True) -> float:
    guard: Any = SimpleNamespace(may_fire=may_fire)
    nobody: Any = None
    jobs = SimpleNamespace(under_way=under_way, moves=moves)
    owned: Any = SimpleNamespace(
        engine=SimpleNamespace(jobs=jobs), resigning=None, keeps_state=True
    )
    return Upkeep(guard, nobody, nobody).longest_s(owned)


@pytest.mark.parametrize(
    ("under_way", "moves", "may_fire", "longest"),
    [
        (False, False, True, HEARTBEAT_MS / 1000),
        (True, False, True, JOBS_EVERY_S),
        # What moves is late by each pause between its slices.
        (True, True, True, MOVES_EVERY_S),
        # Nothing of it leaves meanwhile, so the loop would only spin.
        (True, True, False, JOBS_EVERY_S),
    ],
)
def test_slices_of_a_group_that_leaves_follow_one_another_soon(
    under_way: bool, moves: bool, may_fire: bool, longest: float
) -> None:
    assert longest_s(under_way=under_way, moves=moves, may_fire=may_fire) == longest
    assert MOVES_EVERY_S < JOBS_EVERY_S / 10


def test_a_new_owner_proves_less_and_less_often_that_it_is_one() -> None:
    """A former owner may have fenced it, which becomes less likely; each proof is a transaction."""
    nobody: Any = None
    upkeep = Upkeep(nobody, nobody, nobody)
    assert upkeep.proves_every_ms(50_000.0, 300.0) == HEARTBEAT_MS
    upkeep.begin(100_000.0)
    proofs, now_ms = [], 100_000.0
    while (every_ms := upkeep.proves_every_ms(now_ms, 300.0)) < HEARTBEAT_MS:
        now_ms += every_ms
        proofs.append(now_ms - 100_000.0)
    assert proofs == [300.0, 600.0, 1_200.0, 2_400.0, 4_800.0, 9_600.0, 19_200.0, 38_400.0]
