"""What a partition holds in memory while payloads go into a day file, and come back.

    PYTHONPATH=app:. python benchmarks/day_files.py [bytes of a payload]

One file's worth of schedules waits in an engine on a map in memory; then payloads go, and come
back.  Printed is the most that Python has allocated at once, without the rows themselves: they lie
on a disk where a worker has them.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from tempfile import TemporaryDirectory
from time import sleep
from typing import Final

from fsspec.implementations.local import LocalFileSystem
from prometheus_client import CollectorRegistry

from belfry.engine.day_files import FILE_BYTES
from belfry.outputs.day_store import DayStore
from belfry.partitions.day_files import LOOK_MS, SOON_MS, DayFileTurns
from belfry.store.layout.day_reference import DAY_MS
from belfry.store.layout.pending_bytes import away, is_pending
from belfry.telemetry.day_file_metrics import DayFileMetrics
from belfry.telemetry.metric_maker import MetricMaker
from tests.unit.engine.driver import T0, Driver

FAR: Final = T0 // DAY_MS * DAY_MS + 30 * DAY_MS
# What an object of bytes takes beside its bytes; a row is two.
OBJECT_BYTES: Final = 33
TURNS: Final = 4_000


class Partition:
    """A partition with schedules that are due on one day."""

    def __init__(self, folder: str, size: int) -> None:
        self.driver = Driver()
        self.number = FILE_BYTES // size + 1
        for number in range(self.number):
            payload = b"%08d" % number + b"x" * (size - 8)
            self.driver.ask(schedule_id=f"schedule-{number}", at=FAR + number, payload=payload)
            if number % 500 == 0:
                self.driver.step(T0, fire=False)
        self.driver.step(T0, fire=False)
        self.driver.changelog.clear()
        metrics = DayFileMetrics(MetricMaker(CollectorRegistry()))
        self.turns = DayFileTurns(DayStore(LocalFileSystem(), folder), 3, 7, metrics)

    def away(self) -> int:
        """How many payloads lie in files."""
        rows = self.driver.rows.scan(b"", b"\xff" * 40)
        return sum(is_pending(row) and away(row) for _, row in rows)

    def rows_bytes(self) -> int:
        """What the rows take that are kept."""
        rows = self.driver.rows.scan(b"", b"\xff" * 40)
        return sum(len(key) + len(row) + 2 * OBJECT_BYTES for key, row in rows)

    def most_bytes(self, wall_ms: int, over: Callable[[int], bool]) -> int:
        """The most that is held at once until so many payloads are away, without rows."""
        tracemalloc.start()
        rows, most, now_ms = self.rows_bytes(), 0, 0.0
        for turn in range(TURNS):
            now_ms += 1_000
            tracemalloc.reset_peak()
            if self.turns.pause_s <= SOON_MS / 1000:
                sleep(SOON_MS / 1000)
            effects = self.turns.add_to(self.driver.engine, None, now_ms, lambda: wall_ms)
            if effects is not None and not effects.empty:
                self.driver.end(wall_ms)
            self.driver.changelog.clear()
            peak = tracemalloc.get_traced_memory()[1]
            most = max(most, peak - (self.rows_bytes() - rows))
            if turn > 5 and self.turns.pause_s == LOOK_MS / 1000 and over(self.away()):
                break
        tracemalloc.stop()
        self.turns.begin()
        return most


def main(size: int) -> None:
    """Print both figures for payloads of this size."""
    with TemporaryDirectory() as folder:
        partition = Partition(folder, size)
        # The last one may lie by itself, and is not worth a file.
        gone = partition.most_bytes(T0, lambda number: number >= partition.number - 1)
        back = partition.most_bytes(FAR - 1, lambda number: not number)
        print(f"{partition.number} payloads of {size} bytes: {gone / 1e6:.1f} MB while they go,")
        print(f"{back / 1e6:.1f} MB while they come back; {partition.away()} are left away")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
