"""What a small step costs a worker, part by part, without Kafka: ms of processor time each.

    PYTHONPATH=app python benchmarks/small_steps.py                       one JSON line
    PYTHONPATH=app python benchmarks/small_steps.py --against OTHER/app   beside another tree

A step of two fires and two requests, to 97 tenants' topics: an engine on RocksDB, records, one
Produce and one EndTxn over a socket, and the store's write.  The broker is another process that
answers at once (`answering_broker.py`).  `waits in its thread` is what the step's thread takes to
hand over to the loop of requests and to hear of it, and `the loop of requests` what that takes.
The median of all steps counts, so what a busy machine does to some is no part's.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from time import clock_gettime_ns, pthread_getcpuclockid, thread_time_ns
from typing import Any, Final, TypeVar

from answering_broker import serve
from prometheus_client import CollectorRegistry

from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import SourcePartition
from belfry.host.clock import SystemClock
from belfry.host.failpoints import Failpoints
from belfry.host.rocks import RocksMap
from belfry.kafka.client_loop import ClientLoop
from belfry.kafka.step_producer import ProducerSurroundings
from belfry.kafka.step_records import OutputTopics
from belfry.partitions.gauges import Gauges
from belfry.schedules.identity import Homes
from belfry.store.schedules import ScheduleStore
from belfry.telemetry.metrics import Metrics
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from belfry.transactions.producer import DirectProducer
from belfry.wire import catalogue, framing
from belfry.wire.batch import SourceBatch
from belfry.wire.requests import RequestReader

NOW_MS: Final = 1_800_000_000_000
AHEAD_MS: Final = 300
TENANTS: Final = 97
EACH: Final = 2
STEPS: Final = 600
SETTLING: Final = 100
FRAME: Final = framing.single_object("ScheduleRequest")
TOPICS: Final = OutputTopics(
    changelog="belfry.changelog",
    schedules="belfry.schedules",
    rejected="belfry.rejected",
    lifecycle="belfry.lifecycle",
    lifecycle_head=framing.single_object("LifecycleEvent"),
    deliveries="belfry.deliveries",
    deliveries_head=b"",
    partitions_of=lambda _: 4,
)
Made = TypeVar("Made")


class SmallSteps:
    """One partition that takes two requests in and fires two events in each step."""

    def __init__(self, folder: Path, port: int) -> None:
        metrics = Metrics(CollectorRegistry())
        self._gauges = Gauges(metrics)
        tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
        for number in range(TENANTS):
            tenants.of(f"tenant-{number}")
        place = SourcePartition("belfry.schedules", 0, Homes(1))
        store = ScheduleStore(RocksMap(folder / "state"))
        self._engine = PartitionEngine(place, store, RequestReader(), tenants)
        self._loop = ClientLoop("transaction-writer")
        properties = {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "transactional.id": "belfry.0",
            "compression.type": "lz4",
            **self._gauges.client("transaction", 0),
        }
        surroundings = ProducerSurroundings(TOPICS, SystemClock(), Failpoints())
        self._producer = DirectProducer(properties, 0, surroundings, self._loop, 2)
        self._producer.connect()
        self._producer.open()
        loop = next(each for each in threading.enumerate() if "transaction-writer" in each.name)
        self._loop_clock = pthread_getcpuclockid(loop.ident or 0)
        self.spent: dict[str, list[float]] = defaultdict(list)
        self._run = self._producer._run  # noqa: SLF001  # what waits is told apart
        self._producer._run = self._waited  # type: ignore[method-assign]  # noqa: SLF001

    def step(self, number: int) -> None:
        """Fire and take in, all the way."""
        loop_began = clock_gettime_ns(self._loop_clock)
        now_ms, asked = NOW_MS + number, _asked(number * EACH)
        engine, started = self._engine, thread_time_ns()
        self._timed("the engine fires", lambda: engine.fire_due(now_ms, 10_000))
        effects = self._timed("the engine takes in", lambda: engine.accept(asked, now_ms))
        self._timed("the engine seals", lambda: engine.seal(owner_epoch=1))
        self._waits = 0
        before = thread_time_ns()
        receipt = self._producer.commit(effects)
        made = thread_time_ns() - before - self._waits
        self.spent["records and batches are made"].append(made / 1e6)
        self.spent["the step waits in its thread"].append(self._waits / 1e6)
        self._timed("the store writes", lambda: engine.committed(receipt.next_offset, now_ms))
        self._timed("the step is counted", lambda: self._gauges.committed(effects, 0.005, 5))
        engine.next_due_ms()
        ended, loop_ended = thread_time_ns(), clock_gettime_ns(self._loop_clock)
        self.spent["the loop of requests"].append((loop_ended - loop_began) / 1e6)
        self.spent["all"].append((ended - started + loop_ended - loop_began) / 1e6)

    def _waited(self, work: Any, most_s: float) -> Any:
        before = thread_time_ns()
        try:
            return self._run(work, most_s)
        finally:
            self._waits += thread_time_ns() - before

    def _timed(self, part: str, work: Callable[[], Made]) -> Made:
        began = thread_time_ns()
        made = work()
        self.spent[part].append((thread_time_ns() - began) / 1e6)
        return made


def _asked(first: int) -> SourceBatch:
    """Two requests, due some steps later."""
    found = []
    for offset in range(first, first + EACH):
        asked = {
            "tenant": f"tenant-{offset * 31 % TENANTS}",
            "schedule_id": f"live-{offset:09d}",
            "key": b"k%09d" % offset,
            "payload": os.urandom(400),
            "at": NOW_MS + first // EACH + AHEAD_MS,
        }
        value = FRAME + catalogue.encode("ScheduleRequest", asked)
        found.append((offset, NOW_MS, None, value, None))
    return SourceBatch(first, first + EACH, found, size=500 * EACH)


def measure() -> dict[str, float]:
    """Ms a step, by its parts."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    process.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            steps = SmallSteps(Path(folder), here.recv())
            for number in range(STEPS + SETTLING):
                steps.step(number)
            return {
                part: round(statistics.median(spent[SETTLING:]), 4)
                for part, spent in steps.spent.items()
            }
    finally:
        process.terminate()


def beside(app: str) -> dict[str, float]:
    """The same in a process of its own, of a tree."""
    done = subprocess.run(  # noqa: S603  # this very file
        [sys.executable, str(Path(__file__))],
        env={**os.environ, "PYTHONPATH": app}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description="What a small step costs a worker.")
    parser.add_argument("--against", help="app folder of another tree, measured in turn with this")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    if not asked.against:
        print(json.dumps(measure()))
        return
    here = str(Path(__file__).parents[1] / "app")
    pairs = [(beside(asked.against), beside(here)) for _ in range(asked.rounds)]
    for part in pairs[0][0]:
        before, now = (min(one[part] for one in side) for side in zip(*pairs, strict=True))
        print(f"{part:30} {before:7.4f} {now:7.4f}")


if __name__ == "__main__":
    main()
