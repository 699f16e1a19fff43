"""Ends of many logs take one question, and what it does not tell is asked for alone."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import OFFSET_END, OFFSET_INVALID, KafkaError, KafkaException, TopicPartition

from belfry.kafka import offset_client
from belfry.kafka.fetch_position import Where
from belfry.kafka.log_ends import LogEnds

PLACES: list[Where] = [("in", 0), ("in", 1), ("log", 0)]


class Client:
    """Tells where logs end: at 7 for readers of committed records, at 9 for others."""

    made: list[Client]
    silent: set[Where]
    away: bool

    def __init__(self, properties: dict[str, Any]) -> None:
        self.end = 7 if properties["isolation.level"] == "read_committed" else 9
        self.together: list[list[Where]] = []
        self.alone: list[Where] = []
        self.made.append(self)

    def offsets_for_times(self, places: list[TopicPartition], wait_s: float) -> Any:
        assert {each.offset for each in places} == {OFFSET_END}
        assert wait_s == 0.5
        if self.away:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        self.together.append([(str(each.topic), each.partition) for each in places])
        return [
            TopicPartition(*place, OFFSET_INVALID if place in self.silent else self.end)
            for place in self.together[-1]
        ]

    def get_watermark_offsets(self, place: TopicPartition, *_: Any, **__: Any) -> tuple[int, int]:
        self.alone.append((str(place.topic), place.partition))
        return 3, self.end + 10

    def list_topics(self, *_: Any) -> None:
        raise AssertionError("a broker that answers is not looked for")


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    Client.made, Client.silent, Client.away = [], set(), False
    monkeypatch.setattr(offset_client, "OffsetClient", Client)
    return Client.made


def test_all_are_asked_at_once(clients: list[Client]) -> None:
    ends = LogEnds({})
    assert ends.all_ends(PLACES) == dict.fromkeys(PLACES, 9)
    assert ends.all_readable(PLACES) == dict.fromkeys(PLACES, 7)
    assert [each.together for each in clients] == [[PLACES], [PLACES]]
    assert [each.alone for each in clients] == [[], []]


def test_one_without_an_answer_is_asked_alone(clients: list[Client]) -> None:
    Client.silent = {("in", 1)}
    assert LogEnds({}).all_ends(PLACES) == {("in", 0): 9, ("in", 1): 19, ("log", 0): 9}
    assert [each.alone for each in clients] == [[], [("in", 1)]]


def test_where_no_broker_answers_each_is_asked_alone(clients: list[Client]) -> None:
    Client.away = True
    assert LogEnds({}).all_readable(PLACES) == dict.fromkeys(PLACES, 17)
    assert [each.alone for each in clients] == [PLACES, []]


def test_what_is_held_back_is_told_by_two_questions_and_nothing_is_asked_alone(
    clients: list[Client],
) -> None:
    ends = LogEnds({})
    Client.silent = {("in", 1)}
    assert ends.told_held_back(PLACES) == {("in", 0): 7, ("log", 0): 7}
    assert ends.told_held_back([]) == {}
    Client.away = True
    assert ends.told_held_back(PLACES) is None
    assert [each.alone for each in clients] == [[], []]


def test_nothing_is_asked_of_nowhere(clients: list[Client]) -> None:
    assert LogEnds({}).all_ends([]) == {}
    assert [each.together for each in clients] == [[], []]
