"""Loads by hand: groups that can move, shards that stay, and shares of the whole."""

from __future__ import annotations

import pytest

from belfry.placement.key_groups import KeyGroups
from belfry.placement.loads import Loads, LoadVector, Measure, TenantLoad
from belfry.schedules.identity import Homes

SHOP = TenantLoad("shop", LoadVector(1, 9, 100))
BULKY = TenantLoad("bulky", LoadVector(8, 2, 40), (1, 4))
JOINED = TenantLoad("joined", LoadVector(6, 3, 20), (4, 1))
HOMES = Homes(4)


def test_a_tenant_of_one_shard_is_in_its_key_group() -> None:
    groups = KeyGroups(4)
    loads = Loads([SHOP], groups)
    assert loads.groups is groups
    assert loads.by_group == {1684: (1, 9, 100)}
    assert loads.tenants == {1684: [SHOP]}
    assert (loads.fixed, loads.spread) == ({}, [])


def test_tenants_of_one_group_are_added_up() -> None:
    loads = Loads([SHOP, SHOP._replace(load=LoadVector(2, 3, 4))], KeyGroups(4))
    assert loads.by_group == {1684: (3, 12, 104)}
    assert len(loads.tenants[1684]) == 2
    assert loads.total == (3, 12, 104)


def test_a_tenant_that_is_spread_stays_in_the_partitions_of_its_shards() -> None:
    loads = Loads([BULKY], KeyGroups(4))
    expected = dict.fromkeys({HOMES.shard("bulky", number) for number in range(4)}, 0)
    for number in range(4):
        expected[HOMES.shard("bulky", number)] += 1
    assert loads.fixed == {
        home: (2 * shards, 0.5 * shards, 10 * shards) for home, shards in expected.items()
    }
    assert loads.spread == [BULKY]
    assert (loads.by_group, loads.total) == ({}, BULKY.load)


def test_a_tenant_that_was_spread_stays_at_home() -> None:
    loads = Loads([JOINED], KeyGroups(1_000))
    assert loads.fixed == {Homes(1_000).of("joined"): JOINED.load}
    assert loads.spread == [JOINED]


def test_a_tenant_is_divided_among_the_shards_that_it_has_now() -> None:
    homes = Homes(1_000)
    loads = Loads([BULKY._replace(spreads=(1, 4, 2))], KeyGroups(1_000))
    assert loads.fixed == {homes.shard("bulky", number): (4, 1, 20) for number in range(2)}


def test_what_is_fixed_of_several_tenants_is_added_up() -> None:
    loads = Loads([JOINED, JOINED], KeyGroups(1))
    assert loads.fixed == {0: (12, 6, 40)}


@pytest.mark.parametrize(
    ("partitions", "count"), [(1, 4_096), (4, 4_096), (6, 4_098), (1_000, 5_000)]
)
def test_groups_are_a_multiple_of_partitions(partitions: int, count: int) -> None:
    assert KeyGroups(partitions).count == count


@pytest.mark.parametrize(
    ("measure", "share"),
    [
        (Measure.PENDING, 0.1),
        (Measure.FIRES, 0.3),
        (Measure.BYTES, 0.5),
        (Measure.ALL, 0.3),
    ],
)
def test_a_share_of_each_measure_and_their_mean(measure: Measure, share: float) -> None:
    whole = LoadVector(100, 10, 1_000)
    assert LoadVector(10, 3, 500).share_of(whole, measure) == pytest.approx(share)


def test_the_mean_is_of_what_there_is_any_of() -> None:
    assert LoadVector(10, 3).share_of(LoadVector(100, 10), Measure.ALL) == pytest.approx(0.2)
    assert LoadVector(10, 0).share_of(LoadVector(100, 10), Measure.ALL) == pytest.approx(0.05)


@pytest.mark.parametrize("measure", Measure)
def test_of_nothing_the_share_is_nothing(measure: Measure) -> None:
    assert LoadVector().share_of(LoadVector(), measure) == 0


def test_a_load_is_added_whole_unless_a_part_is_named() -> None:
    assert LoadVector(1, 2, 3).plus(LoadVector(10, 20, 30)) == (11, 22, 33)
    assert LoadVector(1, 2, 3).plus(LoadVector(10, 20, 30), 0.5) == (6, 12, 18)
