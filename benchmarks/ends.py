"""What it costs to remember that schedules are over, and to forget it: one partition, no Kafka.

    PYTHONPATH=app python benchmarks/ends.py                   three days of 200 000 ends each
    PYTHONPATH=app python benchmarks/ends.py --waiting 1000000 beside a million schedules that wait

An engine on a RocksDB store takes one-shots in, fires them, and sweeps for as long as its sweeps
say that they are behind, through days that pass as quickly as the machine goes.  At the end all
that a day has left is over at once.  One JSON line: µs of processor time, bytes of keys and values,
and the longest step with its commit, by the time of its thread.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time, thread_time
from typing import Final

from belfry.engine.effects import Effects
from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import SourcePartition
from belfry.host.rocks import RocksMap
from belfry.schedules.identity import Homes
from belfry.store.ordered_map import Range
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from belfry.wire import catalogue, framing
from belfry.wire.batch import SourceBatch
from belfry.wire.requests import RequestReader

NOW_MS: Final = 1_800_000_000_000
DAY_MS: Final = 86_400_000
TENANTS: Final = 97
SWEEP_ROWS: Final = 500
FRAME: Final = framing.single_object("ScheduleRequest")


class Counted(RocksMap):
    """A store that counts the bytes that it is given."""

    written = 0

    def write(self, writes: Mapping[bytes, bytes | None], cleared: Sequence[Range] = ()) -> None:
        """Put or delete, and count."""
        self.written += bytes_of(writes)
        super().write(writes, cleared)


class Part:
    """What one part of the work has cost: µs, bytes of the changelog, bytes of the store."""

    def __init__(self) -> None:
        self.seconds = self.longest_s = 0.0
        self.changelog = self.store = self.steps = self.forgotten = 0


class Days:
    """One engine, and the days that it goes through."""

    def __init__(self, folder: Path) -> None:
        self.rows = Counted(folder)
        tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
        for number in range(TENANTS):
            tenants.of(f"t{number}")
        place = SourcePartition("belfry.schedules", 0, Homes(1))
        self.engine = PartitionEngine(place, ScheduleStore(self.rows), RequestReader(), tenants)
        self.now_ms, self.offset, self.steps, self.fired = NOW_MS, 0, 0, 0
        self.taking, self.firing, self.sweeping = Part(), Part(), Part()

    def take(self, count: int, due_ms: int) -> None:
        """Take requests in that are due then."""
        found = []
        for offset in range(self.offset, self.offset + count):
            name = blake2b(b"%d" % offset, digest_size=10).hexdigest()
            asked = {"tenant": f"t{offset % TENANTS}", "schedule_id": name, "at": due_ms}
            value = FRAME + catalogue.encode("ScheduleRequest", {**asked, "payload": b"x" * 400})
            found.append((offset, self.now_ms, None, value, None))
        batch = SourceBatch(self.offset, self.offset + count, found, size=500 * count)
        self.offset += count
        self._step(self.taking, lambda: self.engine.accept(batch, self.now_ms))

    def fire(self, count: int) -> None:
        """Fire what is due: so many events, in a step or two."""
        until = self.fired + count
        while self.fired < until:
            self._step(self.firing, lambda: self.engine.fire_due(self.now_ms, count))

    def sweep(self) -> int:
        """Sweep once; how many ends were forgotten."""
        before = self.sweeping.forgotten
        self._step(self.sweeping, lambda: self.engine.sweep(self.now_ms, SWEEP_ROWS))
        return self.sweeping.forgotten - before

    def _step(self, part: Part, work: Callable[[], Effects]) -> None:
        written, began_s, began = self.rows.written, process_time(), thread_time()
        effects = work()
        self.fired += len(effects.fired)
        part.changelog += bytes_of(effects.rows)
        part.forgotten += sum(row is None for row in effects.rows.values())
        if not effects.empty:
            self.engine.seal(owner_epoch=1)
            self.steps += 1
            self.engine.committed(self.steps, self.now_ms)
        part.seconds += process_time() - began_s
        part.longest_s = max(part.longest_s, thread_time() - began)
        part.store += self.rows.written - written
        part.steps += 1


def bytes_of(writes: Mapping[bytes, bytes | None]) -> int:
    """Bytes of keys and values."""
    return sum(len(key) + len(value or b"") for key, value in writes.items())


def figures(part: Part, of: int) -> dict[str, float]:
    """What a part has cost for each of so many ends."""
    return {
        "us": round(part.seconds * 1e6 / of, 2),
        "changelog_bytes": round(part.changelog / of, 1),
        "store_bytes": round(part.store / of, 1),
        "longest_ms": round(part.longest_s * 1_000, 1),
        "steps": part.steps,
    }


def passing(days: Days, ends: int, parts: int, count: int) -> Iterator[None]:
    """So many days, each in so many parts, in which as much is taken in, fires and is forgotten."""
    for _ in range(count * parts):
        days.now_ms += DAY_MS // parts
        days.take(ends // parts, days.now_ms + 1_000)
        days.now_ms += 2_000
        days.fire(ends // parts)
        days.sweep()
        while days.engine.sweeps_behind:
            days.sweep()
        yield


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description="What it costs to remember ends.")
    parser.add_argument("--ends", type=int, default=200_000, help="ends of a day")
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument("--parts", type=int, default=100, help="steps of a day")
    parser.add_argument("--waiting", type=int, default=0)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        days = Days(Path(folder))
        for _ in range(0, asked.waiting, 2_000):
            days.take(2_000, NOW_MS + 1_000 * DAY_MS)
        days.taking = Part()
        for _ in passing(days, asked.ends, asked.parts, asked.days):
            pass
        ends = asked.ends * asked.days
        told: dict[str, object] = {"ends_a_day": asked.ends, "waiting": asked.waiting}
        told |= {"taken": figures(days.taking, ends), "fired": figures(days.firing, ends)}
        told |= {"swept": figures(days.sweeping, ends), "forgotten": days.sweeping.forgotten}
        # All that is left is over at once; one request tells the engine of the hour.
        left = ends - days.sweeping.forgotten
        days.now_ms += DAY_MS
        days.take(1, days.now_ms + 1_000 * DAY_MS)
        days.sweeping, idle = Part(), 0
        while days.sweeping.forgotten < left and idle < left + asked.waiting:
            idle = 0 if days.sweep() else idle + SWEEP_ROWS
        told |= {"at_once": {"ends": left, **figures(days.sweeping, left)}}
        print(json.dumps(told))
        days.rows.close()


if __name__ == "__main__":
    main()
