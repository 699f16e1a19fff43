"""What the engine alone costs, in µs of processor time an event: no Kafka, no RocksDB, no threads.

    PYTHONPATH=app python benchmarks/engine.py                     all cases, one JSON line each
    PYTHONPATH=app python benchmarks/engine.py fire recurring      some of them
    PYTHONPATH=app python benchmarks/engine.py --against OTHER/app ratios to another tree, in turn

The runs of `belfry bench` tell what a user gets, and are as noisy as the machine.  This one tells
what a change of the engine costs: each case runs several times and the quickest counts, without
the time that the map in memory takes to write.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import process_time_ns
from typing import Any, Final

from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import SourcePartition
from belfry.schedules.identity import Homes
from belfry.store.ordered_map import MemoryMap, Range
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from belfry.wire import catalogue, framing
from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader

NOW_MS: Final = 1_800_000_000_000
HOUR_MS: Final = 3_600_000
EVENTS: Final = 20_000
STEP: Final = 2_000
TENANTS: Final = 97
FRAME: Final = framing.single_object("ScheduleRequest")
HEADERS: Final = [{"name": "lang", "value": b"en"}]
HOURLY: Final = {"kind": "EVERY", "interval_ms": HOUR_MS, "start_at": NOW_MS + HOUR_MS}

CRON: Final = {"kind": "CRON", "cron": "0 * * * *"}
DAILY: Final = {"kind": "RRULE", "rrule": "FREQ=DAILY", "start_at": NOW_MS + HOUR_MS}
# Ten years of eleven days off, besides the weekends.
DAYS_OFF: Final = json.dumps(
    {
        "days": [f"20{year}-{month:02}-25" for year in range(26, 36) for month in range(2, 13)],
        "weekend": ["SAT", "SUN"],
    }
)
HEEDING: Final = {**CRON, "calendar": "de"}
MOVING: Final = {**HEEDING, "on_holiday": "NEXT_BUSINESS_DAY"}

Fields = Callable[[int], dict[str, Any]]


class Rows(MemoryMap):
    """A map whose time for writing is known, so that it can be left out."""

    written_ns = 0

    def write(self, writes: Mapping[bytes, bytes | None], cleared: Sequence[Range] = ()) -> None:
        """Put or delete, on the clock."""
        began = process_time_ns()
        for start, end in cleared:
            for key, _ in list(self.scan(start, end)):
                del self._values[key]
        for key, value in writes.items():
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value
        self._keys = sorted(self._values)
        self.written_ns += process_time_ns() - began


def records(fields: Fields) -> list[SourceRecord]:
    """Requests as they lie in the source."""
    due = {"at": NOW_MS + HOUR_MS, "payload": b"x" * 400}
    asked = [
        {
            "tenant": f"t{number % TENANTS}",
            "schedule_id": f"order-{number}",
            **due,
            **fields(number),
        }
        for number in range(EVENTS)
    ]
    if "calendar" in asked[0]:
        asked = [*calendars(), *asked]
    values = [FRAME + catalogue.encode("ScheduleRequest", each) for each in asked]
    return [(offset, NOW_MS, None, value, None) for offset, value in enumerate(values)]


def calendars() -> list[dict[str, Any]]:
    """Requests that give each tenant a calendar."""
    said = {"schedule_id": "de", "action": "CALENDAR", "days_off": DAYS_OFF}
    return [{"tenant": f"t{number}", **said} for number in range(TENANTS)]


class Run:
    """One engine that takes requests in, then fires them."""

    def __init__(self, source: list[SourceRecord], level: Level, delivery: Delivery) -> None:
        self._source, self._rows = source, Rows()
        tenants = Tenants("belfry.fired.", delivery, level)
        for number in range(TENANTS):
            tenants.note([(tenants.of(f"t{number}"), {"envelope_head": b"\0\0\0\0\1"})])
        place = SourcePartition("belfry.schedules", 0, Homes(1))
        self._engine = PartitionEngine(place, ScheduleStore(self._rows), RequestReader(), tenants)

    def ingest(self) -> float:
        """Take all of it in; µs an event."""
        batches = [self._source[at : at + STEP] for at in range(0, len(self._source), STEP)]
        return self._timed([self._taking(batch) for batch in batches])

    def fire(self) -> float:
        """Fire all of it; µs an event."""
        return self._timed([self._fire] * (EVENTS // STEP))

    def _taking(self, batch: list[SourceRecord]) -> Callable[[], Any]:
        start = batch[0][0]
        size = sum(len(record[3] or b"") for record in batch)
        asked = SourceBatch(start, start + len(batch), batch, size=size)
        return lambda: self._engine.accept(asked, NOW_MS)

    def _fire(self) -> None:
        effects = self._engine.fire_due(NOW_MS + HOUR_MS + 1_000, STEP)
        assert len(effects.fired) == STEP, f"{len(effects.fired)} of {STEP} have fired"

    def _timed(self, steps: list[Callable[[], Any]]) -> float:
        gc.collect()
        gc.disable()
        began, written_ns = process_time_ns(), self._rows.written_ns
        for number, step in enumerate(steps):
            step()
            self._engine.seal(owner_epoch=1)
            self._engine.committed(number + 1, NOW_MS)
        spent = process_time_ns() - began - (self._rows.written_ns - written_ns)
        gc.enable()
        return spent / 1_000 / EVENTS


PAYLOAD, ENVELOPE = Delivery.PAYLOAD, Delivery.ENVELOPE
# Which part is timed, what is asked for, which outcomes are told, how events are delivered.
CASES: Final[dict[str, tuple[str, Fields, Level, Delivery]]] = {
    "ingest": ("ingest", lambda _: {}, Level.FAILURES, PAYLOAD),
    "ingest_ids": ("ingest", lambda n: {"request_id": f"r-{n}"}, Level.FAILURES, PAYLOAD),
    "ingest_general": ("ingest", lambda _: {"headers": HEADERS}, Level.FAILURES, PAYLOAD),
    "fire": ("fire", lambda _: {}, Level.FAILURES, PAYLOAD),
    "recurring": ("fire", lambda _: HOURLY, Level.FAILURES, PAYLOAD),
    "cron": ("fire", lambda _: CRON, Level.FAILURES, PAYLOAD),
    "rrule": ("fire", lambda _: DAILY, Level.FAILURES, PAYLOAD),
    # A thousand rules, each with a start of its own.
    "rrule_starts": (
        "fire",
        lambda n: {**DAILY, "start_at": NOW_MS + HOUR_MS + n % 1000},
        Level.FAILURES,
        PAYLOAD,
    ),
    # The same instants without a rule of RFC 5545: what is due in another order than it was kept
    # lies far apart in memory, whatever its rule.
    "every_starts": (
        "fire",
        lambda n: {**HOURLY, "start_at": NOW_MS + HOUR_MS + n % 1000},
        Level.FAILURES,
        PAYLOAD,
    ),
    # A thousand rules that are due in the order in which they were kept, as those of `cron` are.
    "rrule_in_order": (
        "fire",
        lambda n: {**DAILY, "start_at": NOW_MS + HOUR_MS + n // 20},
        Level.FAILURES,
        PAYLOAD,
    ),
    "calendar": ("fire", lambda _: HEEDING, Level.FAILURES, PAYLOAD),
    "calendar_moving": ("fire", lambda _: MOVING, Level.FAILURES, PAYLOAD),
    "headers": ("fire", lambda _: {"headers": HEADERS}, Level.FAILURES, PAYLOAD),
    "told": ("fire", lambda _: {}, Level.ALL, PAYLOAD),
    "envelopes": ("fire", lambda _: {}, Level.FAILURES, ENVELOPE),
    "groups": ("fire", lambda n: {"group": f"g{n % 7}"}, Level.FAILURES, PAYLOAD),
}


def measure(case: str, times: int) -> float:
    """The quickest of so many runs of a case; µs an event."""
    part, fields, level, delivery = CASES[case]
    source = records(fields)
    found = []
    for _ in range(times):
        run = Run(source, level, delivery)
        taken = run.ingest()
        found.append(taken if part == "ingest" else run.fire())
    return min(found)


def beside(case: str, app: str, times: int) -> float:
    """The same in a process of its own, of another tree."""
    command = [sys.executable, str(Path(__file__)), case, "--times", str(times)]
    environment = {**os.environ, "PYTHONPATH": app}
    done = subprocess.run(  # noqa: S603  # this very file
        command, env=environment, check=True, capture_output=True, text=True
    )
    return float(json.loads(done.stdout)["us"])


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description="What the engine alone costs an event.")
    parser.add_argument("case", nargs="*", choices=[*CASES, []], default=[])
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--against", help="app folder of another tree, measured in turn with this")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    for case in asked.case or CASES:
        if not asked.against:
            print(json.dumps({"case": case, "us": round(measure(case, asked.times), 3)}))
            continue
        here = str(Path(__file__).parents[1] / "app")
        pairs = [
            (beside(case, here, asked.times), beside(case, asked.against, asked.times))
            for _ in range(asked.rounds)
        ]
        ratio = statistics.median(mine / other for mine, other in pairs)
        mine, other = (min(column) for column in zip(*pairs, strict=True))
        print(json.dumps({"case": case, "us": mine, "other_us": other, "ratio": round(ratio, 3)}))


if __name__ == "__main__":
    main()
