"""What is noted of one side of a move, where compaction has removed rows or they come again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pytest

from belfry.store.layout import groups as layout
from belfry.store.layout.groups import NOWHERE, GroupRow, encode_group, home_key, lies_key
from belfry.verification.findings import Breach, CheckCounts
from belfry.verification.key_groups import group_of, groups_among
from belfry.verification.memory import Remembered, Stands, short
from belfry.verification.move_check import MoveCheck, MovePass
from belfry.verification.move_memory import NOT_WAITING, Given, MoveId
from belfry.verification.moves import MoveLedger
from belfry.verification.rows import Logged
from tests.unit.verification.trace import MemoryInProcess

PARTITIONS: Final = 4
TENANTS: Final = [f"t{number}" for number in range(40)]
GROUPS: Final = {each: group_of(each.encode(), groups_among(PARTITIONS)) for each in TENANTS}
HOME: Final = 1
TENANT: Final = next(each for each in TENANTS if GROUPS[each] % PARTITIONS == HOME)
GROUP: Final = GROUPS[TENANT]
AWAY: Final = 2


def lies(phase: int, move: int = 9, at: int = HOME, number: int = 0) -> tuple[bytes, bytes]:
    return lies_key(GROUP), encode_group(GroupRow(phase, at, 3, move, number))


def home(phase: int, at: int, move: int) -> tuple[bytes, bytes]:
    to = NOWHERE if phase == layout.RESTS else 3
    return home_key(GROUP), encode_group(GroupRow(phase, at, to, move))


def logged(rows: Iterable[tuple[bytes, bytes | None]], since: int = 100) -> list[Logged]:
    return [Logged(since + at, 0, key, value) for at, (key, value) in enumerate(rows)]


def waits(offset: int, tenant: str = TENANT) -> Remembered:
    return Remembered(Stands.WAITS, 0, 1_000, 1_000, 7, 1, 0, offset, 1_000, tenant)


@pytest.mark.parametrize(
    ("partition", "row", "stays_given"),
    [
        # It has come back and leaves again; the rows by which it came are gone.
        (AWAY, lies(layout.GIVE, at=AWAY), False),
        (AWAY, lies(layout.LEAVING, at=AWAY, number=2), False),
        (HOME, home(layout.HELD, HOME, 9), False),
        # It is on its way by the very move by which it was given away.
        (HOME, home(layout.HELD, HOME, 5), True),
        (HOME, home(layout.RESTS, 3, 5), True),
    ],
)
def test_where_a_group_is_back_nothing_is_looked_for(
    partition: int, row: tuple[bytes, bytes], *, stays_given: bool
) -> None:
    memory = MemoryInProcess()
    memory.moves.give(Given(partition, MoveId(GROUP, 5), settled=True))
    memory.put(partition, 1, waits(10))
    MoveLedger(memory, partition, PARTITIONS).take(logged([row]), whole=False)
    assert (memory.moves.given(partition, GROUP) is not None) == stays_given
    found = [*MoveCheck(memory, CheckCounts(), MovePass("c", PARTITIONS, ())).tell()]
    assert [each.breach for each in found] == [Breach.LEFT_BEHIND] * stays_given


def test_a_tombstone_that_is_written_once_more_takes_nothing_back() -> None:
    memory, name = MemoryInProcess(), TENANT.encode() + b"/a"
    ledger = MoveLedger(memory, HOME, PARTITIONS)
    memory.put(HOME, short(name), waits(10))
    ledger.take(logged([lies(layout.GIVE)]), whole=True)
    ledger.take(logged([(name, None), lies(layout.LEAVING, number=1)], 200), whole=True)
    memory.put(HOME, short(name), None)
    left = memory.moves.row(MoveId(GROUP, 9), short(name))
    assert left is not None
    assert (left.left, left.left_as != NOT_WAITING) == (200, True)
    ledger.take(logged([(name, None), lies(layout.LEAVING, number=1)], 300), whole=True)
    assert memory.moves.row(MoveId(GROUP, 9), short(name)) == left


def test_a_partition_is_looked_through_once_however_many_groups_have_left_it() -> None:
    """And what is left of each is one finding, at its first row."""

    class Counting(MemoryInProcess):
        looks = 0

        def waiting(self, partition: int) -> Iterable[tuple[str, int, int]]:
            self.looks += 1
            return super().waiting(partition)

    memory = Counting()
    gone = sorted({*GROUPS.values()})[:10]
    for group in gone:
        memory.moves.give(Given(AWAY, MoveId(group, 5), settled=True))
    behind = [each for each in TENANTS if GROUPS[each] in gone[:2]]
    for at, tenant in enumerate(behind):
        memory.put(AWAY, 2 * at, waits(10 + at, tenant))
        memory.put(AWAY, 2 * at + 1, waits(50 + at, tenant))
    stays = next(each for each in TENANTS if GROUPS[each] not in gone)
    memory.put(AWAY, 999, waits(1, stays))
    found = [*MoveCheck(memory, CheckCounts(), MovePass("c", PARTITIONS, ())).tell()]
    assert memory.looks == 1
    firsts = [min(at for at, of in enumerate(behind) if GROUPS[of] == each) for each in gone[:2]]
    assert sorted(each.spot.offset for each in found) == sorted(10 + at for at in firsts)
    assert {each.breach for each in found} == {Breach.LEFT_BEHIND}
    assert memory.moves.all_given() == []
