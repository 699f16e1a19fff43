"""belfry beside a scheduler that is written with Kafka Streams, and `raw`, in the same minutes.

    make bench-peer ROUNDS=3 EVENTS=400000 RATE=5000 DURATION=30

Each round has raw, then by turns belfry and Streams: events that are all due at one instant
(`fire`), and a steady rate (`lateness`); to a topic for each of 97 tenants, and to one for all.
Streams gets the same requests, on topics of the same kind, from the same broker, and is read by the
same reader.  A JSON line for each run; `peer_table.py` makes the table of medians.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition
from streams_cluster import StreamsCluster

from belfry.bench.plan import COMMON_TOPIC, BenchPlan
from belfry.bench.result import Result
from belfry.bench.runs import lateness
from belfry.bench.worker import WorkerFailed
from belfry.bench.workload import Workload, write
from belfry.settings import Settings

ROUNDS, EVENTS, RATE, DURATION = (
    int(os.environ.get(name, usual))
    for name, usual in (("ROUNDS", 3), ("EVENTS", 400_000), ("RATE", 5_000), ("DURATION", 30))
)
# From the first request until all are due; a machine that is busy with other work needs longer.
AHEAD_MS: Final = int(os.environ.get("AHEAD_MS", 20_000 + EVENTS // 10))
LONGEST_S: Final = 300.0


def streams(settings: Settings, plan: BenchPlan) -> Result:
    """One run of a plan by the program of Kafka Streams."""
    with StreamsCluster(settings, plan) as cluster:
        return lateness(cluster, plan) if plan.bench == "lateness" else fire(cluster, plan)


def fire(cluster: StreamsCluster, plan: BenchPlan) -> Result:
    """As `belfry bench fire`: from the due instant to the last committed event, by the broker's
    clock.
    """
    cluster.make_outputs(plan)
    due_ms = _now_ms() + AHEAD_MS
    workload = Workload(plan.events, due_ms, payload_bytes=plan.payload_bytes)
    write(cluster.properties, cluster.settings.topic("schedules"), workload)
    cluster.start_workers()
    _await(lambda: cluster.counts()[0] >= plan.events)
    if _now_ms() > due_ms - 1_000:
        raise WorkerFailed("the requests were taken in too late: the due instant has passed")
    before, _ = cluster.usage()
    # Before the instant nobody asks.
    time.sleep(max(0.0, due_ms / 1000 - time.time()))
    _await(lambda: cluster.counts()[1] >= plan.events)
    last_ms = _last_committed_ms(cluster, plan)
    cpu, peak = cluster.usage()
    return Result.of(plan, plan.events, (last_ms - due_ms) / 1000).using(cpu - before, peak)


def _await(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST_S
    while not reached():
        if time.monotonic() > deadline:
            raise WorkerFailed(f"not done within {LONGEST_S:.0f} s")
        time.sleep(0.2)


def _last_committed_ms(cluster: StreamsCluster, plan: BenchPlan) -> int:
    """The broker's instant of the last event, once all are committed; each has to be there once."""
    own = [f"fired.tenant-{number}" for number in range(plan.tenants)]
    names = [COMMON_TOPIC] if plan.common_topic else own
    topics = [cluster.settings.topic(name) for name in names]
    given = {"isolation.level": "read_committed", "enable.auto.commit": False}
    group = f"{cluster.settings.cluster.app_id}-count"
    consumer = Consumer({**cluster.properties, **given, "group.id": group})
    partitions = range(plan.partitions)
    consumer.assign([TopicPartition(topic, each, 0) for topic in topics for each in partitions])
    keys: set[bytes | None] = set()
    count = last_ms = 0
    idle = time.monotonic()
    # A moment longer than for all of them, for one that came twice.
    while time.monotonic() - idle < (2 if count >= plan.events else 20):
        for message in consumer.consume(10_000, 0.5):
            if message.error() is None and message.value() is not None:
                idle = time.monotonic()
                count += 1
                keys.add(message.key())
                last_ms = max(last_ms, message.timestamp()[1])
    consumer.close()
    if (count, len(keys)) != (plan.events, plan.events):
        raise WorkerFailed(f"{count} events came out, {len(keys)} different, of {plan.events}")
    return last_ms


def belfry(plan: BenchPlan) -> dict[str, Any]:
    """One run of `belfry bench`, in a process of its own; its line."""
    more = ["--common-topic"] if plan.common_topic else []
    if plan.bench == "lateness":
        more += ["--rate", str(plan.rate), "--seconds", str(plan.seconds)]
    command = [sys.executable, "-m", "belfry.cli", "bench", plan.bench, "--runs", "1"]
    command += ["--events", str(plan.events), *more, "--output", "json"]
    told = subprocess.run(  # noqa: S603  # this very package
        command, stdout=subprocess.PIPE, text=True, check=True
    )
    line: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return line


def lines(settings: Settings) -> Iterator[dict[str, Any]]:
    """All runs, each as it ends; one that fails is told on stderr, and the others go on."""
    plan = BenchPlan("raw", EVENTS, rate=RATE, seconds=DURATION)
    turns = [
        replace(plan, bench=bench, common_topic=common)
        for bench in ("fire", "lateness")
        for common in (False, True)
    ]
    for number in range(ROUNDS):
        yield from _tried("raw", number, plan, belfry)
        for turn in turns:
            yield from _tried("belfry", number, turn, belfry)
            yield from _tried(
                "Kafka Streams",
                number,
                turn,
                lambda each: json.loads(streams(settings, each).line()),
            )


def _tried(
    who: str, number: int, plan: BenchPlan, run: Callable[[BenchPlan], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The line of one run; `load` is how many threads wanted to run before it began."""
    topics = 1 if plan.common_topic else plan.tenants
    about = {"who": who, "topics": topics, "round": number, "load": os.getloadavg()[0]}
    try:
        yield {**about, **run(plan)}
    except (WorkerFailed, subprocess.CalledProcessError) as error:
        print(f"{plan.bench} of {who} to {topics} topics failed: {error}", file=sys.stderr)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    for each in lines(Settings()):
        print(json.dumps(each), flush=True)
