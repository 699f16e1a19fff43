"""Key groups and plans: groups tell homes, and a plan evens out with little that moves.

The oracle of a plan is arithmetic of its own: it carries the moves out and adds up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from belfry.placement.key_groups import KeyGroups
from belfry.placement.loads import Loads, LoadVector, Measure, TenantLoad
from belfry.placement.moves import Move, Weights, planned
from belfry.schedules.identity import Homes, partition_of

PARTITIONS = st.integers(1, 12)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=12)


@given(NAMES, st.integers(1, 1024))
def test_a_group_tells_the_home_of_its_tenants(tenant: str, partitions: int) -> None:
    groups = KeyGroups(partitions)
    group = groups.of(tenant)
    assert groups.count >= 4096
    assert 0 <= group < groups.count
    assert groups.home(group) == partition_of(tenant.encode(), partitions)
    assert groups.home(group) == Homes(partitions).of(tenant)


@given(st.integers(1, 1024))
def test_every_partition_is_the_home_of_as_many_groups(partitions: int) -> None:
    groups = KeyGroups(partitions)
    homes = Counter(map(groups.home, range(groups.count)))
    assert len(homes) == partitions
    assert len(set(homes.values())) == 1
    assert groups.count < 4096 + partitions


@st.composite
def weights(draw: st.DrawFn) -> tuple[Weights, int]:
    """Groups that lie somewhere among some partitions, and how many partitions these are."""
    partitions = draw(PARTITIONS)
    where = st.integers(0, partitions - 1)
    placed = draw(st.lists(st.tuples(st.integers(0, 1000), where), max_size=60))
    fixed = draw(st.dictionaries(where, st.integers(0, 1000)))
    return _placed(placed, fixed), partitions


@st.composite
def small_groups(draw: st.DrawFn) -> tuple[Weights, int]:
    """A hundred groups and more, each of less than a tenth of what a partition should carry."""
    partitions = draw(st.integers(1, 4))
    where = st.integers(0, draw(st.integers(0, partitions - 1)))
    placed = draw(st.lists(st.tuples(st.integers(1, 3), where), min_size=120, max_size=200))
    fixed = draw(st.dictionaries(where, st.integers(0, 25)))
    return _placed(placed, fixed), partitions


def _placed(placed: list[tuple[int, int]], fixed: dict[int, int]) -> Weights:
    of_groups = {group: weight for group, (weight, _) in enumerate(placed)}
    return Weights(of_groups, {group: where for group, (_, where) in enumerate(placed)}, fixed)


def carried_out(made: Weights, moves: list[Move]) -> dict[int, int]:
    """Where each group lies behind the moves; each is from where it lay."""
    lies = dict(made.lies)
    for move in moves:
        assert lies[move.group] == move.source != move.target
        assert move.weight == made.of_groups[move.group]
        lies[move.group] = move.target
    return lies


def added_up(made: Weights, lies: Mapping[int, int], partition: int) -> float:
    mine = sum(made.of_groups[group] for group, where in lies.items() if where == partition)
    return mine + made.fixed.get(partition, 0)


@given(weights(), PARTITIONS, st.sampled_from([0.05, 0.1, 0.5]))
def test_a_plan_moves_groups_once_and_makes_nothing_worse(
    given_: tuple[Weights, int], partitions: int, within: float
) -> None:
    made, before = given_
    moves = planned(made, partitions, within)
    assert len({each.group for each in moves}) == len(moves)
    lies = carried_out(made, moves)
    behind = made.by_partition(partitions, moves)
    for partition, carried in enumerate(behind):
        assert abs(carried - added_up(made, lies, partition)) < 1e-6
    # What leaves a partition that stays makes no other one carry more than the worst before.
    assert all(where < partitions for where in lies.values())
    if partitions >= before:
        assert max(behind) <= max(made.by_partition(partitions)) + 1e-6


@given(small_groups())
def test_small_groups_are_evened_out_with_little_that_moves(given_: tuple[Weights, int]) -> None:
    made, partitions = given_
    limit, heaviest = made.limit(partitions, 0.1), max(made.of_groups.values())
    assert heaviest <= 0.1 * limit / 1.1
    moves = planned(made, partitions, 0.1)
    assert max(made.by_partition(partitions, moves)) <= limit + 1e-6
    beyond = [carried - limit for carried in made.by_partition(partitions) if carried > limit]
    assert sum(each.weight for each in moves) <= sum(beyond) + heaviest * len(beyond) + 1e-6


@given(weights(), PARTITIONS)
def test_what_is_even_stays(given_: tuple[Weights, int], partitions: int) -> None:
    made, before = given_
    partitions = max(partitions, before)
    moves = planned(made, partitions, 0.1)
    lies = carried_out(made, moves)
    if max(made.by_partition(partitions, moves)) <= made.limit(partitions, 0.1):
        assert planned(made._replace(lies=lies), partitions, 0.1) == []


@given(
    st.dictionaries(
        NAMES,
        st.tuples(
            st.integers(0, 100), st.integers(0, 100), st.sampled_from([(1,), (4,), (1, 4), (4, 1)])
        ),
    ),
    st.integers(1, 9),
)
def test_no_load_is_lost_on_the_way_to_groups_and_partitions(
    tenants: dict[str, tuple[int, int, tuple[int, ...]]], partitions: int
) -> None:
    given_ = [
        TenantLoad(name, LoadVector(pending, fires), spreads)
        for name, (pending, fires, spreads) in tenants.items()
    ]
    loads = Loads(given_, KeyGroups(partitions))
    parts = [*loads.by_group.values(), *loads.fixed.values()]
    for at in range(3):
        assert abs(sum(each[at] for each in parts) - loads.total[at]) < 1e-6
        assert abs(sum(each.load[at] for each in given_) - loads.total[at]) < 1e-6
    assert set(loads.fixed) <= set(range(partitions))
    for measure in Measure:
        whole = sum(each.share_of(loads.total, measure) for each in parts)
        assert abs(whole - 1) < 1e-6 or whole == 0
