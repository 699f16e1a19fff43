"""What follows from deliveries is written together: when, and what is forgotten with it."""

from __future__ import annotations

from collections import Counter

import pytest

from belfry.delivery.answers import Again, Answer, Delivered, End, Failed
from belfry.delivery.follow_ups import Places, Produced
from belfry.delivery.gathering import (
    GATHER_AWAITED_MS,
    GATHER_MS,
    MUCH,
    QUIET_MS,
    Gathered,
)
from belfry.delivery.progress import DeliveryPosition
from belfry.delivery.work import Work
from belfry.schedules.targets import HttpTarget
from belfry.tenants.deliveries import DeliveryState
from belfry.wire.fired import FiredEvent

T0 = 5_000.0
ONE = [Produced("s", b"k", b"v", [])]


@pytest.fixture
def told() -> list[tuple[Counter[str], Counter[str]]]:
    return []


@pytest.fixture
def gathered(told: list[tuple[Counter[str], Counter[str]]]) -> Gathered:
    places = Places("s", "l", "u", b"", b"")
    return Gathered(places, lambda counts, tenants: told.append((+counts, +tenants)))


def test_it_is_written_once_the_first_has_waited_long_enough(gathered: Gathered) -> None:
    assert not gathered.due(T0, waits=True)
    gathered.add(0, ONE, T0, awaited=False)
    gathered.add(1, ONE, T0 + GATHER_MS - 1, awaited=False)
    assert not gathered.due(T0 + GATHER_MS - 1, waits=True)
    assert gathered.due(T0 + GATHER_MS, waits=True)


def test_what_somebody_waits_for_is_written_sooner(gathered: Gathered) -> None:
    gathered.add(0, ONE, T0, awaited=True)
    assert not gathered.due(T0 + GATHER_AWAITED_MS - 1, waits=True)
    assert gathered.due(T0 + GATHER_AWAITED_MS, waits=True)
    gathered.clear()
    gathered.add(0, ONE, T0, awaited=False)
    assert not gathered.due(T0 + GATHER_AWAITED_MS, waits=True)


def test_it_is_written_at_once_where_it_is_much_or_nothing_follows(gathered: Gathered) -> None:
    gathered.add(0, ONE, T0, awaited=False)
    assert gathered.due(T0, waits=False)
    gathered.add(0, ONE * MUCH, T0, awaited=False)
    assert gathered.due(T0, waits=True)


def test_a_position_alone_is_written_as_well(gathered: Gathered) -> None:
    gathered.add(3, [], T0, awaited=False)
    assert gathered.moved == {3}
    assert gathered.due(T0, waits=False)
    gathered.written()
    assert gathered.moved == set()
    assert not gathered.due(T0, waits=False)


def test_a_term_that_is_over_takes_all_of_it_along(
    gathered: Gathered, told: list[tuple[Counter[str], Counter[str]]]
) -> None:
    gathered.add(0, ONE, T0, awaited=False)
    assert gathered.to_write(0) == ONE
    gathered.clear()
    assert gathered.to_write(0) == []
    assert told == []


def test_what_came_of_attempts_is_told_once_it_is_committed(
    gathered: Gathered, told: list[tuple[Counter[str], Counter[str]]]
) -> None:
    event = FiredEvent("demo", "a", "f" * 32, 1, 0, 0, 0, 0)
    state = DeliveryState((HttpTarget("http://one.example.com/"),))
    work = Work(b"k", b"v", event, [], state)
    arrived, refused = Answer(End.DELIVERED, "t"), Answer(End.FINAL, "t")
    for step in (Delivered(arrived), Failed(refused), Again(9, state), Delivered(arrived)):
        gathered.count(work, step)
    assert told == []
    gathered.written()
    assert told == [(Counter(DELIVERED=2, FAILED=1, RETRIED=1), Counter(demo=2))]
    gathered.written()
    assert told[1] == (Counter(), Counter())


def test_a_position_that_passed_an_end_alone_is_written_with_others_or_late(
    gathered: Gathered,
) -> None:
    progress = {0: DeliveryPosition(4), 1: DeliveryPosition(9)}
    gathered.pass_over({0: 5, 1: 9}, progress, T0)
    assert gathered.moved == {0}, "of the other one nothing has moved"
    assert not gathered.due(T0 + QUIET_MS - 1, waits=False)
    assert gathered.due(T0 + QUIET_MS, waits=True)
    gathered.add(1, ONE, T0 + 5, awaited=False)
    assert gathered.due(T0 + 5, waits=False)
    assert not gathered.due(T0 + 5 + GATHER_MS - 1, waits=True)
    gathered.written()
    gathered.add(1, ONE, T0 + 9, awaited=False)
    gathered.pass_over({0: 6}, progress, T0 + 10)
    assert gathered.due(T0 + 10, waits=False), "what follows from a delivery is not put off"


def test_a_partition_whose_records_were_removed_is_written_at_once(gathered: Gathered) -> None:
    lost, whole = DeliveryPosition(4), DeliveryPosition(4)
    lost.kept_from(9)
    gathered.begin({0: whole, 2: lost}, T0)
    assert gathered.moved == {2}
    assert gathered.due(T0, waits=False)


def test_a_first_position_is_written_at_once_so_that_later_removals_are_seen(
    gathered: Gathered,
) -> None:
    first = DeliveryPosition(0, kept=False)
    gathered.begin({0: first, 1: DeliveryPosition(4)}, T0)
    assert gathered.moved == {0}
    assert (first.told(), first.kept) == (0, True)
