"""How long `belfry why` takes where seven days of history are kept.

    make bench-why RECORDS=1500000 ROUNDS=10

A belfry of its own on the broker that BELFRY_BOOTSTRAP_SERVERS names.  RECORDS lifecycle records
are written with timestamps of the last seven days, as workers would have written them: a schedule
that fired each second and still waits (604 200 records), one that was cancelled six days ago and
asked for 2 500 times since, and of the others two records each.  Once the worker has read them,
`belfry why` is asked for each of these, in a process of its own, ROUNDS times, and so are its two
questions over HTTP.  A JSON line each:

    seconds_p50, seconds_max     from the start of the process to its end
    cpu_s                        of that, what the process computes
    http_ms_p50, http_ms_max     the two questions, on connections of their own

The first line tells how long the worker took to read the history.  The last two are yardsticks: a
command that asks nothing, and the whole history of the busy schedule, page by page.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from confluent_kafka import Producer

from belfry.bench.cluster import BenchCluster
from belfry.bench.worker import BenchWorker
from belfry.schedules.identity import partition_of
from belfry.schedules.outcomes import Outcome
from belfry.settings import Settings
from belfry.wire import framing
from belfry.wire.lifecycle import LifecycleEvent, encode_lifecycle

RECORDS: Final = int(os.environ.get("RECORDS", "1500000"))
ROUNDS: Final = int(os.environ.get("ROUNDS", "10"))
TENANT: Final = "demo"
BUSY: Final = "busy"
GONE: Final = "gone"
DAY_S: Final = 86_400
# Some minutes less: nothing of it is too old while it is read.
WEEK_S: Final = 7 * DAY_S - 600
REFUSALS: Final = 3_000
ORDERS: Final = max(10, (RECORDS - WEEK_S - REFUSALS) // 2)
READ_S: Final = 1_800.0
ROOM: Final = Path(__file__).resolve().parent.parent


def told(schedule_id: str, outcome: Outcome, at_ms: int, **more: Any) -> LifecycleEvent:
    """A record as a worker tells it."""
    asked = outcome is not Outcome.FIRED
    source = ("belfry.schedules", 1, at_ms % 1_000_000) if asked else (None, None, None)
    return LifecycleEvent(
        tenant=TENANT,
        schedule_id=schedule_id,
        outcome=outcome,
        request_id=f"r-{at_ms}" if asked else None,
        fire_id=None if asked else f"{at_ms:032x}",
        version=1,
        at=at_ms,
        due_at=at_ms - 12,
        source_topic=source[0],
        source_partition=source[1],
        source_offset=source[2],
        **more,
    )


def records(until_ms: int) -> Iterator[LifecycleEvent]:
    """Seven days of records, in the order of time."""
    written = 0
    for second in range(WEEK_S):
        at_ms = until_ms - (WEEK_S - second) * 1000
        yield told(BUSY, Outcome.FIRED, at_ms)
        if second == 0:
            yield told(GONE, Outcome.ACCEPTED, at_ms)
        elif second == DAY_S:
            yield told(GONE, Outcome.CANCELLED, at_ms, reason="the customer has paid")
        elif second > DAY_S and second % (6 * DAY_S // REFUSALS) == 0:
            yield told(GONE, Outcome.NOT_FOUND, at_ms, code="not_found", reason="it is over")
        while written < ORDERS * second // WEEK_S:
            yield told(f"order/{written}", Outcome.ACCEPTED, at_ms + 1)
            yield told(f"order/{written}", Outcome.FIRED, at_ms + 2)
            written += 1


def fill(cluster: BenchCluster) -> int:
    """Write the records; how many there are."""
    head = framing.single_object("LifecycleEvent")
    producer = Producer({**cluster.properties, "linger.ms": 50, "compression.type": "lz4"})
    topic = cluster.settings.topic("lifecycle")
    written = 0
    partitions = cluster.settings.cluster.partitions

    def write(event: LifecycleEvent) -> None:
        key = f"{event.tenant}/{event.schedule_id}".encode()
        value, partition = head + encode_lifecycle(event), partition_of(key, partitions)
        while True:
            try:
                producer.produce(topic, value, key, partition, timestamp=event.at)
            except BufferError:
                producer.poll(0.1)
            else:
                return

    now_ms = int(time.time() * 1000)
    for event in records(now_ms):
        write(event)
        written += 1
    for name in last_of_each(partitions):
        write(told(name, Outcome.ACCEPTED, now_ms))
    producer.flush()
    return written + partitions


def last_of_each(partitions: int) -> list[str]:
    """A schedule in each partition of the topic, whose record is the last one there."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < partitions:
        name = f"last-{number}"
        found.setdefault(partition_of(f"{TENANT}/{name}".encode(), partitions), name)
        number += 1
    return list(found.values())


def asked(worker: BenchWorker, path: str) -> dict[str, Any]:
    """An answer of the worker; empty for a refusal."""
    try:
        with urlopen(f"{worker.url}/v1/tenants/{TENANT}/{path}", timeout=60) as answer:  # noqa: S310  # loopback
            found: dict[str, Any] = json.load(answer)
            return found
    except HTTPError as error:
        with error:
            return {}


def await_read(worker: BenchWorker, partitions: int) -> None:
    """Wait until the worker's history has the last record of each partition."""
    deadline = time.monotonic() + READ_S
    for name in last_of_each(partitions):
        while not asked(worker, f"schedules/{name}/history").get("events"):
            if time.monotonic() > deadline:
                raise TimeoutError(worker.log.read_text()[-2_000:])
            time.sleep(0.5)


def command(worker: BenchWorker, *words: str) -> str:
    """What a command of a process of its own prints."""
    line = [sys.executable, "-m", "belfry.cli", *words, "--http-url", worker.url]
    done = subprocess.run(line, cwd=ROOM, capture_output=True, text=True, check=False)  # noqa: S603  # our own
    return done.stdout


def took(what: Callable[[], Any], rounds: int) -> list[float]:
    """Seconds that it took, each time."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        what()
        found.append(time.perf_counter() - began)
    return sorted(found)


def cpu_s() -> float:
    """CPU seconds of all processes that have been started here and are over."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def show(phase: str, **figures: Any) -> None:
    """One line of results."""
    load = round(os.getloadavg()[0], 1)
    print(json.dumps({"phase": phase, **figures, "load_1_min": load}), flush=True)


def questions(worker: BenchWorker, schedule_id: str) -> None:
    """What the command asks."""
    asked(worker, f"schedules/{schedule_id}?last=10")
    asked(worker, f"schedules/{schedule_id}/history?order=newest&limit=20")


def measure(worker: BenchWorker) -> None:
    """All phases."""
    body = json.dumps({"schedule_id": BUSY, "interval_ms": 3_600_000}).encode()
    path, kind = f"{worker.url}/v1/tenants/{TENANT}/schedules", {"content-type": "application/json"}
    urlopen(Request(path, body, kind), timeout=60).close()  # noqa: S310  # loopback
    newest = asked(worker, f"schedules/{GONE}/history?order=newest&limit=1")["events"]
    assert newest[0]["outcome"] == "NOT_FOUND", newest
    command(worker, "why", TENANT, BUSY)
    for name in (BUSY, GONE, f"order/{ORDERS // 2}", "never/there"):
        said = command(worker, "why", TENANT, name)
        before = cpu_s()
        seconds = took(lambda name=name: command(worker, "why", TENANT, name), ROUNDS)  # type: ignore[misc]
        used = cpu_s() - before
        path = name.replace("/", "%2F")
        http = took(lambda path=path: questions(worker, path), ROUNDS)  # type: ignore[misc]
        show(
            f"why {name}",
            seconds_p50=round(seconds[len(seconds) // 2], 2),
            seconds_max=round(seconds[-1], 2),
            cpu_s=round(used / ROUNDS, 2),
            http_ms_p50=round(http[len(http) // 2] * 1000, 1),
            http_ms_max=round(http[-1] * 1000, 1),
            said=said.splitlines()[0] if said else None,
        )
    nothing = took(lambda: command(worker, "why", "--help"), ROUNDS)
    show("why --help", seconds_p50=round(nothing[len(nothing) // 2], 2))
    whole = took(lambda: command(worker, "schedule", "history", TENANT, BUSY), 1)
    show("schedule history busy", seconds=round(whole[0], 1))


def main() -> int:
    """Fill, and measure."""
    with BenchCluster(Settings(), workers=1, partitions=4) as cluster:
        began = time.monotonic()
        written = fill(cluster)
        filled = time.monotonic()
        cluster.start_workers()
        cluster.await_ready(READ_S)
        (worker,) = cluster.workers
        await_read(worker, cluster.settings.cluster.partitions)
        seconds = round(time.monotonic() - filled, 1)
        show("read", records=written, fill_s=round(filled - began, 1), seconds=seconds)
        measure(worker)
    return 0


if __name__ == "__main__":
    sys.exit(main())
