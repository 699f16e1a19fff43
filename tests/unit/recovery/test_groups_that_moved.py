"""What reads, restores or carries partitions while key groups move, or lie elsewhere."""

from __future__ import annotations

from typing import Any, Final

import pytest

from belfry.client.export import Fold
from belfry.mirror.carried import carried_headers
from belfry.playback.logged import LoggedRow, StepCutter, Unplayable
from belfry.playback.player import PartitionPlayer
from belfry.playback.virtual import VirtualPartition
from belfry.recovery.partition_evidence import CannotRecover, Copy, PartitionEvidence
from belfry.recovery.recovery_plan import LOCAL, LOG, NOTHING, Choices, plan
from belfry.store.group_lookup import unsettled
from belfry.store.identity import Contradiction, Identity
from belfry.store.layout.groups import GROUP_PREFIX
from belfry.store.recovery import activation_manifest, fence_manifest, manifest_after
from belfry.store.row_judge import Judge
from belfry.wire.batch import SourceBatch
from belfry.wire.moves import MOVE, MoveRecord, encode_move
from belfry.wire.origins import believed_origin
from tests.unit.engine.driver import HOUR, T0
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing

Rows = dict[bytes, bytes]


def target(ring: MovingRing) -> int:
    return (ring.home("demo") + 1) % PARTITIONS


def moves() -> MovingRing:
    ring = MovingRing()
    for number in range(5):
        ring.ask("demo", schedule_id=f"s{number}", at=T0 + HOUR)
    ring.settle()
    return ring


def folds(ring: MovingRing) -> list[Fold]:
    """What a backup reads of each partition now."""
    found = []
    for driver in ring.drivers:
        fold = Fold(Judge())
        for key, row in driver.changelog:
            fold._take(key, row)
        found.append(fold)
    return found


# -- backup ----------------------------------------------------------------------------------------


def test_what_is_read_partition_by_partition_is_all_or_the_group_is_told() -> None:
    """Each partition is read at a time of its own: what then is missing or doubled is told."""
    ring = moves()
    home = ring.home("demo")
    times = [folds(ring)]
    for to in (target(ring), (target(ring) + 1) % PARTITIONS, home):
        ring.move("demo", to)
        for _ in range(14):
            for each in range(PARTITIONS):
                ring.step(each)
            times.append(folds(ring))
        assert ring.at_rest()
    told = whole = 0
    for first in range(len(times)):
        for second in range(first, len(times)):
            for third in range(second, len(times)):
                read = [times[first][0], times[second][1], times[third][2]]
                names = [name for each in read for name in each.waiting]
                if unsettled([each.groups for each in read]) is not None:
                    told += 1
                    continue
                whole += 1
                assert sorted(names) == [b"demo/s%d" % number for number in range(5)]
    assert told > 1_000
    assert whole > 1_000


# -- replay ----------------------------------------------------------------------------------------


def test_a_step_that_moves_is_not_played() -> None:
    ring = moves()
    ring.move("demo", target(ring))
    ring.settle()
    cutter, player, told = StepCutter(), PartitionPlayer(NOBODY, 100), 0
    for offset, (key, row) in enumerate(ring.drivers[target(ring)].changelog):
        step = cutter.feed(LoggedRow(offset, T0, key, row))
        if step is not None and any(each.startswith(GROUP_PREFIX) for each in step.rows):
            with pytest.raises(Unplayable, match="a key group was on its way"):
                player.play(step, [])
            told += 1
    assert told > 1


def test_what_would_have_been_is_not_told_of_a_partition_amid_a_move() -> None:
    ring = moves()
    ring.move("demo", target(ring))
    ring.settle()
    asked = ring.drivers[target(ring)].source
    virtual: Any = object.__new__(VirtualPartition)
    with pytest.raises(Unplayable, match="A key group was on its way"):
        virtual.take(SourceBatch(0, len(asked), asked), T0)


NOBODY: Final[Any] = None


# -- recover ---------------------------------------------------------------------------------------


def evidence(ring: MovingRing, partition: int) -> PartitionEvidence:
    engine: Any = ring.drivers[partition].engine
    here = IDENTITY
    found = PartitionEvidence(
        partition, here, None, engine._store, engine.manifest, here, 100, False, 0, 100
    )
    found.copies = [Copy(NOBODY, "", "", 0, 0, engine.manifest, here, in_use=True)]
    found.problem = Contradiction("hole_in_changelog", "rows are missing", "choose")
    return found


IDENTITY: Final = Identity("cluster", "changelog", "schedules")


@pytest.mark.parametrize("source", [LOCAL, NOTHING])
def test_a_copy_brings_no_group_back_that_has_left(source: str) -> None:
    ring = moves()
    assert plan(evidence(ring, target(ring)), Choices(source)).base == source
    ring.move("demo", target(ring))
    ring.settle()
    for partition in (ring.home("demo"), target(ring)):
        with pytest.raises(CannotRecover, match="key groups have moved"):
            plan(evidence(ring, partition), Choices(source))
        assert plan(evidence(ring, partition), Choices(LOG)).base == LOG


def test_a_recovery_amid_a_move_is_refused() -> None:
    ring = moves()
    ring.move("demo", target(ring))
    for each in (ring.home("demo"), target(ring)):
        ring.step(each)
    with pytest.raises(CannotRecover, match="a key group is on its way"):
        plan(evidence(ring, target(ring)), Choices(LOG))


def test_what_recovery_and_mirror_write_keeps_older_releases_away() -> None:
    ring = moves()
    ring.move("demo", target(ring))
    ring.settle()
    manifest = ring.drivers[target(ring)].engine.manifest
    assert manifest is not None
    assert manifest.grouped
    assert manifest_after(None, manifest, 5, 5).grouped
    assert activation_manifest(manifest, 5).grouped
    assert fence_manifest(manifest, 5).grouped


# -- mirror ----------------------------------------------------------------------------------------


def test_a_mirror_makes_no_move_of_a_stranger_a_workers() -> None:
    keys: Any = (b"k" * 32,)
    value = encode_move(MoveRecord(MOVE, 1, 2))
    headers = carried_headers((7, T0, b"key", value, []), ("theirs", 0), keys)
    carried = (0, T0, b"key", value, headers)
    assert not believed_origin(keys, carried, "mine", 0).rerouted
    request = carried_headers((7, T0, b"key", b"request", []), ("theirs", 0), keys)
    assert believed_origin(keys, (0, T0, b"key", b"request", request), "mine", 0).rerouted
