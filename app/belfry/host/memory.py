"""How a process that makes and drops many small objects treats its memory.

What is freed stays with the allocator, and the system gets it back at the end of the heap alone.
Something that lasts soon lies behind each hole: a block of a file, a memory table's, a connection's
buffer.  So a worker that has taken a heap of requests in would hold that memory for ever.
`SpareMemory` has the free pages within the heap given back, again and again.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from typing import Any, Final

# A look at young objects comes when so many more are there than at the last one.  A step of 10 000
# fires holds some 50 000 of those that are looked at, until the next step of its partition begins.
# So a smaller number has all of them looked at in each step, for a microsecond an event, while this
# one is met by what stays alone: by cycles, or by many partitions with large steps.
THRESHOLDS: Final = (400_000, 3, 40)
M_ARENA_MAX: Final = -8  # of malloc.h
# How many looks, of one a second, come to one at which memory goes back: to go through the heap
# takes 5 to 15 ms, in which threads that want memory wait.
LOOKS: Final = 30


def spare_memory() -> None:
    """Two arenas instead of eight a core: each of the many threads would keep one half empty."""
    mallopt = _of_allocator("mallopt")
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 2)


class SpareMemory:
    """Gives memory back that the allocator keeps and nobody uses; used by one thread.

    Where the system or its C library has no such call, it does nothing.
    """

    def __init__(self) -> None:
        self._give_back: Callable[[int], object] | None = _of_allocator("malloc_trim")
        self._looks = 0

    def look(self) -> None:
        """Give memory back where it is time for that; called once a second."""
        self._looks = (self._looks + 1) % LOOKS
        if not self._looks and self._give_back is not None:
            # So many bytes stay at the end of the heap.
            self._give_back(0)


def _of_allocator(name: str) -> Any:
    """A function of the C library's allocator, None where there is none such."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


def look_for_cycles_rarely() -> None:
    """Have Python look for cycles of garbage rarely; called once all that lasts has been made.

    Steps and posts make tens of thousands of objects that live for milliseconds, or for as long as
    a host hangs: looking through them all, over and over, takes a fifth of a core's time.
    """
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
