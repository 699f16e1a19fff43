"""A reader that is to end ends, whatever it waits for."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import pytest

from belfry.partitions import source
from belfry.partitions.source import AHEAD, SIP_BYTES, SourceReader
from belfry.wire.batch import SourceBatch


class Endless:
    """A log that has one more offset, and no record at it, whenever it is read."""

    def __init__(self) -> None:
        self.position = 0
        self.closed = False
        self.appended = True

    def read(self, _at_most: int, _wait_s: float) -> list[Any]:
        self.position += 1
        return []

    def close(self) -> None:
        self.closed = True


def test_a_reader_without_room_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fenced owner takes nothing more, so nobody makes room."""
    monkeypatch.setattr(source, "WAIT_S", 3_600.0)
    full = Event()
    batches: list[SourceBatch] = []

    def hand_over(batch: SourceBatch) -> None:
        batches.append(batch)
        if len(batches) == AHEAD:
            full.set()

    log: Any = Endless()
    reader = SourceReader(log, 10, 1_000, hand_over)
    reader.start()
    assert full.wait(30)
    stopping = Thread(target=reader.stop, daemon=True)
    stopping.start()
    stopping.join(30)
    assert not stopping.is_alive()
    assert log.closed
    assert len(batches) == AHEAD


class Full(Endless):
    """A log with records of these sizes, read all at once."""

    def __init__(self, *sizes: int, headers: bool = False) -> None:
        super().__init__()
        self._sizes = sizes
        self._headers = headers

    def read(self, _at_most: int, _wait_s: float) -> list[Any]:
        start, self.position = self.position, len(self._sizes)
        return [self._record(n, size) for n, size in enumerate(self._sizes)][start:]

    def _record(self, offset: int, size: int) -> Any:
        value = None if self._headers else b"v" * size
        headers = [("", b"h" * size)] if self._headers else None
        return (offset, 1_000, None, value, headers)


def read(
    monkeypatch: pytest.MonkeyPatch, log: Any, most_bytes: int, batches: int, *, room: bool = True
) -> list[SourceBatch]:
    """The first batches of a log."""
    found: list[SourceBatch] = []
    enough = Event()

    def hand_over(batch: SourceBatch) -> None:
        found.append(batch)
        if room:
            reader.taken(batch.parts)
        if len(found) == batches:
            enough.set()

    reader = SourceReader(log, 1_000, most_bytes, hand_over)
    reader.start()
    enough.wait(10 if room else 0.5)
    reader.stop()
    return found


@pytest.mark.parametrize("headers", [False, True])
def test_a_batch_has_as_many_bytes_as_a_step_takes_in_or_one_record_more(
    monkeypatch: pytest.MonkeyPatch, headers: bool
) -> None:
    log = Full(400, 400, 400, 10, 900, 5_000, 10, headers=headers)
    found = read(monkeypatch, log, 1_000, 3)
    offsets = [[record[0] for record in each.records] for each in found]
    assert offsets == [[0, 1, 2], [3, 4, 5], [6]]
    assert [(each.start, each.next_position) for each in found] == [(0, 3), (3, 6), (6, 7)]
    assert [each.size for each in found] == [1_200, 5_910, 10]


def test_nothing_is_read_ahead_of_a_large_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    large = read(monkeypatch, Full(600, 600, 600), 1_000, 2, room=False)
    assert [(each.parts, each.size) for each in large] == [(AHEAD, 1_200)]
    small = read(monkeypatch, Full(600, 600, 600), 10_000, 2, room=False)
    assert [(each.parts, each.size) for each in small] == [(1, 1_800)]


class InSlices(Full):
    """The same log, of which each read gives one record."""

    def read(self, _at_most: int, _wait_s: float) -> list[Any]:
        offset, self.position = self.position, min(self.position + 1, len(self._sizes))
        return [self._record(each, self._sizes[each]) for each in range(offset, self.position)]


def test_only_a_trickle_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of a large batch follow one another at once, and others wait behind them."""
    monkeypatch.setattr(source, "SIP_S", 3_600.0)
    assert len(read(monkeypatch, InSlices(*[SIP_BYTES] * 5), 10_000_000, 5)) == 5
    assert len(read(monkeypatch, InSlices(*[10] * 5), 10_000_000, 5, room=False)) == 1
