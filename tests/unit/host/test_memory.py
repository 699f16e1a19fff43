"""Cycles of garbage are looked for rarely, and memory that nobody uses goes back."""

from __future__ import annotations

import gc
import mmap
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from belfry.host import memory
from belfry.host.memory import (
    GROWN_BYTES,
    SETTLED,
    THRESHOLDS,
    SpareMemory,
    look_for_cycles_rarely,
    resident_bytes,
)

PARTITIONS = 4
# What a step may fire by default, and objects that an event is made of while it is under way.
EVENTS = 10_000
OBJECTS = 5


@pytest.fixture
def looks() -> Iterator[list[int]]:
    """The generations that were looked through since the threshold was set."""
    found: list[int] = []

    def note(phase: str, about: dict[str, Any]) -> None:
        if phase == "start":
            found.append(about["generation"])

    before = gc.get_threshold()
    gc.collect()
    look_for_cycles_rarely()
    gc.callbacks.append(note)
    try:
        yield found
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
        gc.unfreeze()


def test_steps_of_all_partitions_are_not_looked_through(looks: list[int]) -> None:
    for _ in range(20):
        step = [[number] for number in range(PARTITIONS * EVENTS * OBJECTS)]
        assert len(step) == PARTITIONS * EVENTS * OBJECTS
        del step
    assert looks == []


def test_cycles_are_found_at_last(looks: list[int]) -> None:
    class Loop:
        def __init__(self) -> None:
            self.itself = self

    first = weakref.ref(Loop())
    for _ in range(THRESHOLDS[0]):
        Loop()
    assert looks
    assert first() is None


MB = 1024 * 1024


class Allocator:
    """Holds so much, and keeps what is free until it is asked to give it back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.used = self.held = 200 * MB
        self.asked = 0
        monkeypatch.setattr(memory, "resident_bytes", lambda: self.held)
        monkeypatch.setattr(memory, "_of_allocator", lambda _name: self._give_back)
        self.spare = SpareMemory()
        self.spare.look()

    def _give_back(self, _pad: int) -> int:
        self.asked += 1
        self.held = self.used
        return 1

    def look(self, used: int, times: int = 1) -> int:
        """Looks at a process that uses so many bytes; how often memory went back so far."""
        self.used, self.held = used, max(used, self.held)
        for _ in range(times):
            self.spare.look()
        return self.asked


@pytest.fixture
def allocator(monkeypatch: pytest.MonkeyPatch) -> Allocator:
    return Allocator(monkeypatch)


def test_a_process_that_does_not_grow_gives_nothing_back(allocator: Allocator) -> None:
    assert allocator.look(200 * MB, 50) == 0
    assert allocator.look(200 * MB + GROWN_BYTES - 1, 50) == 0


def test_what_has_grown_gives_back_and_counts_from_there(allocator: Allocator) -> None:
    assert allocator.look(200 * MB + GROWN_BYTES) == 1
    assert allocator.look(200 * MB + 2 * GROWN_BYTES - 1) == 1
    assert allocator.look(200 * MB + 2 * GROWN_BYTES) == 2


def test_what_became_free_since_goes_back_once_all_is_calm(allocator: Allocator) -> None:
    allocator.look(300 * MB)
    allocator.look(200 * MB, SETTLED - 1)
    assert allocator.held == 300 * MB
    allocator.look(200 * MB)
    assert allocator.held == 200 * MB
    assert allocator.look(200 * MB, 50) == 2


def test_growth_counts_from_the_least_that_was_held(allocator: Allocator) -> None:
    allocator.look(200 * MB)
    allocator.held = 150 * MB
    assert allocator.look(150 * MB) == 0
    assert allocator.look(150 * MB + GROWN_BYTES) == 1


def test_where_the_allocator_has_no_such_call_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "_of_allocator", lambda _name: None)
    SpareMemory().look()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_what_a_process_holds_is_what_it_has_touched() -> None:
    before = resident_bytes()
    with mmap.mmap(-1, 64 * MB) as held:
        assert resident_bytes() - before < 32 * MB
        for page in range(0, len(held), mmap.PAGESIZE):
            held[page] = 1
        assert resident_bytes() - before > 32 * MB
    SpareMemory().look()
