"""Cycles of garbage are looked for rarely, and memory that nobody uses goes back."""

from __future__ import annotations

import gc
import platform
import subprocess
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from belfry.host import memory
from belfry.host.memory import LOOKS, THRESHOLDS, SpareMemory, look_for_cycles_rarely

PARTITIONS = 4
# What a step may fire by default, and objects that an event is made of while it is under way.
EVENTS = 10_000
OBJECTS = 5
# Frees 40 MB that lie between what lasts, and says what the process holds before and after looks.
AMID = """
import mmap
from belfry.host.memory import LOOKS, SpareMemory

def held():
    return int(open("/proc/self/statm").read().split()[1]) * mmap.PAGESIZE

rows = [bytes(20_000) for _ in range(4_000)]
del rows[::2]
before, spare = held(), SpareMemory()
for _ in range(LOOKS):
    spare.look()
print(before, held())
"""


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


def test_memory_that_is_free_goes_back_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(memory, "_of_allocator", lambda _name: asked.append)
    spare = SpareMemory()
    for number in range(1, 3 * LOOKS + 1):
        spare.look()
        assert asked == [0] * (number // LOOKS)


def test_where_the_allocator_has_no_such_call_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "_of_allocator", lambda _name: None)
    spare = SpareMemory()
    for _ in range(LOOKS):
        spare.look()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has such a call")
def test_pages_amid_the_heap_go_back() -> None:
    """In a process of its own, so that nothing else lies in its heap."""
    done = subprocess.run([sys.executable, "-c", AMID], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert before - after > 20_000_000
