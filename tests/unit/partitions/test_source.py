"""What is read of one partition is handed over in batches of bounds, as far as there is room."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from belfry.host import machine
from belfry.kafka.fetch_position import HANGS_S
from belfry.partitions.source import AHEAD, RECORD_BYTES, SourceReader
from belfry.wire.batch import SourceBatch


class Held:
    """A log that holds records of these sizes, so many of them fetched at once; 0: no record."""

    def __init__(self, *sizes: int, at_once: int = 1_000, headers: bool = False) -> None:
        self._sizes = sizes
        self._at_once = at_once
        self._headers = headers
        self.where = "in", 3
        self.position = 0
        self.appended = True

    @property
    def empty(self) -> bool:
        return self.position >= len(self._sizes)

    def take(self, at_most: int) -> list[Any]:
        start = self.position
        self.position = min(start + min(at_most, self._at_once), len(self._sizes))
        offsets = range(start, self.position)
        return [self._record(each, self._sizes[each]) for each in offsets if self._sizes[each]]

    def _record(self, offset: int, size: int) -> Any:
        value = None if self._headers else b"v" * size
        headers = [("", b"h" * size)] if self._headers else None
        return (offset, 1_000, None, value, headers)


class Owner:
    """What an owner does: it takes in at once, or nothing at all."""

    def __init__(self, log: Any, most_bytes: int, *, takes: bool = True) -> None:
        self.batches: list[SourceBatch] = []
        self.readers = MagicMock(crowded=False)
        self._takes = takes
        self.reader = SourceReader(log, 1_000, most_bytes, self._hand_over, self.readers)
        self.reader.start()

    def _hand_over(self, batch: SourceBatch) -> None:
        self.batches.append(batch)
        if self._takes:
            self.reader.taken(batch.parts)

    def turns(self) -> list[SourceBatch]:
        """All that is handed over until nothing is left, or there is no room."""
        while self.reader.may_turn():
            self.reader.turn()
        return self.batches


def test_a_batch_that_was_not_taken_in_keeps_its_room() -> None:
    owner = Owner(Held(*[10] * 9, at_once=1), 1_000, takes=False)
    assert [each.start for each in owner.turns()] == [*range(AHEAD)]
    assert owner.reader.has_read
    owner.readers.wake.assert_not_called()
    owner.reader.taken(1)
    owner.readers.wake.assert_called_once_with()
    assert [each.start for each in owner.turns()] == [*range(AHEAD + 1)]


def test_small_batches_come_in_while_a_step_takes_long_and_full_ones_do_not() -> None:
    """What came in sips behind the second would wait for one step more."""
    sips = Owner(Held(*[10] * 20, at_once=1), 1_000, takes=False)
    assert len(sips.turns()) == AHEAD == 8
    many = Owner(Held(*[1] * 1_200, at_once=126), 100_000, takes=False)
    assert [len(each.records) for each in many.turns()] == [126, 126]
    large = Owner(Held(*[130] * 20, at_once=1), 1_000, takes=False)
    assert [each.size for each in large.turns()] == [130, 130]


def test_who_has_room_wakes_nobody() -> None:
    owner = Owner(Held(10, 10, at_once=1), 1_000)
    assert len(owner.turns()) == 2
    owner.readers.wake.assert_not_called()


def test_who_gives_room_back_wakes_those_who_wait_for_it() -> None:
    owner = Owner(Held(10, at_once=1), 1_000, takes=False)
    owner.turns()
    owner.readers.crowded = True
    owner.reader.taken(1)
    owner.readers.wake.assert_called_once_with()


def test_bytes_count_from_the_hand_over_until_all_of_a_batch_is_taken_in() -> None:
    owner = Owner(Held(10, 20, at_once=1), 1_000, takes=False)
    first, second = owner.turns()
    now_s = machine.monotonic()
    held = [owner.reader.held_bytes(now_s)]
    part, rest = first.joined(second).divided(1)
    for batch in (part, rest):
        owner.reader.taken(batch.parts)
        held.append(owner.reader.held_bytes(now_s))
    assert held == [30 + 2 * RECORD_BYTES] * 2 + [0]
    assert Owner(Held(10), 1_000).reader.held_bytes(now_s) == 0


def test_what_waits_for_long_counts_no_more() -> None:
    owner = Owner(Held(10), 1_000, takes=False)
    owner.turns()
    assert owner.reader.held_bytes(machine.monotonic() + HANGS_S) == 0


@pytest.mark.parametrize("headers", [False, True])
def test_a_batch_has_as_many_bytes_as_a_step_takes_in_or_one_record_more(headers: bool) -> None:
    found = Owner(Held(400, 400, 400, 10, 900, 5_000, 10, headers=headers), 1_000).turns()
    offsets = [[record[0] for record in each.records] for each in found]
    assert offsets == [[0, 1, 2], [3, 4, 5], [6]]
    assert [(each.start, each.next_position) for each in found] == [(0, 3), (3, 6), (6, 7)]
    assert [each.size for each in found] == [1_200, 5_910, 10]


def test_nothing_is_read_ahead_of_a_large_batch() -> None:
    large = Owner(Held(600, 600, 600), 1_000, takes=False).turns()
    assert [(each.parts, each.size) for each in large] == [(AHEAD, 1_200)]
    small = Owner(Held(600, 600, 600), 10_000, takes=False).turns()
    assert [(each.parts, each.size) for each in small] == [(AHEAD // 2, 1_800)]


def test_a_large_batch_behind_a_small_one_waits_for_both_to_be_taken_in() -> None:
    owner = Owner(Held(10, 900, 10, at_once=1), 1_000, takes=False)
    assert [each.parts for each in owner.turns()] == [1, AHEAD]
    owner.reader.taken(1)
    assert len(owner.turns()) == 2
    owner.reader.taken(AHEAD)
    assert len(owner.turns()) == 3


def test_positions_without_a_record_are_handed_over_too() -> None:
    """Markers, and what was rolled back: the engine's position has to pass them."""
    found = Owner(Held(10, 0, 0, 10, at_once=2), 1_000).turns()
    assert [(each.start, each.next_position, len(each.records)) for each in found] == [
        (0, 2, 1),
        (2, 4, 1),
    ]
    found = Owner(Held(0, 0), 1_000).turns()
    assert [(each.start, each.next_position, each.records) for each in found] == [(0, 2, [])]
