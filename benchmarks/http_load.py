"""How quick HTTP is while events fire: reads, accepted writes and pages, each at a steady rate.

    make bench-http PENDING=1000000 AHEAD=1

A belfry of its own on the broker that BELFRY_BOOTSTRAP_SERVERS names: PENDING schedules wait, and
FIRES events a second come in and fire; with AHEAD=1 those of a phase have come in before it.  First
they fire alone, then under each kind of call, all of it after reads and writes that are not
measured: a broker that has just started compiles.  Calls leave at their planned instants whether
or not earlier ones have been answered, and are measured from these, so a stall counts for all whom
it holds up.  Each phase prints a JSON line; PHASES names some of them, by commas.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final

import uvloop
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from http_client import Client

from belfry.bench.cluster import BenchCluster
from belfry.bench.live import AHEAD_MS, pour
from belfry.bench.plan import BenchPlan
from belfry.bench.workload import Workload, write
from belfry.schedules.identity import partition_of
from belfry.settings import Settings
from belfry.wire import catalogue, framing

SECONDS: Final = int(os.environ.get("SECONDS_EACH", "15"))
PENDING: Final = int(os.environ.get("PENDING", "100000"))
FIRES: Final = int(os.environ.get("FIRES", "2000"))
RATE: Final = int(os.environ.get("RATE", "500"))
TENANTS: Final = int(os.environ.get("TENANTS", "8"))
WORKERS: Final = int(os.environ.get("WORKERS", "1"))
AHEAD: Final = os.environ.get("AHEAD") == "1"
SETTLE_S: Final = 4.0
# A busy machine takes its time.
READY_S: Final = 600.0
WARM_UP: Final = ("reads", "writes")
HOUR_MS: Final = 3_600_000

Call = Callable[[Client, int], Awaitable[int]]


def stem(number: int) -> str:
    """Id of a schedule that waits."""
    return f"wait-{number:012d}"


async def read_one(client: Client, _: int) -> int:
    """Look at a schedule that waits."""
    number = random.randrange(PENDING)
    return await client.call("GET", f"{schedules(number)}/{stem(number)}")


async def write_one(client: Client, number: int) -> int:
    """Create a schedule, and wait until it is accepted."""
    body = {
        "schedule_id": f"new-{os.getpid()}-{number}",
        "delay_ms": 2 * HOUR_MS,
        "payload_text": "x" * 300,
    }
    return await client.call("POST", schedules(number), json.dumps(body).encode())


async def page_by_prefix(client: Client, _: int) -> int:
    """A page of 100 by prefix."""
    number = random.randrange(PENDING)
    return await client.call("GET", f"{schedules(number)}?prefix={stem(number)[:-4]}")


async def page_by_due(client: Client, number: int) -> int:
    """A page of 100 by due range."""
    start_ms = int(time.time() * 1000) + HOUR_MS + random.randrange(HOUR_MS)
    return await client.call("GET", f"{schedules(number)}?due_from={start_ms}")


def schedules(number: int) -> str:
    """Where the schedules of one of the tenants are."""
    return f"/v1/tenants/tenant-{number % TENANTS}/schedules"


PHASES: Final[dict[str, tuple[Call, int]]] = {
    "reads": (read_one, RATE),
    "writes": (write_one, RATE),
    "pages by prefix": (page_by_prefix, 20),
    "pages by due": (page_by_due, 20),
}


async def drive(phase: str, url: str) -> tuple[list[float], dict[int, int]]:
    """Call at a steady rate; milliseconds from each planned instant, and the statuses."""
    call, rate = PHASES[phase]
    took: list[float] = []
    statuses: dict[int, int] = {}
    client = Client(url)
    began = time.perf_counter() + 0.2

    async def one(number: int) -> None:
        planned = began + number / rate
        await asyncio.sleep(max(0.0, planned - time.perf_counter()))
        try:
            status = await call(client, number)
        except OSError:
            status = 0
        statuses[status] = statuses.get(status, 0) + 1
        if planned - began >= SETTLE_S / 2:
            took.append((time.perf_counter() - planned) * 1000)

    total = rate * (SECONDS - 2)
    await asyncio.gather(*(one(number) for number in range(total)))
    client.close()
    return took, statuses


def _child(drive: Callable[[str], Any], url: str, pipe: Connection) -> None:
    pipe.send(uvloop.run(drive(url)))


def percentile(values: list[float], share: float) -> float:
    """The value below which this share lies."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 1) if ordered else -1


class Late:
    """Reads what fires from now on, `read_committed`; notes how late each event is."""

    def __init__(self, cluster: BenchCluster) -> None:
        self._consumer = Consumer(
            {
                **cluster.properties,
                "group.id": f"{cluster.settings.cluster.app_id}-late",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        topics = [cluster.settings.topic(f"fired.tenant-{number}") for number in range(TENANTS)]
        there = self._consumer.list_topics(timeout=10).topics
        places = [TopicPartition(t, p, OFFSET_END) for t in topics for p in there[t].partitions]
        self._consumer.assign(places)
        self._began = time.monotonic()
        self.stopping = threading.Event()
        self.late_ms: list[float] = []

    def run(self) -> None:
        """Read until told to stop."""
        while not self.stopping.is_set():
            first = self._consumer.poll(0.1)
            if first is None:
                continue
            messages = [first, *self._consumer.consume(2_000, 0.002)]
            now_ms = time.time_ns() / 1e6
            if time.monotonic() - self._began < SETTLE_S + 3:
                continue
            for message in messages:
                value = message.value()
                if message.error() is None and value is not None:
                    self.late_ms.append(now_ms - int.from_bytes(value[:8], "big"))
        self._consumer.close()


def lay_in(cluster: BenchCluster, plan: BenchPlan) -> None:
    """Write at once what `pour` writes steadily: schedules that wait for the same instants."""
    first_ms = time.time_ns() // 1_000_000 + AHEAD_MS
    producer = Producer({**cluster.properties, "linger.ms": 20, "compression.type": "lz4"})
    head, topic = framing.single_object("ScheduleRequest"), cluster.settings.topic("schedules")
    for number in range(plan.rate * plan.seconds):
        tenant = f"tenant-{number % plan.tenants}"
        due_ms = first_ms + number * 1000 // plan.rate
        fields = {
            "tenant": tenant,
            "schedule_id": f"laid-{number:09d}",
            "at": due_ms,
            "key": b"k%09d" % number,
            "payload": due_ms.to_bytes(8, "big") + os.urandom(plan.payload_bytes - 8),
        }
        value = head + catalogue.encode("ScheduleRequest", fields)
        home = partition_of(tenant.encode(), plan.partitions)
        producer.produce(topic, value, tenant.encode(), partition=home)
    producer.flush()
    time.sleep(max(0.0, first_ms / 1000 + plan.seconds - time.time()))


def live(
    cluster: BenchCluster, plan: BenchPlan, during: Callable[[], Any]
) -> tuple[list[float], Any]:
    """How late events fire while something else happens."""
    reader = Late(cluster)
    pouring = threading.Thread(target=lay_in if AHEAD else pour, args=(cluster, plan))
    reading = threading.Thread(target=reader.run)
    pouring.start()
    reading.start()
    found = during()
    pouring.join()
    reader.stopping.set()
    reading.join()
    return reader.late_ms, found


def apart(drive: Callable[[str], Any], url: str) -> Any:
    """Drive in a process of its own, so that the load does not share a lock with the reader."""
    time.sleep(SETTLE_S)
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(drive, url, theirs))
    process.start()
    theirs.close()
    found = ours.recv()
    process.join()
    return found


def show(phase: str, took: list[float], statuses: dict[int, int], late: list[float]) -> None:
    """One line of results."""
    line = {
        "phase": phase,
        "pending": PENDING,
        "fires_per_second": FIRES,
        "calls": sum(statuses.values()),
        "statuses": statuses,
        "p50_ms": percentile(took, 0.5),
        "p99_ms": percentile(took, 0.99),
        "lateness_p50_ms": percentile(late, 0.5),
        "lateness_p99_ms": percentile(late, 0.99),
    }
    print(json.dumps(line), flush=True)


@contextmanager
def waiting() -> Iterator[tuple[BenchCluster, BenchPlan]]:
    """A belfry in which PENDING schedules wait, and the plan of what fires beside them."""
    plan = BenchPlan(
        bench="lateness", tenants=TENANTS, rate=FIRES, seconds=SECONDS + 6, partitions=4
    )
    with BenchCluster(Settings(), WORKERS, plan.partitions) as cluster:
        due_ms = time.time_ns() // 1_000_000 + HOUR_MS
        waits = Workload(PENDING, due_ms, spread_ms=HOUR_MS, tenants=TENANTS, stem="wait")
        cluster.make_outputs(plan)
        cluster.start_workers()
        cluster.await_ready(READY_S)
        write(cluster.properties, cluster.settings.topic("schedules"), waits)
        while cluster.pending() < PENDING:
            time.sleep(0.2)
        yield cluster, plan


def main() -> int:
    """Fill, fire alone, then fire under each kind of call."""
    with waiting() as (cluster, plan):
        url = cluster.workers[0].url
        for phase in WARM_UP:
            live(cluster, plan, partial(apart, partial(drive, phase), url))
        late, _ = live(cluster, plan, lambda: None)
        show("fires alone", [], {}, late)
        for phase in os.environ.get("PHASES", ",".join(PHASES)).split(","):
            late, (took, statuses) = live(cluster, plan, partial(apart, partial(drive, phase), url))
            show(phase, took, statuses, late)
    return 0


if __name__ == "__main__":
    sys.exit(main())
