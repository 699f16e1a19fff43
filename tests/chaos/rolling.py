"""A rolling restart of three brokers under load, and how late it made whom.

    python -m tests.chaos.rolling [ROUNDS] [FOLDER]       with BROKERS=1 of a lone one

RATE says how many events a second are due, CALM for how many seconds before the first restart, and
FETCH_BACKOFF_MS the brokers' `replica.fetch.backoff.ms` (Kafka's default is 1000).  AWAY says for
how many seconds a stopped broker stays away, SETTLE how long events go on after each turn.

A turn stops one broker in order, leaves it away for a moment, and starts it again; the next one
comes once all copies are in sync.  Events are due all the while.  Each is seen three times:

    appended     by the broker's clock: before its transaction ends
    read         by a reader that has followed all along, with the properties of belfry's client
    read_plainly by another one, with librdkafka's defaults

What `read` adds to `appended` is the end of the transaction and the way to the reader.  Compare
with `before`, the time without a restart, and with `plain`: how long a plain client's transactions
took in the same seconds (tests/chaos/plain_writer.py).  With a FOLDER, what workers and brokers
said stays there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from belfry.devstack import Kafka
from tests.acceptance.harness.failover import PARTITIONS, divided
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.steady import TENANTS, SteadyLoad
from tests.acceptance.harness.worker import Worker
from tests.chaos.broker import Brokers, in_sync, one_node, three_nodes
from tests.chaos.plain_writer import PlainWriter

LONE: Final = os.environ.get("BROKERS") == "1"
PER_SECOND: Final = int(os.environ.get("RATE", "200"))
AHEAD_S: Final = (12.0, 20.0)
CALM_S: Final = float(os.environ.get("CALM", "20"))
BACKOFF_MS: Final = os.environ.get("FETCH_BACKOFF_MS", "")
PROPERTIES: Final = {"replica.fetch.backoff.ms": BACKOFF_MS} if BACKOFF_MS else {}
AWAY_S: Final = float(os.environ.get("AWAY", "5"))
SETTLE_S: Final = float(os.environ.get("SETTLE", "5"))
# An event that was read so long after it was due was late.
LATE_MS: Final = 1_000
READY_S: Final = 300.0
DRAIN_S: Final = 90.0
QUICK: Final = {"reconnect.backoff.max.ms": "500"}


class LiveReader:
    """Reads what fires while it fires, and notes when each event came."""

    def __init__(self, site: Site, properties: Mapping[str, str]) -> None:
        self.came: dict[int, tuple[int, int]] = {}
        self.doubled = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": site.bootstrap,
                "group.id": "a-reader-without-a-group",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "log_level": 0,
                **properties,
            }
        )
        topics = [site.topic(f"fired.{tenant}") for tenant in TENANTS]
        self._consumer.assign([TopicPartition(t, p, 0) for t in topics for p in range(PARTITIONS)])
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="live-reader", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            messages = self._consumer.consume(500, 0.05)
            came_ms = now_ms()
            for message in messages:
                if message.error() is None:
                    number = int(message.value() or b"")
                    self.doubled += number in self.came
                    self.came.setdefault(number, (message.timestamp()[1], came_ms))

    def close(self) -> None:
        """Read no more."""
        self._stopping.set()
        self._thread.join()
        self._consumer.close()


@dataclass(slots=True)
class Turn:
    """One broker's restart, in epoch milliseconds."""

    node: int
    began_ms: int
    stopped_ms: int = 0
    started_ms: int = 0
    ready_ms: int = 0
    ended_ms: int = 0


def run(rounds: int, home: Path) -> dict[str, Any]:
    """Restart each broker so many times, one after another."""
    nodes = one_node(home) if LONE else three_nodes(home, PROPERTIES)
    with nodes as brokers, Site(brokers.servers, "roll", home) as site:
        site.replicas = len(brokers.nodes)
        site.schedules_topic()
        site.fired_topics(TENANTS)
        workers = [site.worker(SESSION_TIMEOUT_MS="10000").start() for _ in range(2)]
        wait_for("both to have a share", lambda: ready(workers), READY_S)
        load = SteadyLoad(site, PER_SECOND, AHEAD_S)
        readers = {"read": LiveReader(site, QUICK), "read_plainly": LiveReader(site, {})}
        plain = PlainWriter(site, "plain")
        load.start()
        plain.start()
        time.sleep(AHEAD_S[1] + CALM_S)
        turns = [turned(brokers, node) for _ in range(rounds) for node in range(len(brokers.nodes))]
        load.stop()
        plain.close()
        drain(load, readers.values())
        return figures(load, readers, plain, turns)


def ready(workers: Sequence[Worker]) -> bool:
    """Whether both fire, each its share."""
    return divided([*workers]) and all(worker.ready for worker in workers)


def turned(brokers: Brokers, number: int) -> Turn:
    """Stop and start one broker."""
    node: Kafka = brokers.nodes[number]
    turn = Turn(number + 1, now_ms())
    node.stop()
    turn.stopped_ms = now_ms()
    time.sleep(AWAY_S)
    turn.started_ms = now_ms()
    node.start().wait_ready(READY_S)
    turn.ready_ms = now_ms()
    wait_for("every copy to be in sync", lambda: copied(brokers.servers), READY_S)
    time.sleep(SETTLE_S)
    turn.ended_ms = now_ms()
    return turn


def copied(servers: str) -> bool:
    """Whether each partition has all of its copies in sync; False where no broker says so yet."""
    try:
        return in_sync(AdminClient({"bootstrap.servers": servers, "log_level": 0}))
    except KafkaException:
        return False


def drain(load: SteadyLoad, readers: Iterable[LiveReader]) -> None:
    """Wait until each reader has everything, or nothing has come for so long that it is lost."""
    every = list(readers)
    read, until_ms, last_due_ms = -1, 0, max(load.due_ms)
    while any(len(each.came) < len(load.due_ms) for each in every):
        if read != (read := sum(len(each.came) for each in every)):
            until_ms = max(now_ms(), last_due_ms) + int(DRAIN_S * 1000)
        if now_ms() > until_ms:
            break
        time.sleep(0.5)
    for each in every:
        each.close()


def figures(
    load: SteadyLoad,
    readers: Mapping[str, LiveReader],
    plain: PlainWriter,
    turns: Sequence[Turn],
) -> dict[str, Any]:
    """What came of it: of all turns, and of each of them."""
    told: dict[str, Any] = {"events": len(load.due_ms)}
    late: dict[str, list[tuple[int, int]]] = {}
    for name, reader in readers.items():
        told[f"lost_{name}"] = len(load.due_ms) - len(reader.came)
        told[f"doubled_{name}"] = reader.doubled
        late[name] = [(load.since_ms[n], at[1]) for n, at in reader.came.items()]
    appended = readers["read"].came
    late["appended"] = [(load.since_ms[n], at[0]) for n, at in appended.items()]
    late["plain"] = plain.came
    told["early"] = sum(1 for due_ms, at_ms in late["appended"] if at_ms < due_ms)
    began_ms = turns[0].began_ms
    told["before"] = _span(late, began_ms - int(CALM_S) * 1000, began_ms)
    told["all"] = _span(late, began_ms, turns[-1].ended_ms)
    told["turns"] = [
        {
            "node": turn.node,
            "began_ms": turn.began_ms,
            "stopping_ms": turn.stopped_ms - turn.began_ms,
            "starting_ms": turn.ready_ms - turn.started_ms,
            "late_after_ms": _late_after(late["read"], turn),
            "going": _span(late, turn.began_ms, turn.started_ms),
            "coming": _span(late, turn.started_ms, turn.ended_ms),
        }
        for turn in turns
    ]
    return told


def _late_after(read: Sequence[tuple[int, int]], turn: Turn) -> int:
    """For how long after the broker's return events that were due in a turn were read late."""
    late = (
        at_ms - turn.ready_ms
        for due_ms, at_ms in read
        if turn.began_ms <= due_ms < turn.ended_ms and at_ms - due_ms > LATE_MS
    )
    return max(late, default=0)


def _span(
    late: Mapping[str, Sequence[tuple[int, int]]], from_ms: int, until_ms: int
) -> dict[str, str]:
    """Median, 99th percentile and worst of what was due in a stretch of time, in milliseconds."""
    found: dict[str, str] = {}
    for name, each in late.items():
        some = sorted(at_ms - due_ms for due_ms, at_ms in each if from_ms <= due_ms < until_ms)
        if some:
            p99 = some[min(len(some) - 1, len(some) * 99 // 100)]
            found[name] = f"p50 {some[len(some) // 2]} p99 {p99} worst {some[-1]}"
    return found


def main() -> None:
    """Run, and print the figures."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    if len(sys.argv) > 2:
        told = run(rounds, Path(sys.argv[2]))
    else:
        with TemporaryDirectory() as folder:
            told = run(rounds, Path(folder))
    sys.stdout.write(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
