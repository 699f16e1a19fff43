"""Where logs end is asked over connections that all partitions share, and none stays broken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from belfry.host import machine
from belfry.kafka import librdkafka, offset_client
from belfry.kafka.log_bounds import AheadOfLog, LogBounds, LostRange
from belfry.kafka.log_ends import LogEnds


class Client:
    """Says that each log lies from 3 to 9, of which an open transaction holds back what is behind
    7; or fails.
    """

    made: list[Client]

    def __init__(self, properties: dict[str, Any]) -> None:
        self.committed = properties["isolation.level"] == "read_committed"
        self.fails: Any = None
        # Whether it knows a leader that is gone: librdkafka asks it until the time is over.
        self.knows_the_former = False
        self.waited: list[float] = []
        self.closed = False
        self.made.append(self)

    def get_watermark_offsets(self, _place: TopicPartition, wait_s: float, **_: Any) -> Any:
        self.waited.append(wait_s)
        if self.knows_the_former:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if isinstance(self.fails, Exception):
            raise self.fails
        return None if self.fails else (3, 7 if self.committed else 9)

    def list_topics(self, topic: str, wait_s: float) -> None:
        assert (topic, wait_s) == ("in", self.waited[-1])
        self.knows_the_former = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    Client.made = []
    monkeypatch.setattr(librdkafka, "Consumer", Client)
    monkeypatch.setattr(offset_client, "OffsetClient", Client)
    return Client.made


def test_a_worker_has_two_clients_for_all_questions(clients: list[Client]) -> None:
    shared = LogEnds({})
    for partition in range(5):
        log = LogBounds({}, "in", partition, shared)
        assert log.ends() == (3, 7)
        assert log.log_end() == 9
        assert log.bounds() == (3, 9), "what an open transaction holds back counts"
    assert len(clients) == 2
    shared.close()
    assert all(each.closed for each in clients)


def test_without_them_each_question_has_its_own(clients: list[Client]) -> None:
    log = LogBounds({}, "in", 0)
    assert (log.ends(), log.log_end(), log.bounds()) == ((3, 7), 9, (3, 9))
    assert [each.closed for each in clients] == [True] * 3


@pytest.mark.parametrize(
    "fails", [True, KafkaException(KafkaError(KafkaError._TRANSPORT))], ids=["silent", "away"]
)
def test_a_client_that_gave_no_answer_connects_anew(clients: list[Client], fails: Any) -> None:
    shared = LogEnds({})
    committed, uncommitted = clients
    uncommitted.fails = fails
    with pytest.raises(ConnectionError, match="in: "):
        shared.end("in", 0, 0.2)
    assert (committed.closed, uncommitted.closed) == (False, True)
    uncommitted.fails = None
    assert shared.end("in", 0) == 9


def test_one_reads_from_where_the_log_is() -> None:
    log = LogBounds({}, "in", 2, LogEnds({}))
    for offset in (3, 7, 8, 9):
        log.check(offset)
    with pytest.raises(AheadOfLog, match="in/2 ends at offset 9, but offset 10 was read before"):
        log.check(10)
    with pytest.raises(LostRange, match="in/2 begins at offset 3"):
        log.check(2)


def test_a_leader_that_moves_is_asked_where_it_is_then(
    clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rolling restart moves leaders: a take-over waits for a moment, and does not begin anew."""
    shared = LogEnds({})
    log = LogBounds({}, "in", 0, shared)
    log.ends()
    client, _ = clients
    client.fails = KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))

    def look(_pause_s: float) -> None:
        client.fails = None

    monkeypatch.setattr(machine, "sleep", look)
    assert log.ends() == (3, 7)
    client.fails = KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
    monkeypatch.setattr(machine, "sleep", lambda _pause_s: None)
    with pytest.raises(ConnectionError, match="in:"):
        shared.ends("in", 0, 0.01)


def test_a_leader_that_is_gone_is_not_waited_for(
    clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its brokers are asked who leads now after half a second, and not after all of the ten."""
    monkeypatch.setattr(machine, "sleep", lambda _pause_s: None)
    shared = LogEnds({})
    shared.end("in", 0)
    _, client = clients
    client.knows_the_former = True
    assert shared.end("in", 0) == 9
    assert client.waited == [0.5, 0.5, 1.0]


def test_what_no_wait_mends_is_told_at_once(clients: list[Client]) -> None:
    shared = LogEnds({})
    shared.end("in", 0)
    clients[1].fails = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    clients[1].waited = []
    with pytest.raises(ConnectionError, match="in: "):
        shared.end("in", 0)
    assert len(clients[1].waited) == 1


def test_a_slow_broker_gets_longer_tries_within_the_time_of_a_question(
    clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    passed_s = 0.0

    def sleep(pause_s: float) -> None:
        nonlocal passed_s
        passed_s += client.waited[-1] + pause_s

    shared = LogEnds({})
    shared.end("in", 0)
    _, client = clients
    monkeypatch.setattr(machine, "sleep", sleep)
    monkeypatch.setattr(machine, "monotonic", lambda: passed_s)
    client.fails, client.waited = KafkaException(KafkaError(KafkaError._TIMED_OUT)), []
    with pytest.raises(ConnectionError, match="in: "):
        shared.end("in", 0, 4.0)
    assert client.waited[:3] == [0.5, 1.0, 2.0]
    assert sum(client.waited) < 4.5


def test_partitions_are_asked_for_again_while_brokers_start(
    clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    away = [KafkaException(KafkaError(KafkaError._TRANSPORT)) for _ in range(3)]
    now_s = 0.0

    def slept(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    def listed(_topic: str, _wait_s: float) -> Any:
        if away:
            raise away.pop()
        return SimpleNamespace(topics={"in": SimpleNamespace(partitions=[1, 0])})

    monkeypatch.setattr(machine, "sleep", slept)
    monkeypatch.setattr(machine, "monotonic", lambda: now_s)
    shared = LogEnds({})
    for client in clients:
        monkeypatch.setattr(client, "list_topics", listed)
    assert shared.partitions("in", 1.0) == [0, 1]
    away += [KafkaException(KafkaError(KafkaError._TRANSPORT)) for _ in range(99)]
    with pytest.raises(KafkaException):
        shared.partitions("in", 1.0)
    assert now_s < 2.0
    away[:] = [KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))]
    with pytest.raises(KafkaException):
        shared.partitions("in", 1.0)
    assert shared.partitions("in", 1.0) == [0, 1]
