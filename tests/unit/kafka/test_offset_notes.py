"""Texts of a group without members are read and written, or why not is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.kafka.offset_notes import OffsetNotes
from belfry.settings import Settings

SILENT = KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))


class Coordinator:
    """What a consumer says of a group: texts by partition, and errors by partition."""

    def __init__(self) -> None:
        self.properties: list[dict[str, Any]] = []
        self.kept: dict[int, str] = {}
        self.errors: dict[int, KafkaError] = {}
        self.silent: KafkaException | None = None
        self.closed = 0

    def connect(self, properties: dict[str, Any]) -> Coordinator:
        self.properties.append(properties)
        return self

    def committed(self, asked: list[Any], timeout: float) -> list[Any]:
        return [self._told(one.topic, one.partition) for one in asked]

    def commit(self, offsets: list[Any], *, asynchronous: bool) -> list[Any]:
        assert not asynchronous
        for one in offsets:
            assert one.offset == 0
            if one.partition not in self.errors:
                self.kept[one.partition] = one.metadata
        return [self._told(one.topic, one.partition) for one in offsets]

    def close(self) -> None:
        self.closed += 1

    def _told(self, topic: str, partition: int) -> Any:
        if self.silent is not None:
            raise self.silent
        assert topic == "belfry.tenants"
        text = self.kept.get(partition)
        offset = -1001 if text is None else 0
        error = self.errors.get(partition)
        return SimpleNamespace(partition=partition, offset=offset, metadata=text, error=error)


def notes_of(coordinator: Coordinator, **settings: Any) -> OffsetNotes:
    given = Settings(**settings)
    return OffsetNotes(given, "belfry.identity", "belfry.tenants", coordinator.connect)


def test_what_is_written_is_read_by_one_client() -> None:
    coordinator = Coordinator()
    notes = notes_of(coordinator)
    assert notes.write({0: "zero", 2: "two"}) == {}
    assert notes.read(range(3)) == {0: "zero", 2: "two"}
    (properties,) = coordinator.properties
    assert properties["group.id"] == "belfry.identity"
    assert properties["socket.timeout.ms"] == 5_000


def test_why_a_text_is_refused_is_told_by_partition() -> None:
    coordinator = Coordinator()
    coordinator.errors[1] = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    notes = notes_of(coordinator)
    assert list(notes.write({0: "zero", 1: "one"})) == [1]
    assert notes.read([0, 1]) == {0: "zero"}


def test_an_error_that_may_hide_a_text_is_not_taken_for_none() -> None:
    coordinator = Coordinator()
    coordinator.errors[1] = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(ConnectionError, match=r"group belfry\.identity"):
        notes_of(coordinator).read([0, 1])


def test_a_cluster_that_is_silent_is_a_connection_that_failed() -> None:
    coordinator = Coordinator()
    coordinator.silent = SILENT
    with pytest.raises(ConnectionError, match=r"group belfry\.identity"):
        notes_of(coordinator).read([0])
    with pytest.raises(ConnectionError, match=r"group belfry\.identity"):
        notes_of(coordinator).write({0: "zero"})


def test_a_client_without_an_answer_connects_anew() -> None:
    coordinator = Coordinator()
    notes = notes_of(coordinator)
    notes.write({0: "zero"})
    coordinator.silent = SILENT
    with pytest.raises(ConnectionError):
        notes.read([0])
    assert coordinator.closed == 1
    coordinator.silent = None
    assert notes.read([0]) == {0: "zero"}
    assert len(coordinator.properties) == 1


def test_a_client_whose_texts_were_refused_stays_connected() -> None:
    coordinator = Coordinator()
    coordinator.errors[1] = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    notes = notes_of(coordinator)
    with pytest.raises(ConnectionError):
        notes.read([0, 1])
    assert not coordinator.closed
