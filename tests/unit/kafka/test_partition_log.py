"""What a reader of a partition has taken from its client is never lost to an error beside it."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError

from belfry.kafka import librdkafka
from belfry.kafka.partition_log import PartitionLog


class Told:
    """A record, or an error in place of one."""

    def __init__(self, offset: int | None, code: int | None = None) -> None:
        self._offset = offset
        self._error = None if code is None else KafkaError(code)

    def offset(self) -> int | None:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 2, 1_000

    def error(self) -> KafkaError | None:
        return self._error


class Client:
    """Hands out what a test put there, all at once."""

    def __init__(self, *rounds: list[Told]) -> None:
        self._rounds = list(rounds)

    def assign(self, _places: object) -> None:
        return None

    def poll(self, _wait_s: float) -> Told | None:
        return self._rounds[0].pop(0) if self._rounds else None

    def consume(self, _at_most: int, _wait_s: float) -> list[Told]:
        return self._rounds.pop(0)


REFUSED = KafkaError.TOPIC_AUTHORIZATION_FAILED


def reader(monkeypatch: pytest.MonkeyPatch, *rounds: list[Told]) -> PartitionLog:
    client: Any = Client(*rounds)
    monkeypatch.setattr(librdkafka, "Consumer", lambda _: client)
    log = PartitionLog({}, "belfry.changelog", 0)
    log.position = 10
    return log


@pytest.mark.parametrize("at", [0, 1, 2])
def test_records_beside_an_error_come_first(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    told = [Told(10), Told(11)]
    told.insert(at, Told(None, REFUSED))
    log = reader(monkeypatch, told, [Told(12)])
    assert [record.offset() for record in log.read(100, 0.1)] == [10, 11]
    with pytest.raises(ConnectionError, match=r"belfry\.changelog"):
        log.read(100, 0.1)
    assert [record.offset() for record in log.read(100, 0.1)] == [12]
    assert log.position == 13


def test_an_error_alone_is_raised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log = reader(monkeypatch, [Told(None, REFUSED)], [Told(10)])
    with pytest.raises(ConnectionError):
        log.read(100, 0.1)
    assert [record.offset() for record in log.read(100, 0.1)] == [10]


def test_an_end_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    log = reader(monkeypatch, [Told(10), Told(15, KafkaError._PARTITION_EOF)])
    assert [record.offset() for record in log.read(100, 0.1)] == [10]
    assert log.position == 15
