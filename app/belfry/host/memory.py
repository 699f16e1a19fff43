"""How a process that makes and drops many small objects treats its memory.

What is freed stays with the allocator, and the system gets it back at the end of the heap alone.
Something that lasts soon lies behind each hole: a block of a file, a memory table's, a connection's
buffer.  So a worker that has taken a heap of requests in would hold that memory for ever.
`SpareMemory` has the pages within the heap given back:

    12:00:00  holds 200 MB, the least so far
    12:00:07  has grown to 240 MB: what is free goes back, 215 MB are left
    12:00:12  the last of the requests is committed: 230 MB
    12:00:17  has not grown for ten looks: goes back once more, 205 MB are left, and that was all
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from mmap import PAGESIZE
from pathlib import Path
from typing import Any, Final

# A look at young objects comes when so many more are there than at the last one.  A step of 10 000
# fires holds some 50 000 of those that are looked at, until the next step of its partition begins.
# So a smaller number has all of them looked at in each step, for a microsecond an event, while this
# one is met by what stays alone: by cycles, or by many partitions with large steps.
THRESHOLDS: Final = (400_000, 3, 40)
M_ARENA_MAX: Final = -8  # of malloc.h
# By so many bytes a process has grown when what is free goes back: to look through the heap takes
# some 10 ms, in which threads that want memory wait.
GROWN_BYTES: Final = 32 * 1024 * 1024
# So many looks without growth, and it goes back once more.
SETTLED: Final = 10


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
        # Bytes: the least that was held since memory went back last.
        self._least = sys.maxsize
        self._looks_left = 0

    def look(self) -> None:
        """Give memory back where the process has grown; called once a second or so."""
        if self._give_back is None:
            return
        held = resident_bytes()
        self._least = min(self._least, held)
        grown = held - self._least >= GROWN_BYTES
        if grown:
            self._looks_left = SETTLED
        elif self._looks_left:
            self._looks_left -= 1
            grown = not self._looks_left
        if grown:
            self._give_back(0)
            self._least = resident_bytes()


def resident_bytes() -> int:
    """Memory that this process holds, by Linux's ``/proc``."""
    pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    return int(pages) * PAGESIZE


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
