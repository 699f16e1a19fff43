"""A subscriber hands each event over once, in order, through kills, failures and retries."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from belfry.client import Backoff, FiredRecord, HandlerFailed, Handlers, Handling, Subscriber
from tests.acceptance.harness.site import wait_for
from tests.architecture.tree import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

EVENTS: Final = 400
QUICK: Final = Backoff(first="50ms", factor=1, attempts=3)
IDLE_S: Final = 4.0
PROGRAM: Final = """
import sys, time
from belfry.client import Handlers, Handling, SeenFile, Subscriber

servers, prefix, seen, out = sys.argv[1:]
handlers = Handlers()

@handlers.on("*")
def handle(event):
    with open(out, "a") as file:
        print(event.partition, event.fire_id, file=file)
    time.sleep(0.005)

subscriber = Subscriber(
    servers, "demo", "group", handlers, Handling(seen=SeenFile(seen)), topic_prefix=prefix,
    properties={"session.timeout.ms": 6000, "heartbeat.interval.ms": 500},
)
with subscriber:
    subscriber.run(idle_s=15)
    print(subscriber.handled, subscriber.repeated)
"""


class Topic:
    """The fired topic of tenant `demo`, of two partitions, of a belfry that is not there."""

    def __init__(self, servers: str, prefix: str) -> None:
        self.servers, self.prefix = servers, prefix
        self.name = f"{prefix}fired.demo"
        admin = AdminClient({"bootstrap.servers": servers})
        made = admin.create_topics([NewTopic(self.name, num_partitions=2, replication_factor=1)])
        made[self.name].result(20)
        self._producer = Producer({"bootstrap.servers": servers})

    def write(self, numbers: Sequence[int], event_type: str = "tick") -> None:
        """Fire events whose ids are these numbers, odd ones on partition 1."""
        for number in numbers:
            headers: list[tuple[str, str | bytes | None]] = [
                ("event-type", event_type),
                ("belfry-fire-id", f"{number:05d}"),
                ("belfry-schedule-id", f"s{number}"),
            ]
            self._producer.produce(self.name, b"x", headers=headers, partition=number % 2)
        self._producer.flush(20)

    def subscriber(self, handlers: Handlers, **handling: Any) -> Subscriber:
        """A subscriber that tries three times, quickly."""
        given = Handling(**{"tries": QUICK, **handling})
        return Subscriber(self.servers, "demo", "group", handlers, given, topic_prefix=self.prefix)


@pytest.fixture
def topic(kafka: str, unique: Callable[[str], str]) -> Topic:
    return Topic(kafka, unique("sub") + ".")


def test_a_killed_subscriber_goes_on_and_repeats_nothing(topic: Topic, tmp_path: Path) -> None:
    topic.write(range(EVENTS))
    out = tmp_path / "handled"
    command = [sys.executable, "-c", PROGRAM, topic.servers, topic.prefix]
    command += [str(tmp_path / "seen.db"), str(out)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "app")}

    def handled() -> list[str]:
        return out.read_text().splitlines() if out.exists() else []

    with subprocess.Popen(command, env=env) as first:
        wait_for("some handled", lambda: len(handled()) >= EVENTS // 8, 60)
        first.send_signal(signal.SIGKILL)
    before = len(handled())
    assert before < EVENTS
    again = subprocess.run(
        command, env=env, capture_output=True, text=True, check=True, timeout=120
    )
    count, repeated = map(int, again.stdout.split())
    lines = [line.split() for line in handled()]
    assert {fire_id for _, fire_id in lines} == {f"{number:05d}" for number in range(EVENTS)}
    # One event may be between the end of its handler and the remembering when the kill comes.
    assert len(lines) <= EVENTS + 1
    assert count == len(lines) - before
    assert repeated >= before - 1, "Kafka delivered again what was not committed"
    for partition in "01":
        ids = [fire_id for p, fire_id in lines if p == partition]
        assert list(dict.fromkeys(ids)) == sorted(set(ids))


def test_a_partition_waits_for_its_event_and_the_other_goes_on(topic: Topic) -> None:
    order: list[int] = []
    failures: list[int] = []
    handlers = Handlers()

    @handlers.on("*")
    def handle(event: FiredRecord) -> None:
        number = int(event.fire_id or "")
        if number == 2 and len(failures) < 2:
            failures.append(number)
            raise ConnectionError("away")
        order.append(number)

    topic.write(range(10))
    with topic.subscriber(handlers, tries=Backoff(first="1s", factor=1, attempts=3)) as reader:
        reader.run(idle_s=IDLE_S)
        assert reader.handled == 10
    assert len(failures) == 2
    assert [n for n in order if n % 2 == 0] == [0, 2, 4, 6, 8]
    assert [n for n in order if n % 2 == 1] == [1, 3, 5, 7, 9]
    assert order.index(9) < order.index(2)


def test_an_event_that_fails_every_time_stays_unread(topic: Topic) -> None:
    handlers, rest, seen = Handlers(), Handlers(), list[str | None]()

    @handlers.on("*")
    def fail(event: FiredRecord) -> None:
        if event.fire_id == "00002":
            raise ConnectionError("away")

    topic.write([0, 2, 4])
    with topic.subscriber(handlers) as reader, pytest.raises(HandlerFailed, match="3 times"):
        reader.run(idle_s=IDLE_S)
    rest.add("*", lambda event: seen.append(event.fire_id))
    with topic.subscriber(rest) as reader:
        reader.run(idle_s=IDLE_S)
    assert seen == ["00002", "00004"]


def test_what_is_given_up_lets_the_rest_go_on(topic: Topic) -> None:
    handlers, put_aside, done = Handlers(), list[str | None](), list[str | None]()

    @handlers.on("tick")
    def handle(event: FiredRecord) -> None:
        if event.fire_id == "00000":
            raise ConnectionError("away")
        done.append(event.fire_id)

    def give_up(event: FiredRecord, error: Exception) -> None:
        assert isinstance(error, ConnectionError)
        put_aside.append(event.fire_id)

    topic.write([0, 2])
    topic.write([4], event_type="nobody-handles-this")
    with topic.subscriber(handlers, give_up=give_up) as reader:
        reader.run(idle_s=IDLE_S)
    assert (put_aside, done) == (["00000"], ["00002"])


async def test_handlers_may_be_coroutines(topic: Topic) -> None:
    handlers, done = Handlers(), list[str | None]()

    @handlers.on("*")
    async def handle(event: FiredRecord) -> None:
        done.append(event.fire_id)

    topic.write([0, 2, 4])
    with topic.subscriber(handlers) as reader:
        await reader.run_async(idle_s=IDLE_S)
    assert done == ["00000", "00002", "00004"]
    topic.write([6])
    with topic.subscriber(handlers) as reader, pytest.raises(TypeError, match="run_async"):
        reader.run(idle_s=IDLE_S)
