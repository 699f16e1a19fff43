"""What a worker's path of a request costs in one thread, part by part, without Kafka.

    PYTHONPATH=app python benchmarks/path.py                       µs of processor time a request
    PYTHONPATH=app python benchmarks/path.py --against OTHER/app   beside another tree, in turn

Requests are taken in by an engine on RocksDB, what a step writes becomes finished batches, the
step goes into the store, and the history reads the outcomes back and keeps them.  `plain` are
requests without an id, `ids` such with an id and so an outcome each.  Of all steps the first
quartile counts: what a busy machine does to the slower ones is no part's.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from time import thread_time_ns
from typing import Any, Final, TypeVar

from belfry.engine.effects import Effects
from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import SourcePartition
from belfry.history.history_store import HistoryStore
from belfry.history.lifecycle_reader import LifecycleBatch, LifecycleReader
from belfry.host.rocks import RocksMap
from belfry.kafka.step_records import OutputTopics
from belfry.schedules.identity import Homes
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from belfry.transactions.batches import ProducedBatch, StepBatches, Writer
from belfry.transactions.packing import CODECS
from belfry.transactions.placing import PlacedRecords
from belfry.wire import catalogue, framing
from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader

NOW_MS: Final = 1_800_000_000_000
HOUR_MS: Final = 3_600_000
TENANTS: Final = 97
STEP: Final = 1_500
STEPS: Final = 16
FRAME: Final = framing.single_object("ScheduleRequest")
HEAD: Final = framing.single_object("LifecycleEvent")
CHANGELOG: Final = "belfry.changelog", 0
PAYLOADS: Final = os.urandom(1 << 20)
TOPICS: Final = OutputTopics(
    changelog=CHANGELOG[0],
    schedules="belfry.schedules",
    rejected="belfry.rejected",
    lifecycle="belfry.lifecycle",
    lifecycle_head=HEAD,
    deliveries="belfry.deliveries",
    deliveries_head=b"",
    partitions_of=lambda _: 4,
)
PARTS: Final = (
    *("taken in by the engine", "records made", "batches finished and packed"),
    *("written to the store", "kept by the history"),
)
Made = TypeVar("Made")


class _Nothing:
    """Stands for the reader's topic and backlog: it is told, and asked for nothing."""

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_: None


class _Brokers:
    """Knows how many partitions topics have."""

    def partitions_of(self, _: str) -> int:
        return 4


class RequestPath:
    """One partition's engine and store, and a history beside it."""

    def __init__(self, folder: Path, *, ids: bool) -> None:
        self._ids = ids
        tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
        for number in range(TENANTS):
            tenants.of(f"tenant-{number}")
        place = SourcePartition("belfry.schedules", 0, Homes(1))
        self._store = ScheduleStore(RocksMap(folder / "state"))
        self._engine = PartitionEngine(place, self._store, RequestReader(), tenants)
        self._history = HistoryStore(history_rows(folder / "history"))
        nothing: Any = _Nothing()
        self._reader = LifecycleReader(nothing, nothing, HEAD)
        self.spent: dict[str, list[float]] = defaultdict(list)

    def step(self, number: int) -> None:
        """Take one batch in, all the way."""
        batch = self._asked(number * STEP)
        now_ms = NOW_MS + number
        effects = self._timed(PARTS[0], lambda: self._engine.accept(batch, now_ms))
        assert effects.outcomes.total() == STEP
        assert len(effects.lifecycle) == (STEP if self._ids else 0)
        self._engine.seal(owner_epoch=1)
        made = self._timed(PARTS[1], lambda: self._made(effects, number))
        self._timed(PARTS[2], lambda: made.finish(Writer(7, 1), {}))
        told = self._told(effects, number)
        self._timed(PARTS[3], lambda: self._engine.committed(number + 1, now_ms))
        if told.records:
            self._timed(PARTS[4], lambda: self._reader.keep(told, self._history))

    def _made(self, effects: Effects, number: int) -> StepBatches:
        step = StepBatches(CODECS["lz4"], {}, NOW_MS)
        placed = placed_records(step, number)
        add_outcomes(placed, effects)
        placed.add_rows(CHANGELOG, effects.rows, None)
        return step

    def _told(self, effects: Effects, number: int) -> LifecycleBatch:
        """The outcomes as the history reads them."""
        step = StepBatches(CODECS["none"], {}, NOW_MS)
        add_outcomes(placed_records(step, number), effects)
        first, records = number * STEP, list[Any]()
        for batch in step.finish(Writer(7, 1), {}):
            records += values_of(batch)
        asked: list[SourceRecord] = [
            (first + at, NOW_MS, None, value, None) for at, value in enumerate(records)
        ]
        return LifecycleBatch(0, first, asked, first + STEP)

    def _asked(self, first: int) -> SourceBatch:
        found = []
        for offset in range(first, first + STEP):
            named = {"tenant": f"tenant-{offset % TENANTS}", "schedule_id": f"order-{offset}"}
            at = offset * 613 % (len(PAYLOADS) - 400)
            content = {"key": b"k%d" % offset, "payload": PAYLOADS[at : at + 400]}
            asked: dict[str, Any] = {**named, **content, "at": NOW_MS + HOUR_MS + offset % 5_000}
            if self._ids:
                asked["request_id"] = f"request-{offset}"
            value = FRAME + catalogue.encode("ScheduleRequest", asked)
            found.append((offset, NOW_MS, None, value, None))
        return SourceBatch(first, first + STEP, found, size=500 * STEP)

    def _timed(self, part: str, work: Callable[[], Made]) -> Made:
        gc.collect()
        gc.disable()
        began = thread_time_ns()
        made = work()
        self.spent[part].append((thread_time_ns() - began) / 1_000 / STEP)
        gc.enable()
        return made


def history_rows(path: Path) -> RocksMap:
    """A map that is set up for a history; an older tree has one way for all maps."""
    asked = {"names_asked": False} if "names_asked" in signature(RocksMap).parameters else {}
    return RocksMap(path, **asked)


def placed_records(step: StepBatches, number: int) -> PlacedRecords:
    """What puts records into a step's batches; an older tree does not ask for topics."""
    brokers: Any = _Brokers()
    place: Any = PlacedRecords
    asked = len(signature(place).parameters)
    made: PlacedRecords = place(*(step, brokers, brokers, number, set)[:asked])
    return made


def add_outcomes(placed: PlacedRecords, effects: Effects) -> None:
    """Put a step's outcomes into its batches, as the producer does."""
    if hasattr(placed, "add_told"):
        placed.add_told(effects.lifecycle, TOPICS)
        return
    from belfry.kafka.step_records import outcome_records

    placed.add(outcome_records(effects, TOPICS))


def values_of(batch: ProducedBatch) -> list[bytes]:
    """The values of a batch's records."""
    from aiokafka.record.default_records import DefaultRecordBatch

    return [bytes(record.value) for record in DefaultRecordBatch(bytes(batch.data))]


def measure(*, ids: bool) -> dict[str, float]:
    """µs a request, by the part of the path."""
    with tempfile.TemporaryDirectory() as folder:
        path = RequestPath(Path(folder), ids=ids)
        for number in range(STEPS):
            path.step(number)
        return {part: statistics.quantiles(spent)[0] for part, spent in path.spent.items()}


def beside(case: str, app: str) -> dict[str, float]:
    """The same in a process of its own, of a tree."""
    done = subprocess.run(  # noqa: S603  # this very file
        [sys.executable, str(Path(__file__)), case],
        env={**os.environ, "PYTHONPATH": app}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)["us"]
    return found


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description="What a worker's path of a request costs.")
    parser.add_argument("case", nargs="*", choices=["plain", "ids", []], default=[])
    parser.add_argument("--against", help="app folder of another tree, measured in turn with this")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    here = str(Path(__file__).parents[1] / "app")
    for case in asked.case or ["plain", "ids"]:
        if not asked.against:
            print(json.dumps({"case": case, "us": measure(ids=case == "ids")}))
            continue
        pairs = [(beside(case, asked.against), beside(case, here)) for _ in range(asked.rounds)]
        for part in pairs[0][0]:
            before, now = (min(one[part] for one in side) for side in zip(*pairs, strict=True))
            print(f"{case:6} {part:30} {before:6.2f} {now:6.2f}")
        sums = [min(sum(one.values()) for one in side) for side in zip(*pairs, strict=True)]
        print(f"{case:6} {'all':30} {sums[0]:6.2f} {sums[1]:6.2f}", flush=True)


if __name__ == "__main__":
    main()
