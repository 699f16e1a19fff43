"""The follower on a broker that the test holds: when a partition may be asked about."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from belfry.history import lifecycle_reader
from belfry.history.follower import Follower
from belfry.history.history_store import HistoryStore
from belfry.history.lifecycle_reader import LifecycleReader
from belfry.host.rocks import RocksMap
from belfry.settings import Settings
from belfry.store.ordered_map import MemoryMap


class Told:
    """A message, or (with an error) what a consumer says of a partition."""

    def __init__(self, partition: int, offset: int, code: int | None = None) -> None:
        self._told = (partition, offset)
        self._error = None if code is None else KafkaError(code)

    def partition(self) -> int:
        return self._told[0]

    def offset(self) -> int:
        return self._told[1]

    def value(self) -> None:
        return None

    def error(self) -> KafkaError | None:
        return self._error


def end(partition: int, offset: int = 0) -> Told:
    return Told(partition, offset, KafkaError._PARTITION_EOF)


class Log:
    """Implements what the follower needs of a consumer."""

    def __init__(self, ends: dict[int, int]) -> None:
        self.ends = ends
        self.is_away = False
        self.queue: list[Told] = []
        self.assigned: dict[int, int] = {}
        self.closed = False

    def assign(self, places: list[TopicPartition]) -> None:
        self.assigned = {place.partition: place.offset for place in places}

    def poll(self, _timeout: float) -> Told | None:
        return self.queue.pop(0) if self.queue else None

    def consume(self, count: int, _timeout: float) -> list[Told]:
        found, self.queue = self.queue[:count], self.queue[count:]
        return found

    def offsets_for_times(self, wanted: list[Any], timeout: float) -> list[Any]:
        if self.is_away:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return [
            SimpleNamespace(partition=each.partition, offset=self.ends[each.partition], error=None)
            for each in wanted
        ]

    def list_topics(self, topic: str, _timeout: float) -> Any:
        if self.is_away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=self.ends)})

    def close(self) -> None:
        self.closed = True


class Following:
    """A follower of two partitions, its store and its log; each `look` is one turn of its loop."""

    def __init__(self, data_dir: Path, log: Log) -> None:
        self.held = [0, 1]
        self.store, self.log = HistoryStore(MemoryMap()), log
        settings = Settings(data_dir=data_dir)
        self.inner = Follower(settings, b"", lambda: self.held, lambda _: 1_000, lambda: 0.0)
        self.inner._homes = 4
        consumer: Any = log
        self.reader = LifecycleReader(consumer, "belfry.lifecycle", self.inner._backlog, b"")
        self.reader.partitions = len(log.ends)

    @property
    def followed(self) -> frozenset[int]:
        return self.inner.followed

    def look(self, *told: Told) -> frozenset[int]:
        """What is followed after a look at what is told."""
        self.inner._look(self.reader, self.store)
        self.log.queue += told
        self.inner._take(self.reader, self.store)
        return self.followed


@pytest.fixture
def log() -> Log:
    return Log({0: 5, 1: 0})


@pytest.fixture
def following(tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> Following:
    monkeypatch.setattr(lifecycle_reader, "AGAIN_S", 0.0)
    return Following(tmp_path, log)


def test_a_partition_is_followed_once_its_backlog_is_in_the_book(following: Following) -> None:
    assert following.look() == {1}
    assert following.look(*(Told(0, offset) for offset in range(4))) == {1}
    assert following.look(Told(0, 4)) == {0, 1}
    assert following.store.position(0) == 5


def test_marks_of_transactions_at_the_end_hold_nothing_up(following: Following) -> None:
    assert following.look(Told(0, 3)) == {1}
    assert following.look(end(0, 5)) == {0, 1}


def test_a_log_that_compaction_has_emptied_holds_nothing_up(following: Following, log: Log) -> None:
    log.ends[1] = 9
    assert following.look(end(1, 9)) == {1}


def test_ends_that_nobody_tells_are_asked_for_again(following: Following, log: Log) -> None:
    log.is_away = True
    assert following.look(Told(0, 4)) == frozenset()
    assert following.look(end(1)) == {1}
    log.is_away = False
    assert following.look() == {0, 1}


def test_other_errors_are_no_end(following: Following) -> None:
    assert following.look(Told(0, 0, KafkaError._TRANSPORT)) == {1}


def test_after_a_rebalance_what_stays_is_followed_and_what_comes_is_read_first(
    following: Following, log: Log
) -> None:
    following.held = [1]
    assert following.look(end(1)) == {1}
    following.held = [0, 1]
    assert following.look() == {1}
    assert following.look(Told(0, 4)) == {0, 1}
    following.held = [0]
    assert following.look() == {0}
    log.ends[1] = 3
    following.held = [0, 1]
    assert following.look() == {0}
    assert log.assigned.keys() == {0, 1}
    assert following.look(Told(1, 2)) == {0, 1}


def test_partitions_that_are_added_are_followed(
    following: Following, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle_reader, "COUNT_S", 0.0)
    following.look(Told(0, 4))
    log.ends |= {2: 0, 3: 0, 4: 1, 5: 0}
    assert following.look() == {0, 1}
    assert following.inner.partitions == 6
    assert following.look() == {0, 1, 5}
    assert following.look(Told(4, 0)) == {0, 1, 4, 5}
    log.is_away = True
    following.look()
    assert following.inner.partitions == 6


def test_nothing_is_followed_once_the_reader_has_gone(
    following: Following, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    following.look(Told(0, 4))
    assert following.followed == {0, 1}
    inner, rows = following.inner, RocksMap.__new__(RocksMap)
    asked: dict[str, bool] = {}
    monkeypatch.setattr(inner._cluster, "consumer", lambda _, **how: (asked.update(how), log)[1])
    monkeypatch.setattr(inner._cluster, "partitions", lambda *_: [0, 1])
    monkeypatch.setattr(inner, "_chores", lambda *_: inner._thread.stopping.set())
    inner._follow(following.store, rows)
    assert asked["tells_ends"]
    assert log.closed
    assert following.followed == frozenset()
