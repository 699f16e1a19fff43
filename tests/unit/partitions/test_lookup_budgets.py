"""Strangers share a budget of lookups: a new name brings none, and takes none of others'."""

from __future__ import annotations

import pytest

from belfry.engine.claims import STRANGERS_LANES, stranger_of
from belfry.partitions.lookup_budgets import LookupBudget, WaitBudget

PER_MINUTE = 60


def lane(name: str) -> bytes:
    """The lane of who shows this name and proves nothing."""
    return stranger_of((0, 0, name.encode(), b"", None))


LOUD, QUIET = lane("loud"), lane("quiet")
MADE_UP = sorted({lane(f"made-up-{number}") for number in range(9_000)})


def taken(budget: LookupBudget, asking: bytes, most: int = 1_000) -> int:
    """How many lookups a lane that wants this many is given now."""
    return sum(budget.take(asking) is not None for _ in range(most))


def test_a_stranger_alone_has_all_of_it_and_no_more() -> None:
    budget = LookupBudget(PER_MINUTE)
    assert taken(budget, LOUD) == PER_MINUTE
    budget.begin(10.0)
    assert taken(budget, LOUD) == 10


def test_who_comes_second_has_one_at_once_and_then_half() -> None:
    budget, found = LookupBudget(PER_MINUTE), {LOUD: 0, QUIET: 0}
    assert taken(budget, LOUD) == PER_MINUTE
    assert taken(budget, QUIET) == 1
    for second in range(1, 1_201):
        budget.begin(float(second))
        for each in found:
            found[each] += taken(budget, each)
    assert sum(found.values()) <= 20 * PER_MINUTE
    assert min(found.values()) > 0.4 * 20 * PER_MINUTE


def test_made_up_names_bring_no_budget_of_their_own() -> None:
    """Every lane asks all the time, for three hours."""
    budget, found = LookupBudget(PER_MINUTE), dict.fromkeys(MADE_UP, 0)
    assert len(MADE_UP) == STRANGERS_LANES
    for second in range(0, 3 * 3_600, 10):
        budget.begin(float(second))
        for each in MADE_UP:
            found[each] += taken(budget, each, 3)
    total = sum(found.values())
    assert 0.7 * 180 * PER_MINUTE < total <= 181 * PER_MINUTE + STRANGERS_LANES
    assert min(found.values()) > 0.5 * total / STRANGERS_LANES
    assert len(budget._used_up) <= 2 * STRANGERS_LANES + 1


def test_who_has_schemas_reads_all_of_them_whatever_others_make_up() -> None:
    """What a lookup finds is given back, so the lane's reserve is enough."""
    budget = LookupBudget(PER_MINUTE)
    others = [each for each in MADE_UP if each != QUIET]
    for second in range(600):
        budget.begin(float(second))
        for each in others:
            taken(budget, each, 3)
        for _ in range(5):
            paid = budget.take(QUIET)
            assert paid is not None
            budget.give_back(paid)


def test_strangers_use_up_nothing_of_a_tenants() -> None:
    budget = LookupBudget(PER_MINUTE)
    for each in MADE_UP:
        taken(budget, each, 3)
    assert taken(budget, b"acme") == PER_MINUTE
    assert taken(budget, b"other") == PER_MINUTE


def test_patience_is_a_stretch_and_a_share_of_the_time() -> None:
    budget = WaitBudget(10.0)
    assert budget.begin(100.0) == 110.0
    budget.end(110.0)
    assert budget.begin(110.0) == 110.0
    budget.end(110.0)
    assert budget.begin(130.0) == pytest.approx(132.0)
    budget.end(131.0)
    assert budget.begin(141.0) == pytest.approx(143.0)
    budget.end(143.0)
    assert budget.begin(10_000.0) == 10_010.0
