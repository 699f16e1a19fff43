"""Holes in a log: ends of transactions and what was rolled back, against records that are gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from belfry.host import machine
from belfry.kafka import fetcher
from belfry.kafka.fetch_position import Fetched, OffsetGone, Where
from belfry.kafka.void_offsets import VoidOffsets
from belfry.wire.record_batches import batches_in
from tests.simulation.record_batches import TRANSACTIONAL, control_of, emptied, stored

LOG: Final[Where] = ("belfry.changelog", 3)
MINE, KILLED = 7, 8


def row(offset: int, producer: int) -> bytes:
    return stored(offset, 1_000, (b"k", b"v", None), producer, TRANSACTIONAL)


# 10 a row and 11 its end; 12 and 13 were rolled back by the marker at 14; 15 ends a transaction
# without rows; 16 a row, and 17 its end; 18 is gone; 19 a row.
BATCHES: Final = (
    row(10, MINE),
    control_of(11, 1_000, MINE, commits=True),
    row(12, KILLED),
    row(13, KILLED),
    control_of(14, 1_000, KILLED, commits=False),
    control_of(15, 1_000, MINE, commits=False),
    row(16, MINE),
    control_of(17, 1_000, MINE, commits=True),
    row(19, MINE),
)
ABORTED: Final = ((KILLED, 12),)


class Brokers:
    """Answers as a fetcher does, with so many batches at a time, from the one that was asked for.

    What `said` holds is answered first.
    """

    def __init__(self, batches: tuple[bytes, ...] = BATCHES, at_once: int = 2) -> None:
        self.batches = batches
        self.at_once = at_once
        self.said: list[Fetched | None] = []
        self.followed: list[Mapping[Where, int]] = []
        self.closed = False
        self._at = 0

    def follow(self, positions: Mapping[Where, int]) -> None:
        self.followed.append(positions)
        self._at = positions.get(LOG, self._at)

    def take(self, _wait_s: float) -> Fetched | None:
        if self.said:
            return self.said.pop(0)
        heads = [next(iter(batches_in(each))) for each in self.batches]
        ahead = [each for each in heads if each.next_offset > self._at][: self.at_once]
        if not ahead:
            return None
        start, self._at = self._at, ahead[-1].next_offset
        data = b"".join(each.data for each in ahead)
        return Fetched(LOG, start, self._at, data, ABORTED)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    monkeypatch.setattr(fetcher, "Fetcher", lambda *_: made)
    return made


def looked(start: int, end: int, wait_s: float = 0.02) -> bool:
    return VoidOffsets({}, wait_s).all_void(LOG, start, end)


@pytest.mark.parametrize(
    ("start", "end"), [(11, 12), (11, 16), (12, 15), (13, 16), (14, 15), (15, 16), (17, 18)]
)
@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_ends_and_what_was_rolled_back_are_void(
    start: int, end: int, at_once: int, brokers: Brokers
) -> None:
    brokers.at_once = at_once
    assert looked(start, end)


@pytest.mark.parametrize(
    ("start", "end"), [(10, 11), (10, 12), (15, 17), (11, 17), (17, 19), (18, 19), (17, 20)]
)
def test_rows_and_what_is_gone_are_not(start: int, end: int, brokers: Brokers) -> None:
    assert not looked(start, end)


def test_a_batch_that_compaction_has_emptied_is_not(brokers: Brokers) -> None:
    """It takes the offsets of rows that were there."""
    brokers.batches = (*BATCHES[:2], emptied(12, 14), *BATCHES[4:])
    assert not looked(11, 16)
    assert looked(14, 16)


def test_what_lies_before_the_beginning_of_the_log_is_not(brokers: Brokers) -> None:
    brokers.said = [Fetched(LOG, 3, 3, error=OffsetGone("begins at 10"))]
    assert not looked(3, 5)


def test_an_answer_without_batches_is_waited_behind(brokers: Brokers) -> None:
    brokers.said = [None, Fetched(LOG, 11, 11)]
    assert looked(11, 16, wait_s=5.0)


def test_what_takes_many_answers_may_take_longer_than_one(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    waits: list[float] = []
    take = brokers.take

    def slow(wait_s: float) -> Fetched | None:
        waits.append(wait_s)
        clock[0] += 3.0
        return take(wait_s)

    brokers.at_once = 1
    monkeypatch.setattr(brokers, "take", slow)
    monkeypatch.setattr(machine, "monotonic", lambda: clock[0])
    assert looked(11, 16, wait_s=4.0)
    assert waits == [4.0] * 5, "each answer brought one batch"


def test_brokers_that_do_not_answer_are_an_error_and_no_verdict(brokers: Brokers) -> None:
    brokers.batches = ()
    with pytest.raises(
        ConnectionError, match=r"belfry\.changelog/3: no record batch came from .*11"
    ):
        looked(11, 16)
    brokers.said = [Fetched(LOG, 11, 11, error=ConnectionError("not let in"))]
    with pytest.raises(ConnectionError, match="not let in"):
        looked(11, 16)


def test_nothing_is_followed_between_two_questions_and_it_can_be_closed(brokers: Brokers) -> None:
    asked = VoidOffsets({})
    assert asked.all_void(LOG, 11, 16)
    assert not asked.all_void(LOG, 18, 19)
    assert brokers.followed == [{LOG: 11}, {}, {LOG: 18}, {}]
    asked.close()
    assert brokers.closed


def test_no_client_is_made_before_there_is_a_hole() -> None:
    """Most logs that are read have none, and a verification needs this for nothing else."""
    given: Any = {"bootstrap.servers": "nowhere.invalid:9092"}
    VoidOffsets(given).close()
