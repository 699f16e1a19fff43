"""Figures of a process that delivers: of its clients, also where they idle, and of targets."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer
from prometheus_client import CollectorRegistry

from belfry.client.decoding import Decoder
from belfry.delivery.answers import Answer, End, Sent
from belfry.delivery.delivery_log import DeliveryLog
from belfry.delivery.dispatcher import Dispatcher
from belfry.delivery.figures import DELIVERIES, TARGETS, DeliveryFigures, figures_of
from belfry.delivery.follow_ups import Places
from belfry.delivery.kinds import kafka
from belfry.delivery.progress import DeliveryPosition
from belfry.delivery.work import Work, WorkId
from belfry.kafka import librdkafka
from belfry.schedules.targets import HttpTarget
from belfry.settings import Settings
from belfry.telemetry.metrics import Metrics
from belfry.tenants.deliveries import DeliveryState
from belfry.wire.fired import FiredEvent


class ReadyProducer(Producer):
    """One that needs no broker to begin."""

    def init_transactions(self, *_: Any) -> None:
        """Nothing is left open."""


def test_who_reads_deliveries_and_who_writes_what_follows_tell_figures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(librdkafka, "Producer", ReadyProducer)
    settings = Settings(
        bootstrap_servers="127.0.0.1:1", data_dir=tmp_path, client_statistics_interval_ms=50
    )
    clients = figures_of(Metrics(CollectorRegistry()), settings).clients
    told = clients(DELIVERIES)
    log = DeliveryLog(settings, told, None, None)
    log._begin_writing(1.0)
    heard: Any = told["stats_cb"]
    deadline = time.monotonic() + 10
    while len(heard._told) < 2 and time.monotonic() < deadline:
        log.read(1, 0.05)
    kinds = sorted(name.partition("#")[2].partition("-")[0] for name in heard._told)
    assert kinds == ["consumer", "producer"]
    # All clients of a kind have their figures in common.
    assert clients(DELIVERIES)["stats_cb"] is heard
    assert clients(TARGETS)["stats_cb"] is not heard


def test_who_writes_to_targets_tells_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []

    class FakeProducer:
        def __init__(self, properties: dict[str, Any]) -> None:
            made.append(properties)

        def produce(self, *_: Any, **__: Any) -> None:
            """Take a record."""

    monkeypatch.setattr(librdkafka, "Producer", FakeProducer)
    sender = kafka.KafkaSender(Settings(), lambda *_: None, lambda kind: {"stats_cb": kind})
    event = FiredEvent("demo", "a", "f" * 32, 1, 0, 1, 1, 1, payload=b"{}")
    state = DeliveryState((HttpTarget("kafka:payments.audit"),))
    sender._produce("payments.audit", WorkId(0, 0, 0), Work(b"demo/a", b"", event, [], state))
    assert [each["stats_cb"] for each in made] == [TARGETS]


def test_the_time_that_targets_take_is_counted_by_their_kind() -> None:
    registry = CollectorRegistry()
    figures = figures_of(Metrics(registry), Settings())
    https = Sent("https://one.example.com/", 1_000.0, 1_250.0, End.DELIVERED, 204, "")
    back = https._replace(ended_ms=900.0)
    figures.sent([https, Sent("kafka:audit", 0.0, 30.0, End.AGAIN, 0, "kafka"), back])
    shown = {
        kind: [
            registry.get_sample_value(name, {"kind": kind})
            for name in ("belfry_delivery_seconds_count", "belfry_delivery_seconds_sum")
        ]
        for kind in ("http", "kafka")
    }
    assert shown == {"http": [2, 0.25], "kafka": [1, 0.03]}


def test_a_dispatcher_tells_what_was_sent_of_each_attempt() -> None:
    told: list[Any] = []
    figures = DeliveryFigures(sent=told.append)
    sender: Any = None
    places = Places("s", "l", "undelivered", b"", b"")
    decoder = Decoder("FiredEvent", only=True)
    dispatcher = Dispatcher(Settings(), places, lambda _: sender, decoder, figures)
    dispatcher._progress = {0: DeliveryPosition(0)}
    event = FiredEvent("demo", "a", "f" * 32, 1, 0, 1, 1, 1, payload=b"{}")
    state = DeliveryState((HttpTarget("https://one.example.com/"),))
    sent = Sent("https://one.example.com/", 1.0, 2.0, End.DELIVERED, 204, "")
    answer = Answer(End.DELIVERED, sent.target, sent=(sent,))
    dispatcher._follow(WorkId(0, 0, 0), Work(b"demo/a", b"", event, [], state), answer)
    assert told == [(sent,)]


def test_removed_deliveries_are_counted_once_their_position_is_committed() -> None:
    registry = CollectorRegistry()
    name, topic = "belfry_deliveries_removed_total", {"topic": "deliveries"}
    sender: Any = None
    places, decoder = Places("s", "l", "undelivered", b"", b""), Decoder("FiredEvent", only=True)
    figures = figures_of(Metrics(registry), Settings())
    assert registry.get_sample_value(name, topic) == 0, "it is shown before anything is lost"
    dispatcher = Dispatcher(Settings(), places, lambda _: sender, decoder, figures)
    begun = DeliveryPosition(4)
    begun.kept_from(9)
    senders: Any = SimpleNamespace(drop=lambda: None)
    dispatcher._senders = senders
    dispatcher._assigned({0: begun, 1: DeliveryPosition(4)})
    written: list[dict[int, int]] = []

    def commit(_records: Any, progress: dict[int, DeliveryPosition]) -> None:
        written.append({number: each.position for number, each in progress.items()})

    log: Any = SimpleNamespace(commit=commit)
    assert registry.get_sample_value(name, topic) == 0
    dispatcher._write(log)
    assert written == [{0: 9}]
    assert registry.get_sample_value(name, topic) == 5
    dispatcher._write(log)
    assert registry.get_sample_value(name, topic) == 5
