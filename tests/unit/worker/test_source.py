"""A reader that is to end ends, whatever it waits for."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import pytest

from belfry.wire.batch import SourceBatch
from belfry.worker import source
from belfry.worker.source import AHEAD, SourceReader


class Endless:
    """A log that has one more offset, and no record at it, whenever it is read."""

    def __init__(self) -> None:
        self.position = 0
        self.closed = False

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
    reader = SourceReader(log, 10, hand_over)
    reader.start()
    assert full.wait(30)
    stopping = Thread(target=reader.stop, daemon=True)
    stopping.start()
    stopping.join(30)
    assert not stopping.is_alive()
    assert log.closed
    assert len(batches) == AHEAD
