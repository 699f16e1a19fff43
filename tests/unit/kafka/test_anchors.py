"""Anchors are kept as offsets of a group, and never go back to before a recovery."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.kafka.anchors import Anchors
from belfry.settings import Settings
from belfry.store.identity import Identity

FIRST = Identity("cluster-a", "log-1", "in-1", 0)
RECOVERED = FIRST._replace(changelog="log-2", generation=1)


class Admin:
    """Offsets of groups without members, by partition."""

    def __init__(self) -> None:
        self.kept: dict[int, str] = {}
        self.writes = 0
        self.away = False
        self.asked: list[str] = []
        self.known = True

    def describe_consumer_groups(self, names: list[str], **_: Any) -> dict[str, Future[Any]]:
        self.asked.append("group")
        future: Future[Any] = Future()
        if self.away or not self.known:
            code = KafkaError.NOT_COORDINATOR if self.away else KafkaError.GROUP_ID_NOT_FOUND
            future.set_exception(KafkaException(KafkaError(code, "no answer")))
        else:
            future.set_result(SimpleNamespace(members=[]))
        return {names[0]: future}

    def list_consumer_group_offsets(self, asked: Any, **_: Any) -> dict[str, Future[Any]]:
        self.asked.append("offsets")
        offsets = [
            SimpleNamespace(
                partition=one.partition,
                offset=0 if one.partition in self.kept else -1001,
                metadata=self.kept.get(one.partition),
                error=None,
            )
            for one in asked[0].topic_partitions
        ]
        return {asked[0].group_id: self._answer(offsets)}

    def alter_consumer_group_offsets(self, given: Any, **_: Any) -> dict[str, Future[Any]]:
        self.writes += 1
        self.asked.append("offsets")
        for one in given[0].topic_partitions:
            self.kept[one.partition] = one.metadata
        done = [
            SimpleNamespace(partition=one.partition, error=None)
            for one in given[0].topic_partitions
        ]
        return {given[0].group_id: self._answer(done)}

    def _answer(self, offsets: list[Any]) -> Future[Any]:
        future: Future[Any] = Future()
        if self.away:
            future.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer")))
        else:
            future.set_result(SimpleNamespace(topic_partitions=offsets))
        return future


@pytest.fixture
def admin() -> Admin:
    return Admin()


@pytest.fixture
def anchors(admin: Admin) -> Anchors:
    client: Any = admin
    return Anchors(client, Settings())


def test_what_is_written_is_read(anchors: Anchors) -> None:
    assert anchors.read(0) is None
    assert anchors.write({0: FIRST, 2: RECOVERED}) == {}
    assert [anchors.read(number) for number in range(3)] == [FIRST, None, RECOVERED]


def test_offsets_are_asked_of_a_coordinator_that_has_answered(
    anchors: Anchors, admin: Admin
) -> None:
    """librdkafka ends the process where another broker is asked for them."""
    admin.known = False
    anchors.write({0: FIRST})
    assert admin.asked == ["group", "offsets", "group", "offsets"]
    admin.away = True
    with pytest.raises(ConnectionError, match="group belfry"):
        anchors.read(0)
    assert admin.asked[4:] == ["group"]


def test_an_owner_of_before_a_recovery_lowers_no_generation(anchors: Anchors) -> None:
    anchors.write({0: RECOVERED, 1: FIRST})
    assert anchors.write({0: FIRST, 1: FIRST, 2: FIRST}) == {0: RECOVERED}
    assert [anchors.read(number) for number in range(3)] == [RECOVERED, FIRST, FIRST]


def test_nothing_is_written_where_all_of_it_is_older(anchors: Anchors, admin: Admin) -> None:
    anchors.write({0: RECOVERED})
    anchors.write({0: FIRST})
    assert admin.writes == 1


def test_the_same_generation_is_said_again(anchors: Anchors, admin: Admin) -> None:
    """Kafka forgets an offset some days after its last commit."""
    anchors.write({0: FIRST})
    anchors.write({0: FIRST})
    assert admin.writes == 2


def test_a_cluster_that_does_not_answer_is_a_connection_that_failed(
    anchors: Anchors, admin: Admin
) -> None:
    admin.away = True
    with pytest.raises(ConnectionError, match="identity"):
        anchors.write({0: FIRST})
