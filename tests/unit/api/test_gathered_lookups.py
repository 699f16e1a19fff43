"""What is asked for in one turn of the loop is looked up in one read, and each is told its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from belfry.api.routes.lookup import GatheredLookups
from belfry.api.workers.holdings import NotHeld
from belfry.store.layout.keys import NAMED_PREFIX, schedule_key
from belfry.store.lookup import ScheduleStatus
from tests.unit.store.test_lookup import NOW_MS, Shelf


class Counted:
    """Rows that count how often they are read."""

    def __init__(self, shelf: Shelf) -> None:
        self._rows = shelf.rows
        self.reads: list[int] = []

    def get(self, _key: bytes) -> bytes | None:
        raise AssertionError("a read of one row keeps the engine from going on")

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.reads.append(len(keys))
        return self._rows.get_many(keys)


class Reads:
    """Partition 0 is held here."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        for number in range(3):
            self.shelf.add("orders", f"s-{number}", NOW_MS + 60_000)
        self.rows = Counted(self.shelf)

    def read(self, partition: int, look: Callable[[Any], Any]) -> Any:
        if partition:
            raise NotHeld(partition)
        return look(self.rows)


@pytest.fixture
def reads() -> Reads:
    return Reads()


@pytest.fixture
def looks(reads: Any) -> GatheredLookups:
    return GatheredLookups(reads, lambda: NOW_MS)


def key(number: int) -> bytes:
    """The changelog key of a schedule, of which there are three."""
    return schedule_key("orders", f"s-{number}")


def test_what_is_asked_for_together_is_read_together(looks: GatheredLookups, reads: Reads) -> None:
    async def ask() -> list[ScheduleStatus | None]:
        return await asyncio.gather(*(looks.standing(0, key(number)) for number in (2, 0, 7, 1)))

    found = asyncio.run(ask())
    assert [each and each.name for each in found] == [key(2), key(0), None, key(1)]
    assert reads.rows.reads == [4, 3]


def test_later_ones_are_read_later(looks: GatheredLookups, reads: Reads) -> None:
    async def ask() -> None:
        for _ in range(2):
            assert await looks.standing(0, key(0))

    asyncio.run(ask())
    assert reads.rows.reads == [1, 1, 1, 1]


def test_a_partition_that_is_not_held_fails_for_those_who_asked_for_it(
    looks: GatheredLookups,
) -> None:
    async def ask() -> list[ScheduleStatus | BaseException | None]:
        asked = (looks.standing(partition, key(0)) for partition in (1, 0, 1))
        return await asyncio.gather(*asked, return_exceptions=True)

    first, found, last = asyncio.run(ask())
    assert isinstance(first, NotHeld)
    assert isinstance(last, NotHeld)
    assert isinstance(found, ScheduleStatus)


def test_one_that_cannot_be_read_fails_alone(looks: GatheredLookups, reads: Reads) -> None:
    row = reads.rows.get_many([NAMED_PREFIX + key(1)])[0]
    reads.shelf.rows.write({NAMED_PREFIX + key(1): (row or b"")[:3]})

    async def ask() -> list[ScheduleStatus | BaseException | None]:
        asked = (looks.standing(0, key(number)) for number in range(3))
        return await asyncio.gather(*asked, return_exceptions=True)

    first, unreadable, last = asyncio.run(ask())
    assert isinstance(first, ScheduleStatus)
    assert isinstance(unreadable, Exception)
    assert isinstance(last, ScheduleStatus)


def test_who_has_gone_is_not_told_and_the_others_are(looks: GatheredLookups) -> None:
    async def ask() -> ScheduleStatus | None:
        gone = asyncio.ensure_future(looks.standing(0, key(0)))
        stays = asyncio.ensure_future(looks.standing(0, key(1)))
        await asyncio.sleep(0)
        gone.cancel()
        return await stays

    found = asyncio.run(ask())
    assert found is not None
    assert found.name == key(1)
