"""How long the loop of a partition may rest, by what its upkeep has to do."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.host import rocks
from belfry.host.clock import SystemClock
from belfry.partitions.upkeep import (
    HEARTBEAT_MS,
    JOBS_EVERY_S,
    MOVES_EVERY_S,
    Upkeep,
    sweep_every_ms,
)


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


@pytest.mark.parametrize(
    ("behind", "awaited", "swept"),
    [
        (False, False, [1_000, 5_000, 9_000]),
        (False, True, [*range(1_000, 9_001, 1_000)]),
        (True, False, [*range(100, 9_901, 100)]),
        (True, True, [*range(100, 9_901, 100)]),
    ],
)
def test_an_owner_sweeps_at_its_pace_or_sooner_where_it_is_behind_or_awaited(
    behind: bool, awaited: bool, swept: list[int]
) -> None:
    found: list[int] = []
    guard: Any = SimpleNamespace(may_fire=True, wants_probe=lambda _now_ms: False)
    leasing: Any = SimpleNamespace(wants_commit=lambda _lease: False)
    jobs = SimpleNamespace(under_way=False)
    engine = SimpleNamespace(
        sweeps_behind=behind,
        sweeps_awaited=awaited,
        jobs=jobs,
        sweep=lambda now_ms, _rows: found.append(now_ms),
    )
    owned: Any = SimpleNamespace(
        keeps_state=True, engine=engine, resigning=None, tenant_inputs=None,
        rows=SimpleNamespace(flush=lambda: None),
        producer=SimpleNamespace(lease=None),
    )  # fmt: skip
    upkeep = Upkeep(guard, leasing, SystemClock())
    upkeep.sweep_every_ms = sweep_every_ms(64)
    upkeep._swept_ms = 0.0 if behind or awaited else -3_000.0
    for now_ms in range(100, 10_000, 100):
        upkeep.add_to(owned, None, now_ms, lambda at=now_ms: at)  # type: ignore[misc]
    assert found == swept


def test_a_store_that_was_just_taken_over_is_not_flushed_at_once() -> None:
    """What it holds in memory was read from the log a moment ago; each flush writes a file."""
    guard: Any = SimpleNamespace(may_fire=False, wants_probe=lambda _now_ms: False)
    leasing: Any = SimpleNamespace(wants_commit=lambda _lease: False)
    flushes: list[int] = []
    owned: Any = SimpleNamespace(
        keeps_state=True,
        engine=SimpleNamespace(
            sweeps_behind=False, sweeps_awaited=False, jobs=SimpleNamespace(under_way=False)
        ),
        producer=SimpleNamespace(lease=None),
        resigning=None,
        tenant_inputs=None,
    )
    upkeep = Upkeep(guard, leasing, SystemClock())
    upkeep.begin(100_000.0)
    for now_ms in range(100_000, 145_000, 500):
        owned.rows = SimpleNamespace(flush=lambda at=now_ms: flushes.append(at))
        upkeep.committed(now_ms)
        upkeep.add_to(owned, None, now_ms, lambda: 0)
    assert flushes == [120_000, 140_000]


def test_a_store_of_which_checkpoints_are_kept_is_flushed_before_its_links_are_wanted(
    tmp_path: Path,
) -> None:
    """Its memory would hold up the partition while they are made; so it is flushed beforehand."""
    guard: Any = SimpleNamespace(may_fire=False, wants_probe=lambda _now_ms: False)
    leasing: Any = SimpleNamespace(wants_commit=lambda _lease: False)
    flushed_ago: list[float] = []
    rows = rocks.RocksMap(tmp_path)
    owned: Any = SimpleNamespace(
        keeps_state=True, rows=rows,
        engine=SimpleNamespace(
            sweeps_behind=False, sweeps_awaited=False, jobs=SimpleNamespace(under_way=False)
        ),
        producer=SimpleNamespace(lease=None), resigning=None, tenant_inputs=None,
    )  # fmt: skip
    flush, flushes = rows.flush, list[None]()
    rows.flush = lambda: flushes.append(flush())  # type: ignore[method-assign]
    checkpoint = lambda _rows, ago_ms: flushed_ago.append(ago_ms)  # noqa: E731
    upkeep = Upkeep(guard, leasing, SystemClock(), checkpoint)
    upkeep.begin(100_000.0)
    for now_ms in (100_000, 100_500, 101_000):
        upkeep.committed(now_ms)
        upkeep.add_to(owned, None, now_ms, lambda: 0)
    rows.close()
    assert flushed_ago == [0, 500, 1_000]
    assert len(flushes) == 1


def test_a_new_owner_proves_less_and_less_often_that_it_is_one() -> None:
    """A former owner may have fenced it, which becomes less likely; each proof is a transaction."""
    guard: Any = SimpleNamespace(wants_probe=lambda _now_ms: False)
    leasing: Any = SimpleNamespace(wants_commit=lambda _lease: False)
    owned: Any = SimpleNamespace(producer=SimpleNamespace(lease=None), tenant_inputs=None)
    upkeep = Upkeep(guard, leasing, SystemClock())
    assert upkeep.proves_every_ms(300.0) == HEARTBEAT_MS
    # Of a term before, which says nothing of this one.
    upkeep.committed(90_000.0)
    upkeep.begin(100_000.0)
    proofs = []
    for now_ms in range(100_000, 200_000, 100):
        # The supervisor says so again and again, while time passes.
        upkeep.idle_commit_ms = upkeep.proves_every_ms(300.0)
        if upkeep._wants_manifest(owned, now_ms) or now_ms == 100_000:
            upkeep.committed(now_ms)
            proofs.append(now_ms - 100_000)
    assert proofs[:9] == [0, 300, 600, 1_200, 2_400, 4_800, 9_600, 19_200, 38_400]
    assert proofs[9:] == [68_400, 98_400]
