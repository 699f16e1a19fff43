"""How a process that makes and drops many small objects treats its memory."""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (50_000, 20, 50)


def look_for_cycles_rarely() -> None:
    """Have Python look for cycles of garbage rarely; called once all that lasts has been made.

    Steps and posts make tens of thousands of objects that live for milliseconds, or for as long as
    a host hangs: looking through them all, over and over, takes a fifth of a core's time.
    """
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
