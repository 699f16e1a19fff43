"""How key groups stand, out of what partitions know of them."""

from __future__ import annotations

import pytest

from belfry.store.group_standing import GroupState, SeenRow, Standing, seen_in, standings
from belfry.store.layout.aside import Waits, encode_aside
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
    held_key,
    home_key,
    lies_key,
)
from belfry.store.layout.keys import named_key
from belfry.store.ordered_map import MemoryMap

# Group 7 of four partitions has its home in 3.
GROUP, HOME = 7, 3


def home(phase: int, at: int, to: int = NOWHERE, waiting: int = 0) -> SeenRow:
    return SeenRow(HOME, GROUP, True, GroupRow(phase, at, to, 50), waiting)


def lies(partition: int, phase: int, to: int = NOWHERE, number: int = 0) -> SeenRow:
    return SeenRow(partition, GROUP, False, GroupRow(phase, partition, to, 50, number))


@pytest.mark.parametrize(
    ("seen", "state", "lie", "goes", "records"),
    [
        ([home(ASKED, HOME, 2)], "asked", HOME, 2, 0),
        ([home(HELD, HOME, 2), lies(HOME, GIVE, 2)], "moving", HOME, 2, 0),
        ([home(HELD, HOME, 2), lies(HOME, LEAVING, 2, 9)], "moving", HOME, 2, 9),
        ([home(HELD, 1, 2), lies(1, HERE)], "moving", 1, 2, 0),
        ([home(RESTS, 2), lies(2, ARRIVING, 2, 4)], "arriving", 2, None, 4),
        ([home(RESTS, 2)], "arriving", 2, None, 0),
        ([home(RESTS, 2, waiting=5), lies(2, HERE)], "releasing", 2, None, 0),
        ([home(RESTS, 2), lies(2, HERE)], "rests", 2, None, 0),
        ([home(RESTS, HOME, waiting=1), lies(HOME, ARRIVING, HOME, 3)], "arriving", HOME, None, 3),
        ([home(RESTS, HOME, waiting=1)], "releasing", HOME, None, 0),
        ([lies(HOME, ARRIVING, HOME, 3)], "arriving", HOME, None, 3),
    ],
)
def test_how_a_group_stands(
    seen: list[SeenRow], state: str, lie: int, goes: int | None, records: int
) -> None:
    found = standings(seen, 4)[GROUP]
    waiting = max(each.waiting for each in seen)
    expected = Standing(GROUP, HOME, GroupState(state), lie, goes, 50, records, waiting)
    assert found == expected


def test_what_is_left_of_an_earlier_move_says_nothing() -> None:
    """The home was read after the group had come back, and partition 2 before it had left."""
    assert standings([lies(2, HERE)], 4) == {}


def test_a_partition_tells_its_rows_and_counts_what_waits() -> None:
    rows = MemoryMap()
    assert seen_in(rows, HOME) == []
    at_home, there = GroupRow(HELD, HOME, 2, 50), GroupRow(LEAVING, HOME, 2, 50, 9)
    record = (60, 1, b"shop", b"value", None)
    held = encode_aside(Waits(b"shop", record, True))
    rows.write(
        {
            named_key(home_key(GROUP)): encode_group(at_home),
            named_key(lies_key(GROUP)): encode_group(there),
            named_key(held_key(GROUP, 60)): held,
            named_key(held_key(GROUP, 61)): held,
            b"kshop/a": b"a row of another kind",
        }
    )
    assert seen_in(rows, HOME) == [
        SeenRow(HOME, GROUP, True, at_home, 2),
        SeenRow(HOME, GROUP, False, there),
    ]
