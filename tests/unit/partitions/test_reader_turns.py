"""What readers of all partitions hold together, turn by turn, and who has the next room."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from belfry.kafka import fetcher
from belfry.partitions import reader_turns, request_readers

D, A, B, C = [("in", number) for number in range(4)]


class Reader:
    """A reader of one partition, each batch of which takes one byte of the room."""

    failure = None
    fetched = 0

    def __init__(self, *, reads: bool, trickles: bool = False) -> None:
        self.has_read, self.trickles = reads, trickles
        self.held = 0

    def may_turn(self) -> bool:
        return self.has_read

    def has_room(self) -> bool:
        return True

    def held_bytes(self, _now_s: float) -> int:
        return self.held

    def turn(self) -> None:
        self.held += 1
        self.has_read = False


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    made = MagicMock()
    made.take.return_value = None
    monkeypatch.setattr(fetcher, "Fetcher", lambda *_, **__: made)
    monkeypatch.setattr(reader_turns, "ROOM", 2)
    monkeypatch.setattr(reader_turns, "FEW", -1)
    return made


def thread_of(readers: dict[Any, Reader]) -> Any:
    """The readers' thread, which does not run: a test has its turns."""
    return request_readers._ReadersThread({}, MagicMock(entered=lambda _: readers))


def test_no_more_is_handed_over_in_a_turn_than_there_is_room_for(fetches: MagicMock) -> None:
    readers = {D: Reader(reads=False)} | {each: Reader(reads=True) for each in (A, B, C)}
    thread = thread_of(readers)
    thread._turn()
    assert [each.held for each in readers.values()] == [0, 1, 1, 0]
    assert thread.turns.crowded
    wait_s, but, small_of = fetches.take.call_args.args
    assert wait_s == request_readers.WAIT_S, "it waits until it is woken"
    assert (but, small_of) == ({C}, {A, B, C}), "the idle one has had no turn for longer"


def test_who_had_a_turn_waits_behind_those_who_had_none(fetches: MagicMock) -> None:
    readers = {each: Reader(reads=True) for each in (A, B, C)}
    thread = thread_of(readers)
    thread._turn()
    for each in (A, B):
        readers[each].has_read = True
    readers[A].held = 0
    thread._turn()
    assert [each.held for each in readers.values()] == [0, 1, 1]
    assert fetches.take.call_args.args[2] == {A, B, C}
    readers[B].held = readers[C].held = 0
    thread._turn()
    assert [each.held for each in readers.values()] == [1, 1, 0]
    assert not thread.turns.behind, "nobody waits"


def test_a_trickle_is_handed_over_though_there_is_no_room(fetches: MagicMock) -> None:
    readers = {A: Reader(reads=True), B: Reader(reads=True), C: Reader(reads=True, trickles=True)}
    readers[A].held = 2
    thread = thread_of(readers)
    thread._turn()
    assert [each.held for each in readers.values()] == [2, 0, 1]
    assert fetches.take.call_args.args[0] == request_readers.WAIT_S


def test_few_that_have_something_share_no_room(
    fetches: MagicMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its next batch while it commits; a fifth one, and they share with it."""
    monkeypatch.setattr(reader_turns, "FEW", 3)
    readers = {each: Reader(reads=True) for each in (A, B, C)} | {D: Reader(reads=False)}
    thread = thread_of(readers)
    for _ in range(2):
        thread._turn()
        for each in (A, B, C):
            readers[each].has_read = True
    assert [each.held for each in readers.values()] == [2, 2, 2, 0]
    assert not thread.turns.crowded
    readers[D].has_read = True
    thread._turn()
    assert [each.held for each in readers.values()] == [2, 2, 2, 0]
    assert thread.turns.crowded
    for each in (A, B, C):
        readers[each].held = 0
    thread._turn()
    assert [each.held for each in readers.values()] == [1, 0, 0, 1], "it has had none for longest"


def test_it_says_that_there_is_no_room_before_it_looks_again(fetches: MagicMock) -> None:
    """Else an owner that gives some back between these two wakes nobody."""
    readers = {A: Reader(reads=True)}
    readers[A].held = 2
    thread = thread_of(readers)
    said: list[bool] = []

    def held_bytes(_now_s: float) -> int:
        said.append(thread.turns.crowded)
        return 0 if thread.turns.crowded else 2

    readers[A].held_bytes = held_bytes  # type: ignore[method-assign]
    thread._turn()
    assert said == [False, True]
    assert fetches.take.call_args.args[0] == 0.0, "there is room by now"
