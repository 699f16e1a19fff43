"""The capacity model: more is never cheaper, every figure is a number, shares make up a whole."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from belfry.capacity.constants import constants_from
from belfry.capacity.demand import BOUNDS, Demand
from belfry.capacity.model import plan
from tests.unit.capacity.constants import FILE

# More workers read a changelog sooner, so these are no resources that only grow.
RECOVERIES: Final = {"start without local state", "changelog to read after a worker's loss"}

demands = st.builds(
    Demand, **{name: st.floats(least, most) for name, (least, most) in BOUNDS.items()}
)
factors = st.fixed_dictionaries(
    {name: st.floats(0.1, 10) for name in FILE["constants"] if name != "state_bytes_per_byte"}
)


def figures(demand: Demand, scaled: dict[str, float] | None = None) -> dict[str, float]:
    values = FILE["constants"]
    changed = {name: values[name] * factor for name, factor in (scaled or {}).items()}
    known = constants_from({**FILE, "constants": {**values, **changed}})
    return {each.name: each.value for each in plan(demand, known)}


@given(demands, factors, st.sampled_from(sorted(BOUNDS)), st.floats(0, 1))
def test_more_of_anything_takes_no_less(
    demand: Demand, scaled: dict[str, float], name: str, share: float
) -> None:
    least = getattr(demand, name)
    more = replace(demand, **{name: least + (BOUNDS[name][1] - least) * share})
    before, after = figures(demand, scaled), figures(more, scaled)
    for figure in before.keys() - RECOVERIES:
        assert after[figure] >= before[figure] * (1 - 1e-9), figure


@given(demands, st.floats(1, 1e13))
def test_more_that_waits_is_read_back_no_sooner(demand: Demand, pending: float) -> None:
    before, after = figures(demand), figures(replace(demand, pending=max(demand.pending, pending)))
    for figure in RECOVERIES:
        assert after[figure] >= before[figure] * (1 - 1e-9), figure


@given(demands, factors)
def test_every_figure_is_a_number_and_enough(demand: Demand, scaled: dict[str, float]) -> None:
    found = figures(demand, scaled)
    assert all(isfinite(value) and value >= 0 for value in found.values())
    assert found["partitions"] >= found["workers"] >= 1 + demand.standbys
    assert found["brokers"] >= demand.replicas


@given(demands)
def test_shares_make_up_a_whole(demand: Demand) -> None:
    for each in plan(demand, constants_from(FILE)):
        shares = [share for _, share in each.drivers()]
        assert shares == sorted(shares, reverse=True)
        assert not shares or abs(sum(shares) - 1) < 1e-6
