"""The end of a topic: one record at its place needs its own partition alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from belfry.kafka import librdkafka
from belfry.kafka.topic_tail import TopicTail, record_at

LED: Final = 0
LEADERLESS: Final = 1


class Record:
    """A record at an offset of the partition that has a leader."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def partition(self) -> int:
        return LED

    def offset(self) -> int:
        return self._offset

    def error(self) -> None:
        return None


class Reader:
    """A consumer of a topic of two partitions, of which nobody leads the second one.

    The first one holds offsets 5 to 9.
    """

    def __init__(self, _properties: Any) -> None:
        self._next = 0

    def list_topics(self, topic: str, _timeout: float) -> Any:
        found = SimpleNamespace(error=None, partitions={LED: None, LEADERLESS: None})
        return SimpleNamespace(topics={topic: found})

    def get_watermark_offsets(self, place: TopicPartition, *_: Any, **__: Any) -> Any:
        if place.partition == LEADERLESS:
            raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
        return 5, 10

    def assign(self, places: list[TopicPartition]) -> None:
        (place,) = places
        self._next = place.offset

    def consume(self, *_: Any) -> list[Any]:
        found, self._next = [Record(self._next)], self._next + 1
        return found

    def close(self) -> None:
        pass


class Moving(Reader):
    """The same, whose first partition has just got another leader."""

    answers_wrong = 2

    def get_watermark_offsets(self, place: TopicPartition, *_: Any, **__: Any) -> Any:
        if self.answers_wrong:
            self.answers_wrong -= 1
            raise KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
        return super().get_watermark_offsets(place)


@pytest.fixture(autouse=True)
def _reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(librdkafka, "Consumer", Reader)


@pytest.mark.parametrize("offset", [5, 9])
def test_one_record_is_found_though_nobody_leads_another_partition(offset: int) -> None:
    found = record_at({}, "t", (LED, offset))
    assert found is not None
    assert (found.partition(), found.offset()) == (LED, offset)


@pytest.mark.parametrize("place", [(LED, 4), (LED, 10), (2, 7)])
def test_where_no_record_lies_there_is_none(place: tuple[int, int]) -> None:
    assert record_at({}, "t", place) is None


def test_a_partition_that_is_asked_for_has_to_answer() -> None:
    with pytest.raises(ConnectionError):
        record_at({}, "t", (LEADERLESS, 7))
    with pytest.raises(ConnectionError):
        TopicTail({}, "t")


def test_a_look_goes_on_in_the_partitions_that_it_is_told_of() -> None:
    with TopicTail({}, "t", {LED: 8}) as tail:
        assert tail.stretch(2, lambda message: message.offset()) == [6, 7]
        assert (tail.rest, tail.is_over) == ({LED: 6}, False)


def test_a_partition_whose_leader_has_just_changed_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(librdkafka, "Consumer", Moving)
    found = record_at({}, "t", (LED, 9))
    assert found is not None
    assert found.offset() == 9
