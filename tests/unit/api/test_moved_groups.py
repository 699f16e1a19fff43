"""A tenant's key group has moved: whoever is asked, its home says where, and that one answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI

from belfry.api.json import shapes
from belfry.placement.key_groups import KeyGroups
from belfry.store.group_lookup import lies_at
from belfry.store.layout.groups import (
    ARRIVING,
    ASKED,
    HELD,
    HERE,
    NOWHERE,
    RESTS,
    GroupRow,
    encode_group,
    home_key,
    lies_key,
)
from belfry.store.layout.keys import named_key, schedule_key
from belfry.store.lookup import standing_of
from belfry.store.ordered_map import MemoryMap
from tests.unit.api.test_two_workers import HOME, Holdings, _client, workers
from tests.unit.engine.driver import HOUR, T0, Driver

__all__ = ["workers"]


class Moved(Holdings):
    """The home is partition 1, and the tenant's group lies in partition 0, or is on its way."""

    moving = False

    def former_homes_of(self, _tenant: str, _schedule_id: str) -> list[int]:
        return []

    def homes_of(self, _tenant: str) -> list[int]:
        return [1]

    def lies_at(self, partition: int, _tenant: str, *, handed_on: bool) -> int | None:
        self._check(partition)
        assert handed_on is (partition == 0)
        return None if self.moving else 0


@pytest.fixture
def moved(workers: list[FastAPI]) -> list[Moved]:
    """The holdings of both workers."""
    found = []
    for number, app in enumerate(workers):
        parts = app.state.parts
        found.append(Moved(number, parts.ready.holdings._rows))
        parts.open(replace(parts.ready, holdings=found[-1]))
    return found


@pytest.mark.parametrize("asked", [0, 1])
@pytest.mark.parametrize(("name", "status"), [("old", 200), ("new", 404)])
def test_a_schedule_is_found_where_its_group_lies(
    workers: list[FastAPI], moved: list[Moved], asked: int, name: str, status: int
) -> None:
    assert moved
    assert _client(workers[asked]).get(f"{HOME}/{name}").status_code == status


@pytest.mark.parametrize("asked", [0, 1])
def test_so_are_lists_and_locks(workers: list[FastAPI], moved: list[Moved], asked: int) -> None:
    assert moved
    client = _client(workers[asked])
    listed: Any = client.get(HOME).json()
    assert [each["schedule_id"] for each in listed["schedules"]] == ["old"]
    assert listed["cursor"] is None
    locks: Any = client.get(HOME.replace("schedules", "locks")).json()
    assert len(locks["locks"]) == 1


@pytest.mark.parametrize("asked", [0, 1])
def test_while_it_is_on_its_way_nobody_answers(
    workers: list[FastAPI], moved: list[Moved], asked: int
) -> None:
    for each in moved:
        each.moving = True
    answer = _client(workers[asked]).get(f"{HOME}/old")
    assert (answer.status_code, answer.json()["code"]) == (503, "moving")


GROUPS = KeyGroups(3)
GROUP = GROUPS.of("demo")
AT_HOME = GROUPS.home(GROUP)
ELSEWHERE = (AT_HOME + 1) % 3


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (None, AT_HOME),
        (GroupRow(ASKED, AT_HOME, ELSEWHERE, 1), AT_HOME),
        (GroupRow(HELD, AT_HOME, ELSEWHERE, 1), None),
        (GroupRow(RESTS, ELSEWHERE, NOWHERE, 1), ELSEWHERE),
        (GroupRow(RESTS, ELSEWHERE, NOWHERE, 1, 0, (b"demo",)), AT_HOME),
        (GroupRow(HELD, ELSEWHERE, AT_HOME, 1), None),
    ],
)
def test_the_home_knows_where_a_group_lies(row: GroupRow | None, found: int | None) -> None:
    rows = MemoryMap()
    if row is not None:
        rows.write({named_key(home_key(GROUP)): encode_group(row)})
    assert lies_at(rows, GROUPS, AT_HOME, "demo", handed_on=False) == found


@pytest.mark.parametrize(("phase", "found"), [(None, None), (ARRIVING, None), (HERE, ELSEWHERE)])
def test_who_is_asked_for_a_group_knows_whether_it_is_there(
    phase: int | None, found: int | None
) -> None:
    rows = MemoryMap()
    if phase is not None:
        row = GroupRow(phase, ELSEWHERE, NOWHERE, 1)
        rows.write({named_key(lies_key(GROUP)): encode_group(row)})
    assert lies_at(rows, GROUPS, ELSEWHERE, "demo", handed_on=True) == found
    # As one of its own homes it is asked for what never moves.
    assert lies_at(rows, GROUPS, ELSEWHERE, "demo", handed_on=False) == ELSEWHERE


@pytest.mark.parametrize(("partition", "told"), [(0, 0), (1, None)])
def test_the_place_of_a_request_is_told_where_it_came_alone(
    partition: int, told: int | None
) -> None:
    """What has moved is ordered by the record that brought it, in another partition."""
    driver = Driver()
    driver.ask(kind="AFTER", delay_ms=HOUR)
    driver.step(T0)
    found = standing_of(driver.rows, schedule_key("demo", "a"), T0)
    assert found is not None
    shown = shapes.whole(found) | shapes.source_in(found, partition)
    assert shown["source_partition"] == told
    assert (shown["source_offset"] is None) == (told is None)
