"""What it costs a standby to follow a partition's changelog, beside its owner; without a broker.

    PYTHONPATH=app python benchmarks/following.py                     all cases, a JSON line each
    PYTHONPATH=app python benchmarks/following.py --against OTHER/app beside another tree, in turn

An engine on a RocksDB store takes one-shots in and fires them.  Its steps become record batches, as
the worker's own writer makes them, and a standby's reader, sieve and replay follow them into a
RocksDB store of their own, with the standby's rhythm.

    ingest   requests are taken in, due much later       out   they fire
    brief    each fires within a thousand events

`owner` and `standby` are µs of processor time a request or a fire, with RocksDB's own threads.  The
owner's part is the engine and its store: a worker's whole work with Kafka is some three times that.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time, thread_time
from typing import Final

from belfry.engine.effects import Effects
from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import SourcePartition
from belfry.host.memory import look_for_cycles_rarely, spare_memory
from belfry.host.rocks import RocksMap
from belfry.kafka.changelog_batches import records_in
from belfry.kafka.changelog_sieve import Sieve
from belfry.partitions.standby_upkeep import FoldRhythm
from belfry.schedules.identity import Homes
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from belfry.transactions.batches import StepBatches, Writer
from belfry.transactions.packing import LZ4
from belfry.wire import catalogue, framing
from belfry.wire.batch import SourceBatch
from belfry.wire.record_batches import batches_in
from belfry.wire.requests import RequestReader

NOW_MS: Final = 1_800_000_000_000
HOUR_MS: Final = 3_600_000
TENANTS: Final = 97
STEP: Final = 1_500
READ_RECORDS: Final = 5_000
FRAME: Final = framing.single_object("ScheduleRequest")
WHERE: Final = ("changelog", 0)


class Owner:
    """One engine, and the changelog that it writes, as fetched bytes, a step each."""

    def __init__(self, folder: Path) -> None:
        self._rows = RocksMap(folder)
        tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
        for number in range(TENANTS):
            tenants.of(f"t{number}")
        place = SourcePartition("belfry.schedules", 0, Homes(1))
        self._engine = PartitionEngine(place, ScheduleStore(self._rows), RequestReader(), tenants)
        self._offset = self._asked = 0
        self.seconds = 0.0
        self.log: list[tuple[int, bytes]] = []

    def take(self, count: int, due_ms: int) -> None:
        """Take requests in that are due then."""
        found = []
        for offset in range(self._asked, self._asked + count):
            asked = {"tenant": f"t{offset % TENANTS}", "schedule_id": f"order-{offset}"}
            fields = {**asked, "at": due_ms, "payload": os.urandom(200).hex().encode()}
            value = FRAME + catalogue.encode("ScheduleRequest", fields)
            found.append((offset, NOW_MS, None, value, None))
        batch = SourceBatch(self._asked, self._asked + count, found, size=500 * count)
        self._asked += count
        began = process_time()
        effects = self._engine.accept(batch, NOW_MS)
        self._commit(effects, began)

    def fire(self, count: int) -> None:
        """Fire so many events that are due."""
        while count > 0:
            began = process_time()
            effects = self._engine.fire_due(NOW_MS + HOUR_MS + 1, count)
            count -= len(effects.fired)
            self._commit(effects, began)

    def _commit(self, effects: Effects, began: float) -> None:
        rows = effects.rows
        self._engine.seal(owner_epoch=1)
        batches = StepBatches(LZ4, {}, NOW_MS)
        began_log = process_time()
        batches.add_rows(WHERE, list(rows.items()))
        made = batches.finish(Writer(1, 0), {})
        in_log = process_time() - began_log
        for each in made:
            self.log.append((each.records, placed(each.data, self._offset)))
            self._offset += each.records
        # A commit marker.
        self._offset += 1
        self._engine.committed(self._offset, NOW_MS)
        self.seconds += process_time() - began - in_log

    def close(self) -> None:
        """Close the store."""
        self._rows.close()


def placed(data: bytes | bytearray, offset: int) -> bytes:
    """A batch as its leader puts it: at this offset."""
    return offset.to_bytes(8, "big") + bytes(data[8:])


class Follower:
    """What a standby does with the bytes that it has fetched."""

    def __init__(self, folder: Path) -> None:
        self._rows = RocksMap(folder)
        self._replay = Replay(ScheduleStore(self._rows))
        self._sieve = Sieve()
        self._rhythm = FoldRhythm()
        self.seconds = self.thread_s = 0.0

    def follow(self, log: Sequence[tuple[int, bytes]]) -> None:
        """Follow these batches, read about `READ_RECORDS` at a time."""
        began, began_thread = process_time(), thread_time()
        for some in portions(log):
            records = [
                record
                for data in some
                for batch in batches_in(data)
                for record in records_in(batch)
            ]
            self._replay.hold(*self._sieve.ours(records, WHERE))
            if self._rhythm.due(self._replay.held, 0.0):
                self._replay.fold(NOW_MS)
        self._replay.fold(NOW_MS)
        self.seconds += process_time() - began
        self.thread_s += thread_time() - began_thread

    def close(self) -> None:
        """Close the store; raises HoleInChangelog where the fold is not what the owner says."""
        self._replay.check()
        self._rows.close()


def portions(log: Sequence[tuple[int, bytes]]) -> Iterator[list[bytes]]:
    """Batches, so many at a time as one read gives."""
    some: list[bytes] = []
    count = 0
    for records, data in log:
        some.append(data)
        count += records
        if count >= READ_RECORDS:
            yield some
            some, count = [], 0
    if some:
        yield some


def measured(case: str, events: int) -> dict[str, float]:
    """µs an event of owner and standby."""
    with TemporaryDirectory() as folder:
        owner, follower = Owner(Path(folder) / "owner"), Follower(Path(folder) / "standby")
        try:
            return _measured(owner, follower, case, events)
        finally:
            owner.close()
            follower.close()


def _measured(owner: Owner, follower: Follower, case: str, events: int) -> dict[str, float]:
    for _ in range(0, events, STEP):
        owner.take(STEP, NOW_MS + HOUR_MS)
        if case == "brief":
            owner.fire(STEP)
    gc.collect()
    if case == "out":
        follower.follow(owner.log)
        owner.log, owner.seconds, follower.seconds, follower.thread_s = [], 0.0, 0.0, 0.0
        for _ in range(0, events, STEP):
            owner.fire(STEP)
    follower.follow(owner.log)
    taken = -(-events // STEP) * STEP
    return {
        "owner": round(owner.seconds / taken * 1e6, 2),
        "standby": round(follower.seconds / taken * 1e6, 2),
        "standby_thread": round(follower.thread_s / taken * 1e6, 2),
    }


CASES: Final = ("ingest", "out", "brief")


def beside(case: str, app: str, events: int) -> dict[str, float]:
    """The same in a process of its own, of another tree."""
    command = [sys.executable, str(Path(__file__)), case, "--events", str(events)]
    environment = {**os.environ, "PYTHONPATH": app}
    done = subprocess.run(  # noqa: S603  # this very file
        command, env=environment, check=True, capture_output=True, text=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description="What it costs to follow a changelog.")
    parser.add_argument("case", nargs="*", choices=[*CASES, []], default=[])
    parser.add_argument("--events", type=int, default=150_000)
    parser.add_argument("--against", help="app folder of another tree, measured in turn with this")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    spare_memory()
    look_for_cycles_rarely()
    for case in asked.case or CASES:
        if not asked.against:
            print(json.dumps({"case": case, **measured(case, asked.events)}))
            continue
        here = str(Path(__file__).parents[1] / "app")
        pairs = [
            (beside(case, here, asked.events), beside(case, asked.against, asked.events))
            for _ in range(asked.rounds)
        ]
        told: dict[str, object] = {"case": case}
        for name in ("standby", "standby_thread"):
            told[name] = min(mine[name] for mine, _ in pairs)
            told[f"other_{name}"] = min(other[name] for _, other in pairs)
            ratios = [mine[name] / other[name] for mine, other in pairs]
            told[f"{name}_ratio"] = round(statistics.median(ratios), 3)
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
