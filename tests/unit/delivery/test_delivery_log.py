"""The clients of a process that delivers tell their figures, also where they are idle."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from belfry.delivery.delivery_log import DeliveryLog
from belfry.delivery.figures import DELIVERIES, TARGETS, figures_of
from belfry.delivery.kinds import kafka
from belfry.delivery.work import Work, WorkId
from belfry.schedules.targets import HttpTarget
from belfry.settings import Settings
from belfry.telemetry.metrics import Metrics
from belfry.tenants.deliveries import DeliveryState
from belfry.wire.fired import FiredEvent


def test_who_reads_deliveries_and_who_writes_what_follows_tell_figures(tmp_path: Path) -> None:
    settings = Settings(
        bootstrap_servers="127.0.0.1:1", data_dir=tmp_path, client_statistics_interval_ms=50
    )
    clients = figures_of(Metrics(CollectorRegistry()), settings).clients
    told = clients(DELIVERIES)
    log = DeliveryLog(settings, told, None, None)
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

    monkeypatch.setattr(kafka, "Producer", FakeProducer)
    sender = kafka.KafkaSender(Settings(), lambda *_: None, lambda kind: {"stats_cb": kind})
    event = FiredEvent("demo", "a", "f" * 32, 1, 0, 1, 1, 1, payload=b"{}")
    state = DeliveryState((HttpTarget("kafka:payments.audit"),))
    sender._produce("payments.audit", WorkId(0, 0, 0), Work(b"demo/a", b"", event, [], state))
    assert [each["stats_cb"] for each in made] == [TARGETS]
