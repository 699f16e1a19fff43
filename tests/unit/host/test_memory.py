"""Cycles of garbage are looked for rarely: not for what steps hold, and yet at last."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from belfry.host.memory import THRESHOLDS, look_for_cycles_rarely

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
