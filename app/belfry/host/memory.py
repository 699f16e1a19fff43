"""How a process that makes and drops many small objects treats its memory."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Final

# A look at young objects comes when so many more are there than at the last one.  A step of 10 000
# fires holds some 50 000 of those that are looked at, until the next step of its partition begins.
# So a smaller number has all of them looked at in each step, for a microsecond an event, while this
# one is met by what stays alone: by cycles, or by many partitions with large steps.
THRESHOLDS: Final = (400_000, 3, 40)
M_ARENA_MAX: Final = -8  # of malloc.h


def spare_memory() -> None:
    """Two arenas instead of eight a core: each of the many threads would keep one half empty."""
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(M_ARENA_MAX, 2)


def look_for_cycles_rarely() -> None:
    """Have Python look for cycles of garbage rarely; called once all that lasts has been made.

    Steps and posts make tens of thousands of objects that live for milliseconds, or for as long as
    a host hangs: looking through them all, over and over, takes a fifth of a core's time.
    """
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
