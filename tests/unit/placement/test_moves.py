"""Plans by example: each rule by which a group is chosen, and where it goes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from belfry.placement.moves import Move, Weights, planned


def weights(*partitions: Sequence[float], fixed: dict[int, int] | None = None) -> Weights:
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
    assert moves == [Move(1, 0, 2, 12), Move(2, 0, 3, 8)]
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


def test_of_partitions_that_are_alike_the_lower_number_comes_first() -> None:
    # Both carry 30 of a mean of 15, and both of the others nothing.
    made = weights([20, 10], [20, 10], [], [])
    assert told(planned(made, 4, 0.1)) == [(10, 0, 2), (10, 1, 3)]


def test_the_largest_group_that_fits_goes_where_none_is_enough() -> None:
    # Mean 20, at most 22: 21 and 15 fit and neither is enough; 24 would not fit.
    made = weights([24, 21, 15], [], [])
    assert told(planned(made, 3, 0.1)) == [(21, 0, 1), (15, 0, 2)]


def test_of_groups_that_fit_nowhere_the_one_goes_that_leaves_both_least_loaded() -> None:
    # Mean 45, at most 45: 50 leaves 40 and makes 50; 90 would stay where 40 goes.
    assert told(planned(weights([50, 85], [0]), 2, 0)) == [(50, 0, 1)]


def test_a_group_that_fits_nowhere_may_be_the_heavier_one() -> None:
    # Mean 33: 45 leaves 55, and 36 would leave 64.
    made = weights([45, 36], [], [], fixed={0: 19})
    assert told(planned(made, 3, 0)) == [(45, 0, 1), (36, 0, 2)]


def test_weights_are_shares_of_a_whole() -> None:
    assert told(planned(weights([0.2, 0.3, 0.35], [0.15]), 2, 0.1)) == [(0.3, 0, 1)]


def test_a_move_that_only_swaps_loads_is_none() -> None:
    assert planned(weights([10, 10], [], fixed={1: 10}), 2, 0.1) == []


def test_a_partition_that_nothing_helps_leaves_the_others_to_be_relieved() -> None:
    # 100 is one group; of 42 and 38 in partition 1 the one goes that makes both the least loaded.
    made = weights([100], [42, 38], [], [])
    moves = planned(made, 4, 0.1)
    assert told(moves) == [(38, 1, 2)]
    assert made.by_partition(4, moves) == [100, 42, 38, 0]


def test_a_limit_is_the_mean_and_a_part_of_it() -> None:
    made = weights([30, 10], [], fixed={1: 20})
    assert made.limit(3, 0) == pytest.approx(20, abs=1e-8)
    assert made.limit(3, 0.5) == pytest.approx(30, abs=1e-8)
    # What lies just at the limit stays.
    assert planned(weights([20, 10], [30]), 2, 0) == []


def test_partitions_that_hold_something_are_told_even_beyond_the_number() -> None:
    assert weights([1], [2], fixed={4: 3}).by_partition(1) == [1, 2, 0, 0, 3]
    assert weights([1], [2], [4]).by_partition(2) == [1, 2, 4]
    assert weights().by_partition(1) == [0]


def test_a_sum_that_is_not_exact_moves_nothing() -> None:
    # Added up group by group, this partition carries a little more than the limit of the whole.
    made = weights([0.2] * 10, fixed={0: 10**8})
    assert made.by_partition(1)[0] > made.limit(1, 0)
    assert planned(made, 1, 0) == []
