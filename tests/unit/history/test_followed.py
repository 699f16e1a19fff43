"""The follower on a broker that the test holds: when a partition may be asked about."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from belfry.history import follower, lifecycle_reader
from belfry.history.fire_hours import FireHours
from belfry.history.follower import Follower
from belfry.history.history_store import HistoryStore
from belfry.history.lifecycle_reader import LifecycleReader
from belfry.host.rocks import RocksMap
from belfry.kafka.fetch_position import Fetched
from belfry.settings import Settings
from belfry.store.ordered_map import MemoryMap
from belfry.wire.record import SourceRecord


def record(offset: int) -> SourceRecord:
    return (offset, 0, None, None, None)


class Told(NamedTuple):
    """What is fetched of a partition: a record at an offset, or (`over`) nothing behind it."""

    partition: int
    offset: int
    over: bool = False


def end(partition: int, offset: int = 0) -> Told:
    return Told(partition, offset, over=True)


class Log:
    """Implements what the follower needs of a followed topic."""

    name = "belfry.lifecycle"

    def __init__(self, ends: dict[int, int]) -> None:
        self.at = ends
        self.is_away = False
        self.queue: list[Told] = []
        self.assigned: dict[int, int] = {}
        self.closed = False

    def follow(self, positions: dict[int, int]) -> None:
        self.assigned = dict(positions)

    def take(self, _wait_s: float) -> Fetched | None:
        if not self.queue:
            return None
        partition, offset, over = self.queue.pop(0)
        where = self.name, partition
        return Fetched(where, offset, offset if over else offset + 1, b"" if over else b"packed")

    def ends(self, wanted: list[int], _wait_s: float) -> dict[int, int]:
        if self.is_away:
            raise ConnectionError("away")
        return {each: self.at[each] for each in wanted}

    def partitions(self, _wait_s: float = 1.0) -> list[int]:
        if self.is_away:
            raise ConnectionError("away")
        return sorted(self.at)

    def close(self) -> None:
        self.closed = True


class Following:
    """A follower of two partitions, its store and its log; each `look` is one turn of its loop."""

    def __init__(self, data_dir: Path, log: Log) -> None:
        self.held = [0, 1]
        self.store, self.log = HistoryStore(MemoryMap()), log
        settings = Settings(data_dir=data_dir)
        self.inner = Follower(
            settings, b"", lambda: self.held, lambda _: 1_000, FireHours(lambda: 0.0)
        )
        self.inner._homes = 4
        topic: Any = log
        self.reader = LifecycleReader(topic, self.inner._backlog, b"")
        self.reader.partitions = len(log.at)

    @property
    def followed(self) -> frozenset[int]:
        return self.inner.followed

    def look(self, *told: Told) -> frozenset[int]:
        """What is followed after a look at what is told."""
        self.inner._look(self.reader, self.store)
        self.log.queue += told
        for _ in told:
            self.inner._take(self.reader, self.store)
        return self.followed


@pytest.fixture
def log() -> Log:
    return Log({0: 5, 1: 0})


@pytest.fixture
def following(tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> Following:
    monkeypatch.setattr(lifecycle_reader, "AGAIN_S", 0.0)
    monkeypatch.setattr(
        lifecycle_reader,
        "portions",
        lambda each, _most: iter([([record(each.offset)], each.behind)] if each.data else []),
    )
    return Following(tmp_path, log)


def test_a_partition_is_followed_once_its_backlog_is_in_the_book(following: Following) -> None:
    assert following.look() == {1}
    assert following.look(*(Told(0, offset) for offset in range(4))) == {1}
    assert following.look(Told(0, 4)) == {0, 1}
    assert following.store.position(0) == 5


def test_marks_of_transactions_at_the_end_hold_nothing_up(following: Following) -> None:
    assert following.look(Told(0, 3)) == {1}
    assert following.look(end(0, 5)) == {0, 1}


def test_records_of_a_large_batch_that_are_passed_over_are_no_end(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [([], 2), ([record(2)], 3), ([], 3), ([record(3)], 4)]
    monkeypatch.setattr(lifecycle_reader, "portions", lambda *_: iter(parts))
    assert following.look(Told(0, 2), Told(0, 2)) == {1}
    assert following.store.position(0) == 4


def test_a_log_that_compaction_has_emptied_holds_nothing_up(following: Following, log: Log) -> None:
    log.at[1] = 9
    assert following.look(end(1, 9)) == {1}


def test_ends_that_nobody_tells_are_asked_for_again(following: Following, log: Log) -> None:
    log.is_away = True
    assert following.look(Told(0, 4)) == frozenset()
    assert following.look(end(1)) == {1}
    log.is_away = False
    assert following.look() == {0, 1}


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
    log.at[1] = 3
    following.held = [0, 1]
    assert following.look() == {0}
    assert log.assigned.keys() == {0, 1}
    assert following.look(Told(1, 2)) == {0, 1}


def test_partitions_that_are_added_are_followed(
    following: Following, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle_reader, "COUNT_S", 0.0)
    following.look(Told(0, 4))
    log.at |= {2: 0, 3: 0, 4: 1, 5: 0}
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
    monkeypatch.setattr(follower, "FollowedTopic", lambda *_: log)
    monkeypatch.setattr(inner, "_chores", lambda *_: inner._thread.stopping.set())
    inner._follow(following.store, rows)
    assert log.closed
    assert following.followed == frozenset()
