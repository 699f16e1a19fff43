"""A worker's own heartbeat is kept where its assignment says, and late ones count as lost."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from belfry.balance.assignment import Assignment, Watched
from belfry.balance.heartbeat import Heartbeat, read_heartbeat
from belfry.group.heartbeats import Heartbeats
from belfry.kafka import offset_client


class Clock:
    def __init__(self) -> None:
        self.ms = 1_000_000.0

    def monotonic_ms(self) -> float:
        return self.ms

    wall_ms = monotonic_ms


class Broker:
    """As much of a client as keeps and tells positions; answers when it is polled."""

    def __init__(self, properties: dict[str, Any]) -> None:
        self.answer = properties["on_commit"]
        self.kept: dict[int, TopicPartition] = {}
        self.unanswered: list[TopicPartition] = []
        self.error: KafkaError | None = None
        self.away = False

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous
        self.unanswered += offsets

    def poll(self, _: float) -> None:
        if self.away:
            return
        for place in self.unanswered:
            if self.error is None:
                self.kept[place.partition] = place
            self.answer(self.error, [place])
        self.unanswered.clear()

    def committed(self, places: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout > 0
        if self.away:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return [self.kept.get(each.partition, each) for each in places]


class Setting:
    """Heartbeats of a worker, its clock and its broker."""

    def __init__(self) -> None:
        self.heartbeats = Heartbeats("one", "changelog", {}, "belfry.heartbeats")
        self.heartbeats._clock = self.clock = Clock()  # type: ignore[assignment]
        self.broker: Any = self.heartbeats._client
        self.heartbeats._well = lambda: [3, 4]

    def pass_ms(self, ms: float) -> None:
        for _ in range(int(ms / 100)):
            self.clock.ms += 100
            self.heartbeats._turn(self.clock.ms)
            self.broker.poll(0)


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.setattr(offset_client, "OffsetClient", Broker)
    return Setting()


def test_the_first_one_asks_whether_it_is_taken(setting: Setting) -> None:
    assert not setting.heartbeats.works
    setting.pass_ms(400)
    assert setting.heartbeats.begun()


def test_who_may_not_keep_one_is_told_at_once(setting: Setting) -> None:
    setting.broker.error = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
    setting.pass_ms(400)
    assert not setting.heartbeats.begun()


def test_a_heartbeat_is_kept_under_ones_own_partition(setting: Setting) -> None:
    setting.heartbeats.follow(Assignment(heartbeat=3))
    setting.pass_ms(1_000)
    first = setting.broker.kept[3]
    assert read_heartbeat(first.metadata) == Heartbeat("one", frozenset({3, 4}))
    setting.pass_ms(400)
    assert setting.broker.kept[3].offset > first.offset
    setting.heartbeats.follow(Assignment())
    last = setting.broker.kept[3]
    setting.pass_ms(1_000)
    assert setting.broker.kept[3] == last


def test_late_ones_count_as_lost_for_a_while(setting: Setting) -> None:
    """Then each partition commits, and who has been fenced off meanwhile finds out."""
    setting.heartbeats.follow(Assignment(heartbeat=3))
    setting.pass_ms(3_000)
    assert setting.heartbeats.acknowledged()
    setting.broker.away = True
    setting.pass_ms(2_000)
    assert not setting.heartbeats.acknowledged()
    setting.broker.away = False
    setting.pass_ms(1_000)
    assert not setting.heartbeats.acknowledged()
    setting.pass_ms(3_000)
    assert setting.heartbeats.acknowledged()


def test_a_process_that_slept_was_late(setting: Setting) -> None:
    setting.heartbeats.follow(Assignment(heartbeat=3))
    setting.pass_ms(1_000)
    setting.clock.ms += 5_000
    assert not setting.heartbeats.acknowledged()
    setting.pass_ms(1_000)
    assert not setting.heartbeats.acknowledged()
    setting.pass_ms(3_000)
    assert setting.heartbeats.acknowledged()


def test_owners_are_heard_and_stay_known_through_a_rebalance(setting: Setting) -> None:
    watches = (Watched("two", 2, 5, {5: 0, 6: 0}),)
    setting.heartbeats.follow(Assignment(watches=watches))
    setting.pass_ms(1_000)
    watch = setting.heartbeats.watch(5)
    assert watch is not None
    for number in range(1, 4):
        beat = Heartbeat("two", frozenset({5})).encode()
        setting.broker.kept[5] = TopicPartition("changelog", 5, number, beat)
        setting.pass_ms(300)
    assert watch.vouches(5, setting.clock.ms, 1_000)
    assert not watch.vouches(6, setting.clock.ms, 1_000)
    setting.heartbeats.follow(Assignment(watches=(Watched("two", 3, 4, {5: 0}),)))
    assert setting.heartbeats.watch(4) is watch
    assert setting.heartbeats.watch(5) is None


def test_a_broker_that_is_away_excuses_owners(setting: Setting) -> None:
    setting.heartbeats.follow(Assignment(watches=(Watched("two", 2, 5, {5: 0}),)))
    setting.pass_ms(10_000)
    watch = setting.heartbeats.watch(5)
    assert watch is not None
    assert watch.quiet_ms(setting.clock.ms) > 5_000
    setting.broker.away = True
    setting.pass_ms(300)
    assert watch.excused(setting.clock.ms)


def test_a_poll_that_fails_does_not_end_the_heartbeats(setting: Setting) -> None:
    answers, failed = setting.broker.poll, list[float]()

    def poll(wait_s: float) -> None:
        if not failed:
            failed.append(wait_s)
            raise RuntimeError("a callback failed")
        answers(wait_s)

    setting.broker.poll = poll
    setting.broker.close = lambda: None
    setting.heartbeats.start()
    try:
        assert setting.heartbeats.begun()
    finally:
        setting.heartbeats.stop()
