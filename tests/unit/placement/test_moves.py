"""Plans by example: each rule by which a group is chosen, and where it goes."""

from __future__ import annotations

import pytest

from belfry.placement.moves import Move, Weights, planned


def weights(*partitions: list[int], fixed: dict[int, int] | None = None) -> Weights:
    """Groups of these weights in partitions 0, 1, …; a group's number is its place in all."""
    placed = [(weight, where) for where, held in enumerate(partitions) for weight in held]
    return Weights(
        dict(enumerate(weight for weight, _ in placed)),
        dict(enumerate(where for _, where in placed)),
        fixed or {},
    )


def told(moves: list[Move]) -> list[tuple[float, int, int]]:
    return [(each.weight, each.source, each.target) for each in moves]


def test_the_example_of_the_module() -> None:
    made = weights([40, 12, 8], [20], [10], [10])
    moves = planned(made, 4, 0.1)
    assert told(moves) == [(12, 0, 2), (8, 0, 3)]
    assert made.by_partition(4, moves) == [40, 20, 22, 18]
    assert made.limit(4, 0.1) == pytest.approx(27.5)


def test_the_smallest_group_that_is_enough_goes() -> None:
    # Mean 50, at most 55: 20 leaves 60, 30 and 35 leave no more than that.
    assert told(planned(weights([20, 30, 35], [15]), 2, 0.1)) == [(30, 0, 1)]


def test_a_group_that_would_overload_the_other_one_stays() -> None:
    # 90 would leave 10 here, and make 140 there.
    assert told(planned(weights([90, 10], [], fixed={1: 50}), 2, 0.1)) == [(10, 0, 1)]


def test_two_large_groups_part_though_no_partition_comes_below_the_limit() -> None:
    made = weights([50, 45], [], [5])
    assert told(planned(made, 3, 0.1)) == [(45, 0, 1)]


def test_a_group_that_is_all_there_is_stays() -> None:
    assert planned(weights([100, 0], [], []), 3, 0.1) == []


def test_what_is_within_the_limit_stays() -> None:
    assert planned(weights([50, 4], [46]), 2, 0.1) == []
    assert told(planned(weights([50, 4], [46]), 2, 0.05)) == [(4, 0, 1)]


def test_partitions_that_are_to_be_empty_give_all_away_the_heaviest_first() -> None:
    made = weights([10], [10], [6, 0, 4], [8])
    moves = planned(made, 2, 0.5)
    assert told(moves) == [(8, 3, 0), (6, 2, 1), (4, 2, 1), (0, 2, 0)]
    assert made.by_partition(2, moves) == [18, 20, 0, 0]


def test_what_cannot_move_stays_where_it_is_to_be_empty() -> None:
    made = weights([10], [], fixed={1: 7})
    assert planned(made, 1, 0.1) == []
    assert made.by_partition(1) == [10, 7]


def test_partitions_that_are_new_are_filled() -> None:
    made = weights([10, 10, 10, 10], [10, 10, 10, 10])
    moves = planned(made, 4, 0.1)
    assert made.by_partition(4, moves) == [20, 20, 20, 20]
    assert len(moves) == 4


def test_nothing_weighs_nothing() -> None:
    assert planned(weights([0, 0], []), 2, 0.1) == []
    assert planned(weights(), 3, 0.1) == []
