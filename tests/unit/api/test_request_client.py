"""What writes requests for HTTP: a producer and its thread, from the first record on."""

from __future__ import annotations

import asyncio
import threading
from time import sleep
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.api.workers import request_client
from belfry.api.workers.acknowledgements import NotWritten, VerdictTimeout
from belfry.api.workers.request_client import RequestClient
from belfry.api.workers.verdicts import VerdictReader
from belfry.api.workers.writing import request_fields
from belfry.settings import Settings

THREAD = "belfry-http-writer"
MARK = ("belfry-copied", b"yes")


class FakeProducer:
    """Confirms what it is given when it is polled."""

    made: list[FakeProducer]

    def __init__(self, _properties: dict[str, Any]) -> None:
        self.records: list[tuple[str, bytes, Any]] = []
        self.flushed = 0
        self._told: list[Any] = []
        self.made.append(self)

    def produce(
        self, topic: str, value: bytes, _key: bytes, *, headers: Any, on_delivery: Any
    ) -> None:
        self.records.append((topic, value, headers))
        self._told.append(on_delivery)

    def poll(self, _timeout: float) -> None:
        told, self._told = self._told, []
        for each in told:
            each(None, "message")

    def flush(self, _timeout: float) -> None:
        self.flushed += 1


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[FakeProducer]:
    FakeProducer.made = []
    monkeypatch.setattr(request_client, "Producer", FakeProducer)
    monkeypatch.setattr(VerdictReader, "start", lambda _: None)
    return FakeProducer.made


def names() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def test_its_producer_is_made_with_the_first_record(made: list[FakeProducer]) -> None:
    client = RequestClient(Settings(), (b"", b""), lambda _tenant: b"")
    client.start()
    assert not made
    assert THREAD not in names()
    for value in (b"one", b"two"):
        client.copy(("out", b"key", None, value, []), MARK)
    (producer,) = made
    assert producer.records == [("out", b"one", [MARK]), ("out", b"two", [MARK])]
    assert THREAD in names()
    client.stop()
    assert producer.flushed == 1
    assert THREAD not in names()


class Quick(FakeProducer):
    """Says at once where a record lies, or nothing at all, as a broker that is away."""

    answers = True

    def produce(self, *_record: Any, on_delivery: Any, **_: Any) -> None:
        if self.answers:
            on_delivery(None, SimpleNamespace(partition=lambda: 2, offset=lambda: 70))

    def poll(self, timeout: float) -> None:
        sleep(min(timeout, 0.01))


@pytest.mark.parametrize(("answers", "error"), [(True, VerdictTimeout), (False, NotWritten)])
def test_who_gets_no_verdict_is_told_whether_the_request_lies_in_kafka(
    made: list[FakeProducer],
    monkeypatch: pytest.MonkeyPatch,
    answers: bool,
    error: type[Exception],
) -> None:
    monkeypatch.setattr(request_client, "Producer", Quick)
    monkeypatch.setattr(Quick, "answers", answers)
    client = RequestClient(Settings(), (b"", b""), lambda _tenant: b"")
    client.start()
    fields = request_fields("shop", "order-7", "CANCEL", {})
    with pytest.raises(error):
        asyncio.run(client.ask(fields, 2, 0.05))
    assert len(made) == 1
    client.stop()


def test_one_that_has_written_nothing_ends_without(made: list[FakeProducer]) -> None:
    client = RequestClient(Settings(), (b"", b""), lambda _tenant: b"")
    client.start()
    client.stop()
    assert not made
