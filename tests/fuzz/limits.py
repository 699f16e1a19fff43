"""What an input may cost: 50 ms of processor time, and no memory that stays.

The time is that of the thread that takes the input, so a machine that is busy with other things
makes nothing slow.  An input that took too long is let in twice more, alone: what counts is the
least of the three, since one may have been hit by a collection of garbage.  Memory is what the
process holds after a collection.  The first inputs import, compile and fill caches; then it is
measured for the first time, and for the last time when all inputs are done.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic, thread_time
from typing import Final

MOST_S: Final = 0.050
MOST_GROWTH_MB: Final = 64
# The first inputs are not timed, and memory is first measured after so many.
WARM: Final = 100
SETTLED: Final = 50_000
REPORT_EVERY: Final = 1_000_000
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")

Input = Callable[[bytes], None]


class Limited:
    """Lets inputs into a door, and holds them to the limits; `last` inputs are the whole run.

    `records` says how many records an input stands for, where it is more than one.
    """

    def __init__(
        self,
        make: Callable[[], Input],
        last: int | None = None,
        records: Callable[[bytes], int] = lambda _: 1,
    ) -> None:
        self._make = make
        self._records = records
        self._door = make()
        self._last = last
        self._began = monotonic()
        self.inputs, self.slowest_s, self.settled_mb = 0, 0.0, 0.0
        self.slowest = b""

    def __call__(self, data: bytes) -> None:
        """Let one input in."""
        began = thread_time()
        self._door(data)
        took_s = (thread_time() - began) / self._records(data)
        self.inputs += 1
        if took_s > self.slowest_s and self.inputs > WARM:
            self._judge(data, took_s)
        if self.inputs == SETTLED:
            self.settled_mb = resident_mb()
        if self.inputs % REPORT_EVERY == 0:
            self._tell()
        if self.inputs == self._last:
            self.end()

    def end(self) -> None:
        """The last input is done: look at the memory, tell of the run, and leave."""
        found = self._tell()
        grown_mb = found["resident_mb"] - self.settled_mb
        assert not self.settled_mb or grown_mb <= MOST_GROWTH_MB, f"{grown_mb:.0f} MB stay"
        # libFuzzer would go on to write its own farewell, and knows no other way to an early end.
        os._exit(0)

    def _judge(self, data: bytes, took_s: float) -> None:
        if took_s > MOST_S:
            again = [timed(self._make(), data) / self._records(data) for _ in range(2)]
            took_s = min(took_s, *again)
        assert took_s <= MOST_S, (
            f"{took_s * 1000:.0f} ms a record for {len(data)} bytes: {data!r:.200}"
        )
        if took_s > self.slowest_s:
            self.slowest_s, self.slowest = took_s, data

    def _tell(self) -> dict[str, float]:
        """Print what was done so far, as JSON."""
        seconds = monotonic() - self._began
        found = {
            "inputs": self.inputs,
            "seconds": round(seconds),
            "per_second": round(self.inputs / max(seconds, 0.001)),
            "slowest_ms": round(self.slowest_s * 1000, 1),
            "settled_mb": round(self.settled_mb, 1),
            "resident_mb": round(resident_mb(), 1),
        }
        print(json.dumps(found), repr(self.slowest[:80]), flush=True)
        return found


def timed(door: Input, data: bytes) -> float:
    """Processor time of one input, in seconds, without that of its first time."""
    door(data)
    gc.collect()
    began = thread_time()
    door(data)
    return thread_time() - began


def resident_mb() -> float:
    """Memory of this process after a collection of garbage."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * PAGE_BYTES / 1e6
