"""What minute buckets cost on disk, and what a look at them costs with a million schedules.

    PYTHONPATH=app python benchmarks/buckets.py                    one JSON line a figure
    PYTHONPATH=app python benchmarks/buckets.py --minutes 500000   nearly every schedule on its own

A tenant's schedules are spread evenly over so many minutes, and written to a RocksDB store step by
step, as an owner writes them.  Then the next hour is counted by its buckets, and by a walk over the
tenant's names, as releases up to 0.3 counted.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Final

from belfry.host.rocks import RocksMap
from belfry.store.buckets import buckets, derive
from belfry.store.layout import keys
from belfry.store.layout.locations import decode_location, is_location
from belfry.store.layout.manifests import Manifest, StoredState
from belfry.store.layout.pending import Pending, encode_pending
from belfry.store.schedules import ScheduleStore

NOW_MS: Final = 1_800_000_000_000
HOUR_MS: Final = 3_600_000
STEP: Final = 2_000
STATE: Final = StoredState(1, NOW_MS, Manifest(1, 1, 0, 0, 0, 0, bytes(16)))


def record(number: int, due_ms: int) -> bytes:
    """A plain schedule with 400 bytes of payload."""
    return encode_pending(
        Pending(
            due_ms,
            due_ms,
            NOW_MS,
            number,
            number,
            1,
            0,
            0,
            due_ms,
            0,
            b"t",
            b"order-%d" % number,
            b"",
            b"",
            None,
            b"",
            b"",
            b"x" * 400,
        )
    )


def fill(store: ScheduleStore, pending: int, minutes: int) -> float:
    """Keep so many schedules; µs of processor time for each."""
    began = process_time()
    for start in range(0, pending, STEP):
        for number in range(start, min(start + STEP, pending)):
            due_ms = NOW_MS + number * 7_919 % minutes * keys.MINUTE_MS + number % keys.MINUTE_MS
            kept = record(number, due_ms)
            store.keep_in_timeline(b"t/order-%d" % number, kept, due_ms, number)
        store.commit(STATE)
    return (process_time() - began) * 1e6 / pending


def walked(rows: RocksMap) -> Counter[int]:
    """The next hour by minute, by a look at each name of the tenant."""
    found: Counter[int] = Counter()
    for _, row in rows.scan(b"kt/", b"kt0"):
        if (
            is_location(row)
            and NOW_MS <= (due_ms := decode_location(row).due_ms) < NOW_MS + HOUR_MS
        ):
            found[due_ms // keys.MINUTE_MS] += 1
    return found


def told(rows: RocksMap) -> Counter[int]:
    """The same by the tenant's buckets."""
    found, _ = buckets(rows, b"t", NOW_MS, NOW_MS + HOUR_MS, limit=10_000)
    return Counter({each.minute: each.waiting for each in found})


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description="What minute buckets cost.")
    parser.add_argument("--pending", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=int, default=1_440)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        rows = RocksMap(Path(folder))
        kept_us = fill(ScheduleStore(rows), asked.pending, asked.minutes)
        print(json.dumps({"kept_us": round(kept_us, 2), "minutes": asked.minutes}))
        print(json.dumps({"resident_mb": getrusage(RUSAGE_SELF).ru_maxrss // 1024}))
        found = []
        for name, look in (("walked_ms", walked), ("told_ms", told)):
            began = perf_counter()
            found.append(look(rows))
            print(json.dumps({name: round((perf_counter() - began) * 1000, 2)}))
        assert found[0] == found[1], "buckets and names disagree"
        began = perf_counter()
        derive(rows, 2)
        print(json.dumps({"derived_anew_s": round(perf_counter() - began, 2)}))
        rows.close()


if __name__ == "__main__":
    main()
