"""A client that asks for offsets answers as librdkafka's consumers do, with one thread for all."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec, module_from_spec
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.errors import GroupAuthorizationFailedError
from aiokafka.protocol.offset import OffsetRequest
from confluent_kafka import (
    OFFSET_END,
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from belfry.kafka import offset_client
from belfry.kafka.offset_client import OffsetClient
from belfry.kafka.offset_requests import OffsetRequests
from belfry.kafka.parallel_client import ParallelClient
from belfry.kafka.shared_client import AWAY
from tests.unit.kafka.mock_cluster import MockCluster

# Seconds for one answer; a busy machine has a part of them.
SOON_S = 10.0
GROUP = "belfry.notes"
Connect = Callable[..., OffsetClient]


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster(3) as found:
        found.create("in", 2, 3)
        for partition in range(2):
            found.lead("in", partition, 1)
        yield found


@pytest.fixture
def connect(cluster: MockCluster) -> Iterator[Connect]:
    made: list[OffsetClient] = []

    def client(**more: Any) -> OffsetClient:
        properties = {"bootstrap.servers": cluster.servers, "group.id": GROUP}
        made.append(OffsetClient(properties | more))
        return made[-1]

    yield client
    for each in made:
        each.close()


def place(partition: int, offset: int = 0, text: str = "") -> TopicPartition:
    return TopicPartition("in", partition, offset, text)


def refused(ask: Callable[[], object]) -> int:
    with pytest.raises(KafkaException) as caught:
        ask()
    return int(caught.value.args[0].code())


def test_it_says_where_a_log_begins_and_ends(cluster: MockCluster, connect: Connect) -> None:
    producer = Producer({"bootstrap.servers": cluster.servers})
    for _ in range(3):
        producer.produce("in", b"value", partition=1)
    assert producer.flush(SOON_S) == 0
    for isolation in ("read_committed", "read_uncommitted"):
        client = connect(**{"isolation.level": isolation})
        assert client.get_watermark_offsets(place(1), SOON_S) == (0, 3)
        assert client.get_watermark_offsets(place(0), SOON_S) == (0, 0)


def test_many_ends_take_one_request_to_each_leader(
    cluster: MockCluster, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer({"bootstrap.servers": cluster.servers})
    producer.produce("in", b"value", partition=1)
    assert producer.flush(SOON_S) == 0
    sent: list[int] = []
    send = AIOKafkaClient.send

    async def counted(self: AIOKafkaClient, node: int, request: Any, **more: Any) -> Any:
        if isinstance(request, OffsetRequest):
            sent.append(node)
        return await send(self, node, request, **more)

    monkeypatch.setattr(AIOKafkaClient, "send", counted)
    client, asked = connect(), [place(0, OFFSET_END), place(1, OFFSET_END)]
    cluster.lead("in", 1, 2)
    client.list_topics("in", SOON_S)
    told = client.offsets_for_times(asked, SOON_S)
    assert [(each.partition, each.offset) for each in told] == [(0, 0), (1, 1)]
    assert sorted(sent) == [1, 2]
    cluster.lead("in", 1, 1)
    client.list_topics("in", SOON_S)
    client.offsets_for_times(asked, SOON_S)
    assert sorted(sent) == [1, 1, 2]


def test_topics_that_are_new_take_one_question_and_one_that_is_not_there_hides_none(
    cluster: MockCluster, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[list[str]] = []
    told = ParallelClient._told

    async def counted(self: ParallelClient, topics: Any) -> Any:
        looks.append(topics)
        return await told(self, topics)

    monkeypatch.setattr(ParallelClient, "_told", counted)
    names = [f"fired.{number:02}" for number in range(40)]
    for name in names:
        cluster.create(name, 1, 1)
    asked = [TopicPartition(name, 0, OFFSET_END) for name in (*names, "gone")]
    found = connect().offsets_for_times(asked, SOON_S)
    assert [each.offset for each in found] == [*[0] * len(names), OFFSET_INVALID]
    assert looks == [[*names, "gone"]]


def test_an_end_alone_is_one_request(
    cluster: MockCluster, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A take-over asks for ends again and again, and for the beginning of a log once or twice."""
    producer = Producer({"bootstrap.servers": cluster.servers})
    producer.produce("in", b"value", partition=1)
    assert producer.flush(SOON_S) == 0
    sent: list[Any] = []
    send = AIOKafkaClient.send

    async def counted(self: AIOKafkaClient, node: int, request: Any, **more: Any) -> Any:
        if isinstance(request, OffsetRequest):
            sent.append(request)
        return await send(self, node, request, **more)

    monkeypatch.setattr(AIOKafkaClient, "send", counted)
    client = connect()
    end = client.get_watermark_offsets(place(1), SOON_S, end_alone=True)
    assert (end, len(sent)) == ((OFFSET_INVALID, 1), 1)
    assert client.get_watermark_offsets(place(1), SOON_S) == (0, 1)
    assert len(sent) == 3
    uncommitted = connect(**{"isolation.level": "read_uncommitted"})
    uncommitted.get_watermark_offsets(place(1), SOON_S, end_alone=True)
    assert [each._isolation_level for each in (sent[0], sent[-1])] == [1, 0]


def test_what_threads_ask_at_once_goes_to_a_broker_together(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends and notes of 16 take-overs are a few requests, and not 48."""
    sent: list[str] = []
    asking, all_ask = 0, asyncio.Event()
    send, ends, committed = (
        AIOKafkaClient.send, OffsetRequests.ends, OffsetRequests.committed
    )  # fmt: skip

    async def held(self: AIOKafkaClient, node: int, request: Any, **more: Any) -> Any:
        sent.append(type(request).__name__)
        await all_ask.wait()
        return await send(self, node, request, **more)

    async def counted(self: OffsetRequests, *given: Any) -> Any:
        nonlocal asking
        asking += 1
        if asking == 32:
            all_ask.set()
        return await (ends if isinstance(given[0], tuple) else committed)(self, *given)

    client = connect()
    client.list_topics("in", SOON_S)
    client.committed([place(0)], SOON_S)
    monkeypatch.setattr(AIOKafkaClient, "send", held)
    monkeypatch.setattr(OffsetRequests, "ends", counted)
    monkeypatch.setattr(OffsetRequests, "committed", counted)
    with ThreadPoolExecutor(32) as threads:
        told = [
            threads.submit(client.get_watermark_offsets, place(number % 2), SOON_S)
            for number in range(16)
        ]
        notes = [
            threads.submit(client.committed, [place(number % 2)], SOON_S) for number in range(16)
        ]
        assert [each.result() for each in told] == [(0, 0)] * 16
        assert [each.result()[0].partition for each in notes] == [0, 1] * 8
    assert sorted(sent) == ["OffsetFetchRequest"] * 2 + ["OffsetRequest"] * 4


def test_an_end_that_an_answer_leaves_out_takes_no_other_away(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = AIOKafkaClient.send

    async def cut(self: AIOKafkaClient, node: int, request: Any, **more: Any) -> Any:
        answer = await send(self, node, request, **more)
        if isinstance(request, OffsetRequest):
            answer.topics = [
                (topic, [row for row in rows if row[0] != 1]) for topic, rows in answer.topics
            ]
        return answer

    client = connect()
    monkeypatch.setattr(AIOKafkaClient, "send", cut)
    wanted = [TopicPartition("in", number, OFFSET_END) for number in range(2)]
    found = client.offsets_for_times(wanted, SOON_S)
    assert [each.offset for each in found] == [0, OFFSET_INVALID]
    assert refused(lambda: client.get_watermark_offsets(place(1), SOON_S)) == KafkaError.UNKNOWN


def test_an_end_that_its_broker_does_not_tell_takes_no_other_away(
    cluster: MockCluster, connect: Connect
) -> None:
    cluster.lead("in", 1, 2)
    client, asked = connect(), [place(0, OFFSET_END), place(1, OFFSET_END)]
    client.list_topics("in", SOON_S)
    cluster.stop(2)
    told = client.offsets_for_times(asked, SOON_S)
    assert [each.offset for each in told] == [0, OFFSET_INVALID]


def test_it_says_which_partitions_there_are_and_makes_no_topic(connect: Connect) -> None:
    """The mock cluster creates topics by itself, for whoever does not forbid it."""
    client = connect()
    assert sorted(client.list_topics("in", SOON_S).topics["in"].partitions) == [0, 1]
    other = TopicPartition("other", 0)
    for _ in range(2):
        assert client.list_topics("other", SOON_S).topics == {}
        code = refused(lambda: client.get_watermark_offsets(other, SOON_S))
        assert code == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_what_a_group_has_committed_is_told_with_its_texts(connect: Connect) -> None:
    told = connect().commit(offsets=[place(0, 7, "seven")], asynchronous=False)
    assert told is not None
    assert [each.error for each in told] == [None]
    found, none = connect().committed([place(0), place(1)], SOON_S)
    assert (found.offset, found.metadata, found.error) == (7, "seven", None)
    assert (none.partition, none.offset) == (1, OFFSET_INVALID)
    (other,) = connect(**{"group.id": "another"}).committed([place(0)], SOON_S)
    assert other.offset == OFFSET_INVALID


def test_a_commit_that_nobody_waits_for_is_heard_within_poll(connect: Connect) -> None:
    heard: list[Any] = []
    client = connect(on_commit=lambda *told: heard.append(told))
    client.commit(offsets=[place(0, 1, "one")], asynchronous=True)
    assert not heard
    client.poll(SOON_S)
    ((error, (told,)),) = heard
    assert (error, told.partition, told.error) == (None, 0, None)
    client.poll(0.01)
    assert len(heard) == 1


def test_a_commit_that_gets_no_answer_is_given_up(cluster: MockCluster, connect: Connect) -> None:
    heard: list[Any] = []
    more = {"on_commit": lambda *told: heard.append(told), "socket.timeout.ms": 300}
    client = connect(**more)
    for broker in (1, 2, 3):
        cluster.stop(broker)
    client.commit(offsets=[place(0, 1, "one")], asynchronous=True)
    client.poll(SOON_S)
    ((error, places),) = heard
    assert error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
    assert places == []
    # The connection may be dead: the next request makes another one.
    assert client._requests._shared is None


def test_a_cluster_that_does_not_answer_is_told_in_time(connect: Connect) -> None:
    client = connect(**{"bootstrap.servers": "127.0.0.1:9"})
    began = time.monotonic()
    code = refused(lambda: client.get_watermark_offsets(place(0), 0.5))
    assert code in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
    # A coordinator is looked for as long as there is time.
    assert refused(lambda: client.committed([place(0)], 0.5)) == KafkaError._TIMED_OUT
    assert time.monotonic() - began < SOON_S


def test_what_a_broker_refuses_is_told_with_its_code(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(*_: Any) -> int:
        raise GroupAuthorizationFailedError

    monkeypatch.setattr(AIOKafkaClient, "coordinator_lookup", look)
    client = connect()
    code = refused(lambda: client.committed([place(0)], SOON_S))
    assert code == KafkaError.GROUP_AUTHORIZATION_FAILED
    assert issubclass(GroupAuthorizationFailedError, AWAY)


def test_a_coordinator_that_has_gone_is_asked_where_it_is_then(
    cluster: MockCluster, connect: Connect
) -> None:
    """A rolling restart moves it: a take-over waits for a moment, and does not begin anew."""
    client = connect()
    cluster.coordinate(GROUP, 1)
    client.commit(offsets=[place(0, 1, "one")], asynchronous=False)
    for former, broker in ((1, 2), (2, 3)):
        cluster.coordinate(GROUP, broker)
        cluster.stop(former)
        (found,) = client.committed([place(0)], SOON_S)
        assert found.metadata == "one"


def test_all_clients_have_one_thread_and_what_is_known_of_brokers(connect: Connect) -> None:
    clients = [connect() for _ in range(8)]
    before = threading.active_count()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda each: each.committed([place(0)], SOON_S), clients))
        assert threading.active_count() <= before + 8 + 1
    assert len({id(each._requests._shared) for each in clients}) == 1


def test_clients_of_another_cluster_know_its_own_brokers(connect: Connect) -> None:
    with MockCluster(1) as other:
        other.create("in", 1, 1)
        here, there = connect(), connect(**{"bootstrap.servers": other.servers})
        assert len(here.list_topics("in", SOON_S).topics["in"].partitions) == 2
        assert len(there.list_topics("in", SOON_S).topics["in"].partitions) == 1
        there.close()


def test_a_closed_client_connects_anew_when_it_is_asked(connect: Connect) -> None:
    client = connect()
    for _ in range(2):
        assert client.get_watermark_offsets(place(0), SOON_S) == (0, 0)
        client.close()


def test_threads_that_ask_first_of_all_at_once_share_one_loop(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a client has opened in one loop is of no use in another one."""
    made: list[asyncio.AbstractEventLoop] = []
    make = asyncio.new_event_loop

    def slowly() -> asyncio.AbstractEventLoop:
        time.sleep(0.1)
        made.append(make())
        return made[-1]

    monkeypatch.setattr(asyncio, "new_event_loop", slowly)
    spec = find_spec(offset_client.__name__)
    assert spec is not None
    assert spec.loader is not None
    anew: Any = module_from_spec(spec)
    spec.loader.exec_module(anew)
    client = anew.OffsetClient({"bootstrap.servers": cluster.servers})
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(client.get_watermark_offsets, place(0), SOON_S) for _ in range(8)]
        assert [each.result() for each in asked] == [(0, 0)] * 8
    client.close()
    assert len(made) == 1
    anew._LOOP.leave()


def test_a_topic_that_may_not_be_seen_is_told_as_such(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers leave it out of what they tell, like one that is not there."""

    update = ClusterMetadata.update_metadata

    def told(self: ClusterMetadata, answer: Any) -> None:
        update(self, answer)
        self.unauthorized_topics = {"secret"}

    client = connect()
    client.list_topics("in", SOON_S)
    monkeypatch.setattr(ClusterMetadata, "update_metadata", told)
    denied = KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert refused(lambda: client.list_topics("secret", SOON_S)) == denied
    secret = TopicPartition("secret", 0)
    assert refused(lambda: client.get_watermark_offsets(secret, SOON_S)) == denied
    assert client.list_topics("other", SOON_S).topics == {}
