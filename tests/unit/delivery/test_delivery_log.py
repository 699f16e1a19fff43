"""The member of the group that delivers: how it begins, and that its end is not waited for."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.delivery import delivery_log
from belfry.delivery.delivery_log import DeliveryLog
from belfry.settings import DeliverySettings

SILENT = KafkaException(KafkaError(KafkaError._TIMED_OUT, "no coordinator", retriable=True))
FENCED = KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))


class Client:
    """Stands in for both clients: what `init_transactions` comes to, and what it was asked."""

    def __init__(self, *ends: Exception | None) -> None:
        self.ends = list(ends)
        self.waited: list[float] = []
        self.subscribed = False
        self.asked: Any = lambda: None

    def __call__(self, _properties: dict[str, Any]) -> Client:
        return self

    def init_transactions(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.asked()
        if (error := self.ends.pop(0)) is not None:
            raise error

    def subscribe(self, *_: Any, **__: Any) -> None:
        self.subscribed = True


def opened(client: Client, stopping: Event, tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(delivery_log, "Producer", client)
    patch.setattr(delivery_log, "Consumer", client)
    settings = DeliverySettings(bootstrap_servers="one:9092", data_dir=tmp_path)
    DeliveryLog(settings, {}, None, None).open(stopping)


def test_what_a_former_life_left_open_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(SILENT, SILENT, None)
    opened(client, Event(), tmp_path, monkeypatch)
    assert client.subscribed
    assert client.waited == [1.0] * 3


def test_a_worker_that_is_to_stop_waits_for_no_coordinator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, stopping = Client(SILENT), Event()
    client.asked = stopping.set
    opened(client, stopping, tmp_path, monkeypatch)
    assert not client.subscribed
    assert client.waited == [1.0]


def test_what_does_not_pass_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(FENCED)
    with pytest.raises(KafkaException, match="fenced"):
        opened(client, Event(), tmp_path, monkeypatch)
    monkeypatch.setattr(delivery_log, "INIT_S", 0.0)
    with pytest.raises(KafkaException, match="no coordinator"):
        opened(Client(SILENT), Event(), tmp_path, monkeypatch)
