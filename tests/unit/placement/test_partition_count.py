"""How many partitions hold schedules: never fewer than homes, and never fewer than before."""

from __future__ import annotations

from belfry.placement.partition_count import PartitionCount


def test_a_belfry_that_has_not_grown_has_as_many_as_homes() -> None:
    found = PartitionCount(4)
    assert (found.homes, found.count) == (4, 4)
    assert (found.holds(3), found.holds(4)) == (True, False)


def test_the_larger_of_homes_and_count_counts() -> None:
    assert PartitionCount(4, 16).count == 16
    assert PartitionCount(4, 2).count == 4


def test_it_grows_and_never_shrinks() -> None:
    found = PartitionCount(4)
    assert found.grown(16)
    assert not found.grown(16)
    assert not found.grown(8)
    assert found.count == 16
    assert found.holds(15)
    assert not found.holds(16)
