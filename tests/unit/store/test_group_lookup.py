"""Where a tenant's rows lie, by each row that a home, or another partition, may have of its group.

Group 9 of 4 partitions: its home is partition 1.
"""

from __future__ import annotations

import pytest

from belfry.placement.key_groups import KeyGroups
from belfry.store.group_lookup import lies_at, unsettled
from belfry.store.layout.groups import (
    ARRIVING,
    ASKED,
    GIVE,
    HELD,
    HERE,
    LEAVING,
    NOWHERE,
    RESTS,
    GroupRow,
    encode_group,
    home_key,
    lies_key,
)
from belfry.store.layout.keys import named_key
from belfry.store.ordered_map import MemoryMap

GROUPS = KeyGroups(4)
TENANT = "shop"
GROUP = GROUPS.of(TENANT)
HOME = GROUPS.home(GROUP)
OTHER = (HOME + 1) % 4


def rows_with(key: bytes, row: GroupRow | None) -> MemoryMap:
    rows = MemoryMap()
    if row is not None:
        rows.write({named_key(key): encode_group(row)})
    return rows


@pytest.mark.parametrize("handed_on", [False, True])
@pytest.mark.parametrize(
    ("row", "at"),
    [
        (None, HOME),
        (GroupRow(ASKED, HOME, OTHER, 9), HOME),
        (GroupRow(HELD, HOME, OTHER, 9), None),
        (GroupRow(RESTS, OTHER, NOWHERE, 9), OTHER),
        (GroupRow(RESTS, OTHER, NOWHERE, 9, 0, (b"big",)), OTHER),
        (GroupRow(RESTS, OTHER, NOWHERE, 9, 0, (b"big", b"shop")), HOME),
        (GroupRow(HELD, HOME, OTHER, 9, 0, (b"shop",)), HOME),
    ],
)
def test_the_home_knows_where_a_group_lies(
    row: GroupRow | None, at: int | None, handed_on: bool
) -> None:
    rows = rows_with(home_key(GROUP), row)
    assert lies_at(rows, GROUPS, HOME, TENANT, handed_on=handed_on) == at


@pytest.mark.parametrize(
    ("row", "all_here"),
    [
        (None, False),
        (GroupRow(GIVE, OTHER, HOME, 9), False),
        (GroupRow(LEAVING, OTHER, HOME, 9), False),
        (GroupRow(ARRIVING, HOME, OTHER, 9), False),
        (GroupRow(HERE, OTHER, NOWHERE, 9), True),
    ],
)
def test_another_partition_answers_for_what_is_wholly_there(
    row: GroupRow | None, all_here: bool
) -> None:
    rows = rows_with(lies_key(GROUP), row)
    assert lies_at(rows, GROUPS, OTHER, TENANT, handed_on=True) == (OTHER if all_here else None)
    # As one of the homes of a spread tenant it has rows that never move.
    assert lies_at(rows, GROUPS, OTHER, TENANT, handed_on=False) == OTHER


def test_only_the_row_of_its_own_group_counts() -> None:
    rows = rows_with(lies_key(GROUP + 4), GroupRow(HERE, OTHER, NOWHERE, 9))
    assert lies_at(rows, GROUPS, OTHER, TENANT, handed_on=True) is None
    rows = rows_with(home_key(GROUP + 4), GroupRow(RESTS, OTHER, NOWHERE, 9))
    assert lies_at(rows, GROUPS, HOME, TENANT, handed_on=False) == HOME


AT_HOME: dict[bytes, bytes] = {}
RESTS_AT_2 = {home_key(5): encode_group(GroupRow(RESTS, 2, NOWHERE, 9))}
GOES_TO_2 = {home_key(5): encode_group(GroupRow(HELD, 1, 2, 9))}
ALL_AT_2 = {lies_key(5): encode_group(GroupRow(HERE, 2, NOWHERE, 9))}
SOME_AT_2 = {lies_key(5): encode_group(GroupRow(ARRIVING, 1, 2, 9))}
BACK_HOME = {home_key(5): encode_group(GroupRow(RESTS, 1, NOWHERE, 9))}
RESTS_AT_9 = {home_key(5): encode_group(GroupRow(RESTS, 9, NOWHERE, 9))}


@pytest.mark.parametrize(
    ("home", "second", "moved"),
    [
        (AT_HOME, {}, None),
        (RESTS_AT_2, ALL_AT_2, None),
        (RESTS_AT_2, {}, 5),
        (AT_HOME, ALL_AT_2, 5),
        (GOES_TO_2, SOME_AT_2, 5),
        (GOES_TO_2, {}, 5),
        (RESTS_AT_2, SOME_AT_2, 5),
        (BACK_HOME, {}, None),
        (BACK_HOME, ALL_AT_2, 5),
        (RESTS_AT_9, {}, 5),
    ],
)
def test_a_group_that_was_on_its_way_is_noticed(
    home: dict[bytes, bytes], second: dict[bytes, bytes], moved: int | None
) -> None:
    """The home of group 5 is partition 1 of four; a fifth one only took input, and has no rows."""
    assert unsettled([{}, home, second, {}]) == moved
    assert unsettled([{}, home, second, {}, {}], 4) == moved


def test_all_partitions_are_looked_at() -> None:
    other = {home_key(4): encode_group(GroupRow(RESTS, 3, NOWHERE, 9))}
    there = {lies_key(4): encode_group(GroupRow(HERE, 3, NOWHERE, 9))}
    assert unsettled([other, RESTS_AT_2, ALL_AT_2, there]) is None
    assert unsettled([other, RESTS_AT_2, ALL_AT_2, {}]) == 4
    assert unsettled([other, {}, ALL_AT_2, there]) == 5
