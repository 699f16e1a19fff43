"""`belfry events tail`: committed events as they fire, none missed, and an end when asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from threading import Timer
from time import sleep
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer

from belfry.cli.entry import main
from belfry.client import Client
from belfry.wire import catalogue, framing
from tests.unit.client.fake_worker import FakeWorker, settings_for

START_S = 60


@pytest.fixture
def worker(
    kafka: str, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeWorker]:
    """A stand-in for a worker, and commands that talk to it."""
    settings = settings_for(kafka, unique("events") + ".")
    monkeypatch.setenv("BELFRY_BOOTSTRAP_SERVERS", kafka)
    monkeypatch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", settings.cluster.topic_prefix)
    with FakeWorker(settings) as running:
        yield running


@pytest.fixture
def client(worker: FakeWorker) -> Iterator[Client]:
    """A client of the same belfry."""
    settings = worker.settings
    prefix = settings.cluster.topic_prefix
    with Client(settings.bootstrap_servers, topic_prefix=prefix) as made:
        yield made


def tail(*arguments: str) -> int:
    return main(["events", "tail", "demo", "--timeout", str(START_S), *arguments])


def test_events_from_the_beginning(worker: FakeWorker, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        worker.fire("demo", "tick", b"\x1b%d" % number, number)
    assert tail("--from-beginning", "--max", "3") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"2026-12-01T09:00:00.000Z  tick #{number}  \\x1b{number}" for number in range(3)
    ]


def test_events_as_json(worker: FakeWorker, capsys: pytest.CaptureFixture[str]) -> None:
    worker.fire("demo", "tick", b'{"n": 1}')
    worker.fire("demo", "tick", None, 1)
    assert tail("--from-beginning", "--max", "2", "-o", "json") == 0
    first, second = orjson.loads(capsys.readouterr().out)
    assert first["payload_json"] == {"n": 1}
    assert first["schedule_id"] == "tick"
    assert first["key_text"] == "tick"
    assert {"name": "color", "value_text": "green"} in first["headers"]
    assert second["payload_text"] is None


def test_only_events_from_now_on(worker: FakeWorker, client: Client) -> None:
    worker.fire("demo", "before", b"")
    with client.events("demo") as events:
        worker.fire("demo", "after", b"")
        found = events.next_within(START_S)
        assert found is not None
        assert found.schedule_id == "after"
        assert events.next_within(0.2) is None


def test_a_tenants_first_event_is_not_missed(
    worker: FakeWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    late = Timer(1.5, worker.fire, ("demo", "first", b"hi"))
    late.start()
    assert tail("--max", "1") == 0
    late.join()
    shown = capsys.readouterr()
    assert "first #0  hi" in shown.out
    assert "does not exist yet: waiting for a first event" in shown.err


def test_a_group_goes_on_where_it_left_off(worker: FakeWorker, client: Client) -> None:
    for number in range(3):
        worker.fire("demo", "tick", b"", number)
    with client.events("demo", group="g", from_beginning=True) as events:
        seen = [next(events).occurrence for _ in range(2)]
    with client.events("demo", group="g") as events:
        # The second was handed out, but the next was never asked for: it comes again.
        seen += [next(events).occurrence for _ in range(2)]
    assert seen == [0, 1, 1, 2]


def test_aborted_and_open_transactions_are_not_shown(
    worker: FakeWorker, client: Client, kafka: str, unique: Callable[[str], str]
) -> None:
    topic = worker.ready_for("demo")
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": unique("t")})
    producer.init_transactions(30)
    with client.events("demo") as events:
        for value, end in ((b"no", producer.abort_transaction), (b"yes", None)):
            producer.begin_transaction()
            producer.produce(topic, value)
            producer.flush(30)
            if end is not None:
                end(30)
        assert events.next_within(1) is None
        producer.commit_transaction(30)
        found = events.next_within(START_S)
    assert found is not None
    assert found.payload == b"yes"


def test_an_envelope_is_opened(worker: FakeWorker, client: Client, kafka: str) -> None:
    topic = worker.ready_for("demo")
    event: dict[str, Any] = {
        "tenant": "demo",
        "schedule_id": "i",
        "fire_id": "f",
        "scheduled_at": 1,
        "due_at": 2,
        "fired_at": 3,
        "payload": b"inside",
    }
    value = framing.single_object("FiredEvent") + catalogue.encode("FiredEvent", event)
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce(topic, value)
    producer.flush(30)
    with client.events("demo", from_beginning=True) as events:
        found = next(events)
    assert found.payload == b"inside"
    assert found.value == value
    assert found.event is not None
    assert found.event["due_at"] == 2


def test_too_few_events_in_time_are_an_error(
    worker: FakeWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    worker.fire("demo", "tick", b"")
    late = ["--from-beginning", "--max", "2", "-o", "jsonl"]
    assert main(["events", "tail", "demo", *late, "--timeout", "3"]) == 1
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 1
    assert "1 of 2 events came" in shown.err
    assert main(["events", "tail", "demo", "--timeout", "500ms"]) == 0


@pytest.mark.parametrize("output", ["text", "json", "jsonl"])
def test_an_interrupt_ends_it_quietly(worker: FakeWorker, output: str) -> None:
    worker.fire("demo", "tick", b"hi")
    command = [sys.executable, "-m", "belfry.cli", "events", "tail", "demo", "-o", output]
    process = subprocess.Popen(
        [*command, "--from-beginning"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    if output == "json":
        first += process.stdout.read1()  # type: ignore[attr-defined]  # a buffered reader
    sleep(0.3)
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert err == b""
    shown = BytesIO(first + rest).read()
    assert b"hi" in shown
    if output == "json":
        assert len(orjson.loads(shown)) == 1
