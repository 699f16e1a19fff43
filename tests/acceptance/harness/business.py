"""How many cores of the machine are kept busy by what runs at an ordinary priority.

The load of the last minute counts what was over long ago, and what runs at the lowest priority and
steps back for everybody.  Neither makes a worker late, so both are left out here.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

LOWEST_PRIORITY: Final = 19
_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
# Places in /proc/<pid>/stat behind the name of the program.
_USER, _SYSTEM, _NICE = 11, 12, 16


def busy_cores(over_s: float = 2.0) -> float:
    """Cores that were busy meanwhile, on the mean; processes that ended meanwhile are left out."""
    before, started = _ticks(), time.monotonic()
    time.sleep(over_s)
    worked = sum(ticks - before.get(pid, 0) for pid, ticks in _ticks().items())
    return worked / _TICKS_A_SECOND / (time.monotonic() - started)


def _ticks() -> dict[str, int]:
    """Time of each process that is not at the lowest priority."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        # It may have ended just now.
        with suppress(OSError):
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[_NICE]) < LOWEST_PRIORITY:
                found[path.parent.name] = int(fields[_USER]) + int(fields[_SYSTEM])
    return found
