"""A step that is larger than its producer's queue is sent bit by bit."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.engine.effects import Effects
from belfry.engine.rejected_record import RejectedRecord
from belfry.kafka import full_queue, librdkafka
from belfry.kafka.full_queue import produce_rows
from belfry.kafka.outcome import Aborted
from belfry.kafka.step_producer import ProducerSurroundings
from belfry.kafka.step_records import OutputTopics
from belfry.kafka.transactions import PartitionProducer

ROOM = 3


class Client:
    """A producer whose queue holds `ROOM` records, until it is flushed."""

    def __init__(self, *, stuck: bool = False) -> None:
        self.queued = 0
        self.sent: list[tuple[Any, Any]] = []
        self._stuck = stuck

    def begin_transaction(self) -> None:
        return None

    def produce(self, topic: str, value: Any, *_: Any, **options: Any) -> None:
        if self.queued == ROOM:
            raise BufferError("Local: Queue full")
        self.queued += 1
        self.sent.append((topic, value))
        told = options.get("on_delivery")
        if told is not None:
            told(None, MagicMock(offset=lambda: 7, timestamp=lambda: (2, 1_000)))

    def produce_batch(self, topic: str, rows: list[dict[str, Any]], partition: int) -> int:
        assert partition == 0
        taken = min(len(rows), ROOM - self.queued)
        self.queued += taken
        for number, row in enumerate(rows):
            assert "_error" not in row
            if number < taken:
                self.sent.append((topic, row["value"]))
            else:
                row["_error"] = KafkaError(KafkaError._QUEUE_FULL)
        return taken

    def flush(self, _timeout: float) -> None:
        if not self._stuck:
            self.queued = 0

    def commit_transaction(self, _timeout: float) -> None:
        return None

    abort_transaction = commit_transaction


def commit(monkeypatch: pytest.MonkeyPatch, client: Client, effects: Effects) -> None:
    monkeypatch.setattr(librdkafka, "Producer", lambda _properties: client)
    output_topics = OutputTopics("c", "s", "r", "l", b"", "d", b"", lambda _topic: 1)
    clock: Any = MagicMock(monotonic_ms=lambda: 0.0, wall_ms=lambda: 0.0, both_ms=lambda: (0, 0))
    PartitionProducer({}, 0, ProducerSurroundings(output_topics, clock, MagicMock())).commit(
        effects
    )


def step(**more: Any) -> Effects:
    """A step of five of each: fired with and without a group, refused, and rows."""
    fired: Any = [(topic, b"k", b"g", b"%d" % n, []) for n in range(5) for topic in ("a", "b")]
    refused = [RejectedRecord(b"k", b"%d" % n, []) for n in range(5)]
    rows = {b"row%d" % n: b"%d" % n for n in range(5)}
    return Effects(fired=fired, rejected=refused, rows={**rows, b"\0": b"manifest"}, **more)


@pytest.mark.parametrize("loose_topics", [set(), {"a"}])
def test_each_record_is_sent_once(monkeypatch: pytest.MonkeyPatch, loose_topics: set[str]) -> None:
    client = Client()
    commit(monkeypatch, client, step(non_transactional=loose_topics))
    five = [b"%d" % n for n in range(5)]
    for topic, values in {"a": five, "b": five, "r": five, "c": [*five, b"manifest"]}.items():
        assert [value for sent, value in client.sent if sent == topic] == values


def test_a_broker_that_takes_nothing_rolls_the_step_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_queue, "LONGEST_S", 0.0)
    with pytest.raises(Aborted, match="Queue full"):
        commit(monkeypatch, Client(stuck=True), step())


def test_rows_that_are_refused_for_another_reason_are_not_tried_again() -> None:
    client: Any = MagicMock()

    def refuse(_topic: str, rows: list[dict[str, Any]], **_: Any) -> int:
        rows[0]["_error"] = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
        return 0

    client.produce_batch = refuse
    with pytest.raises(KafkaException):
        produce_rows(client, "c", 0, [(b"k", b"v")])
