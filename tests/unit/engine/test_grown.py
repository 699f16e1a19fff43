"""Partitions that are nobody's home: groups lie in them, move on, and go home again."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.client.export import Fold
from belfry.placement.partition_count import PartitionCount
from belfry.schedules.identity import Homes, partition_of
from belfry.store.group_lookup import unsettled
from belfry.store.ordered_map import MemoryMap
from belfry.store.row_judge import Judge
from tests.unit.engine.driver import HOUR, T0, Driver
from tests.unit.engine.moving_ring import KEYS, MovingRing

HOMES, GROWN = 2, 4
TENANT: Final = "demo"


class GrownRing(MovingRing):
    """Two homes, and two partitions that were added; `counted` is what workers know of them."""

    def __init__(self, known: int = GROWN) -> None:
        super().__init__()
        self.counted = PartitionCount(HOMES, known)
        self.drivers = [Driver(partition=each, partitions=HOMES) for each in range(GROWN)]
        for driver in self.drivers:
            driver.options = driver.options._replace(moves=True)
            place = driver.place._replace(origin_keys=KEYS, counted=self.counted, forwards=False)
            driver.place = place
            driver.start(MemoryMap())


def due(ring: GrownRing, name: str) -> None:
    ring.ask(TENANT, schedule_id=name, at=T0 + 5_000)


def test_a_group_lies_where_there_is_no_home_and_comes_back() -> None:
    ring = GrownRing()
    home = ring.home(TENANT)
    assert home == partition_of(TENANT.encode(), HOMES)
    due(ring, "a")
    ring.settle()
    for target in (2, 3, home):
        ring.move(TENANT, target)
        ring.settle()
        ring.kill(target)
        due(ring, f"at-{target}")
        ring.settle()
        assert ring.pending()[target] == sum(ring.pending()) > 0
    assert ring.at_rest()
    ring.now_ms = T0 + 6_000
    ring.settle()
    names = ["a", "at-2", "at-3", f"at-{home}"]
    assert sorted(shot.id for shot in ring.shots) == sorted(names)
    assert not ring.refused


def test_what_a_client_puts_into_a_new_partition_goes_home() -> None:
    ring = GrownRing()
    for arrives in range(GROWN):
        ring.ask(TENANT, arrives=arrives, schedule_id=f"in-{arrives}", at=T0 + 5_000)
    ring.settle()
    pending = [GROWN if each == ring.home(TENANT) else 0 for each in range(GROWN)]
    assert ring.pending() == pending
    ring.move(TENANT, 3)
    ring.settle()
    # Where it lies it is sent home first as well: it may not overtake what is on its way.
    ring.ask(TENANT, arrives=3, schedule_id="again", at=T0 + 5_000)
    ring.settle()
    assert ring.pending() == [0, 0, 0, GROWN + 1]


def test_no_group_goes_to_a_partition_that_workers_do_not_know() -> None:
    ring = GrownRing(known=HOMES)
    due(ring, "a")
    ring.move(TENANT, 2)
    ring.settle()
    assert ring.refused == ["bad_move"]
    assert ring.pending()[ring.home(TENANT)] == 1
    # An owner hears of them while it owns its partition.
    ring.counted.grown(GROWN)
    ring.move(TENANT, 2)
    ring.settle()
    assert ring.pending()[2] == 1


@pytest.mark.parametrize("steps", range(6))
def test_a_move_goes_on_where_a_later_owner_does_not_know_of_its_target(steps: int) -> None:
    ring = GrownRing()
    due(ring, "a")
    ring.settle()
    ring.move(TENANT, 2)
    for _ in range(steps):
        ring.step(ring.home(TENANT))
        ring.step(2)
    unaware = PartitionCount(HOMES)
    for each in (0, 1):
        ring.drivers[each].place = ring.drivers[each].place._replace(counted=unaware)
        ring.kill(each)
    ring.settle()
    # It is refused before it has begun, or carried out; nothing waits for an answer.
    assert ring.refused == ["bad_move"] * (not steps)
    assert ring.pending()[ring.home(TENANT) if not steps else 2] == 1
    assert ring.at_rest()


@pytest.mark.parametrize(("homes", "count"), [(1, 1), (2, 4), (4, 16), (6, 7)])
def test_homes_stay_and_the_count_only_grows(homes: int, count: int) -> None:
    counted = PartitionCount(homes)
    assert counted.count == homes
    assert counted.grown(count) == (count > homes)
    assert not counted.grown(homes)
    assert (counted.homes, counted.count) == (homes, count)
    assert [counted.holds(each) for each in (0, count - 1, count)] == [True, True, False]
    assert Homes(counted.homes).of("shop") == Homes(homes).of("shop")


def test_a_backup_counts_groups_by_homes() -> None:
    ring = GrownRing()
    tenant = next(name for name in map("t{}".format, range(99)) if Homes(GROWN).of(name) == 2)
    ring.ask(tenant, schedule_id="a", at=T0 + HOUR)
    ring.settle()
    ring.move(tenant, 3)
    amid = set()
    for _ in range(20):
        for each in range(GROWN):
            ring.step(each)
        amid.add(unsettled(rows_of_groups(ring), HOMES))
    assert ring.group(tenant) in amid
    assert unsettled(rows_of_groups(ring), HOMES) is None
    # By the number of partitions its home would be another one, which knows nothing of it.
    assert unsettled(rows_of_groups(ring)) == ring.group(tenant)


def rows_of_groups(ring: GrownRing) -> list[dict[bytes, bytes]]:
    """What each partition knows of groups, as a backup reads it."""
    found = []
    for driver in ring.drivers:
        fold = Fold(Judge())
        for key, row in driver.changelog:
            fold._take(key, row)
        found.append(fold.groups)
    return found


def test_what_is_no_home_only_forwards_unless_it_holds_schedules() -> None:
    place = GrownRing().drivers[3].place
    assert not place.only_forwards
    assert place._replace(forwards=None).only_forwards
    assert place._replace(forwards=True, partition=0).only_forwards
    assert not place._replace(forwards=None, partition=0).only_forwards
