"""A step by requests of belfry's own: visible once and whole, or not at all; in both protocols.

Protocol v2 is what the broker offers; for v1 the writer is made to overlook it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from belfry.devstack import Kafka
from belfry.engine.effects import Effects
from belfry.engine.rejected_record import RejectedRecord
from belfry.host.clock import SystemClock
from belfry.kafka.client_loop import ClientLoop
from belfry.kafka.outcome import Aborted, Fenced, Unknown
from belfry.kafka.step_producer import ProducerSurroundings
from belfry.kafka.step_records import OutputTopics
from belfry.kafka.transactions import PartitionProducer
from belfry.transactions.brokers import BrokerConnections
from belfry.transactions.producer import DirectProducer
from belfry.transactions.requests import EndTxn, EndTxnWithEpoch
from belfry.transactions.writer import TransactionWriter
from tests.acceptance.harness.java_tools import tool
from tests.acceptance.harness.site import wait_for

pytestmark = pytest.mark.slow
PARTITIONS = 3
OUTPUTS = ("a", "b")
WAIT_S = 20.0

Record = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]]]


class Place:
    """Topics of one test, and producers of one transactional id."""

    def __init__(self, servers: str, name: str, codec: str, replicas: int = 1) -> None:
        self.servers = servers
        self.replicas = replicas
        self.name = name
        self.loop = ClientLoop("transaction-writer")
        self.reach = MagicMock()
        self.properties = {
            "bootstrap.servers": servers,
            "transactional.id": name,
            "transaction.timeout.ms": 10_000,
            "compression.type": codec,
            "partitioner": "murmur2_random",
            "log_level": 0,
        }
        self.admin = AdminClient({"bootstrap.servers": servers})
        self.create("changelog", "s", "r", "l", "d", *OUTPUTS)
        self._made: list[Any] = []

    def create(self, *names: str, **config: str) -> None:
        new = [
            NewTopic(self.topic(each), PARTITIONS, self.replicas, config=config) for each in names
        ]
        for future in self.admin.create_topics(new).values():
            future.result(WAIT_S)

    def topic(self, name: str) -> str:
        return f"{self.name}.{name}"

    def _around(self) -> ProducerSurroundings:
        topic = self.topic
        output_topics = OutputTopics(
            topic("changelog"), topic("s"), topic("r"), topic("l"), b"", topic("d"), b"",
            lambda _topic: PARTITIONS,
        )  # fmt: skip
        hurts = MagicMock(reach=self.reach, names=lambda _: self.reach.side_effect is not None)
        return ProducerSurroundings(output_topics, SystemClock(), hurts)

    def owner(self) -> DirectProducer:
        """The next owner: it has fenced the one before."""
        made = DirectProducer(self.properties, 0, self._around(), self.loop, 2)
        self._made.append(made)
        made.open()
        return made

    def by_librdkafka(self) -> PartitionProducer:
        made = PartitionProducer(self.properties, 0, self._around())
        self._made.append(made)
        made.open()
        return made

    def read(self, name: str, *, committed: bool = True) -> list[Record]:
        """All that readers find in a topic, partition by partition."""
        found: list[Record] = []
        for message in self.messages(name, committed=committed):
            headers: Any = message.headers() or []
            found.append((message.partition() or 0, message.key(), message.value(), headers))
        return sorted(found, key=lambda record: record[0])

    def messages(self, name: str, *, committed: bool = True) -> list[Message]:
        """The same, as they are met."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "none",
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        topic, found = self.topic(name), list[Message]()
        consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
        ends = 0
        while ends < PARTITIONS:
            message = consumer.poll(WAIT_S)
            assert message is not None
            if message.error() is not None:
                ends += 1
                continue
            found.append(message)
        consumer.close()
        return found

    def keys(self, name: str) -> list[bytes | None]:
        return [record[1] for record in self.read(name)]

    def manifests(self) -> list[int]:
        """Numbers of the steps that are visible, in order."""
        return [int(key[1:]) for key in self.keys("changelog") if key and key[0] == 0]

    def close(self) -> None:
        for made in self._made:
            made.close()


@pytest.fixture(params=["v1", "v2"])
def place(
    request: pytest.FixtureRequest,
    kafka: str,
    unique: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Place]:
    if request.param == "v1":

        async def overlooked(_self: BrokerConnections) -> bool:
            return False

        monkeypatch.setattr(BrokerConnections, "gives_own_epochs", overlooked)
    made = Place(kafka, unique("direct"), "lz4")
    yield made
    made.close()


def test_the_brokers_choose_the_protocol(tmp_path: Path, unique: Callable[[str], str]) -> None:
    """An owner asks when it takes over; one that has begun goes on in its protocol."""
    broker = Kafka(tmp_path / "kafka")
    broker.start()
    try:
        broker.wait_ready(180)
        place = Place(broker.bootstrap_servers, unique("direct"), "none")
        owner = place.owner()
        owner.commit(step(place, 0))
        lower = ["downgrade", "--feature", "transaction.version=1"]
        command = [*tool("kafka-features.sh", tmp_path), "--bootstrap-server", place.servers]
        subprocess.run([*command, *lower], check=True, capture_output=True, timeout=60)
        owner.commit(step(place, 1))
        successor = place.owner()
        successor.commit(step(place, 2))
        successor.commit(step(place, 3))
        assert place.manifests() == [0, 1, 2, 3]
        assert own_epochs(owner)
        assert not own_epochs(successor)
        place.close()
    finally:
        broker.stop()


def writer_of(owner: DirectProducer) -> TransactionWriter:
    """The writer whose turn it is."""
    assert owner._writer is not None
    return owner._writer._turns[0]


def own_epochs(owner: DirectProducer) -> bool:
    return writer_of(owner)._own_epochs


def step(place: Place, number: int, fired: int = 10, topics: tuple[str, ...] = OUTPUTS) -> Effects:
    """So many events, a refused record without a key, two rows and a manifest."""
    events: Any = [
        (place.topic(topics[n % len(topics)]), b"%d-%d" % (number, n), None, b"v", [("h", b"1")])
        for n in range(fired)
    ]
    rows = {b"row-1": b"%d" % number, b"row-2": None, b"\0%d" % number: b"manifest"}
    return Effects(rows=dict(rows), fired=events, rejected=[RejectedRecord(None, b"what", [])])


def test_steps_are_visible_once_and_in_order(place: Place) -> None:
    owner = place.owner()
    receipts = [owner.commit(step(place, number)) for number in range(5)]
    keys = sorted([*place.keys("a"), *place.keys("b")], key=str)
    assert keys == sorted((b"%d-%d" % (n, each) for n in range(5) for each in range(10)), key=str)
    changelog = place.read("changelog")
    assert {record[0] for record in changelog} == {0}
    rows = [key for n in range(5) for key in (b"row-1", b"row-2", b"\0%d" % n)]
    assert [record[1] for record in changelog] == rows
    places = [receipt.next_offset for receipt in receipts]
    # Three rows each; the marker of a step lies in front of the next step's rows, or behind them.
    assert {behind - before for before, behind in pairwise(places)} <= {3, 4, 5}
    assert all(receipt.sent_ms <= receipt.acknowledged_ms for receipt in receipts)
    assert len(place.read("r")) == 5
    assert place.read("a")[0][3] == [("h", b"1")]


def test_both_writers_put_a_key_into_the_same_partition(place: Place) -> None:
    other = place.by_librdkafka()
    other.commit(step(place, 0, fired=40))
    before = {(key, where) for where, key, *_ in place.read("a")}
    place.owner().commit(step(place, 0, fired=40))
    after = [(key, where) for where, key, *_ in place.read("a")]
    assert set(after) == before
    assert len(after) == 2 * len(before)


def test_each_writer_fences_the_other(place: Place) -> None:
    direct = place.owner()
    direct.commit(step(place, 0))
    other = place.by_librdkafka()
    with pytest.raises(Fenced):
        direct.commit(step(place, 1))
    other.commit(step(place, 2))
    again = place.owner()
    with pytest.raises(Fenced):
        other.commit(step(place, 3))
    again.commit(step(place, 4))
    assert place.manifests() == [0, 2, 4]


def test_what_a_fenced_owner_left_open_is_rolled_back(place: Place) -> None:
    former = place.owner()
    successors: list[DirectProducer] = []

    def reach(failpoint: str) -> None:
        if failpoint == "S5" and not successors:
            successors.append(place.owner())

    place.reach.side_effect = reach
    with pytest.raises(Fenced):
        former.commit(step(place, 1))
    successors[0].commit(step(place, 2))
    assert b"\x001" not in place.keys("changelog")
    assert b"\x002" in place.keys("changelog")


def test_an_end_that_comes_late_ends_nothing_of_the_next_transaction(place: Place) -> None:
    """In v2 an end carries the epoch of its own transaction, which is over."""
    owner = place.owner()
    if not own_epochs(owner):
        # Protocol v1 has one epoch for all transactions: no end is ever repeated there.
        return
    writer = writer_of(owner)
    owner.commit(step(place, 0))
    late = writer.writer
    # The other id's turn, this one's in the epoch that is late then, and the other one's.
    for number in (1, 2, 3):
        owner.commit(step(place, number))
    told: list[int] = []

    def reach(failpoint: str) -> None:
        if failpoint == "S5":
            assert owner._cluster is not None
            assert writer._coordination._node is not None
            end = EndTxnWithEpoch(place.name, late, commit=False)
            told.append(
                place.loop.run(owner._cluster.send(writer._coordination._node, end), 10).error_code
            )

    place.reach.side_effect = reach
    owner.commit(step(place, 4))
    assert told[0] in (47, 90)
    assert b"\x004" in place.keys("changelog")


def test_a_step_is_rolled_back_where_a_topic_takes_no_such_record(place: Place) -> None:
    place.create("small", **{"max.message.bytes": "300"})
    owner = place.owner()
    owner.commit(step(place, 0))
    effects = step(place, 1)
    large: Any = (place.topic("small"), b"k", None, bytes(range(250)) * 4, [])
    effects.fired.append(large)
    with pytest.raises(Aborted) as raised:
        owner.commit(effects)
    assert list(raised.value.topics) == [place.topic("small")]
    assert "MESSAGE_TOO_LARGE" in raised.value.topics[place.topic("small")]
    owner.commit(step(place, 2))
    assert place.manifests() == [0, 2]


def test_a_topic_of_small_batches_gets_smaller_ones(place: Place) -> None:
    place.create("small", **{"max.message.bytes": "2000", "compression.type": "producer"})
    owner = place.owner()
    effects = step(place, 0)
    many: Any = [
        (place.topic("small"), b"%d" % each, None, str(hash((each, "x"))).encode() * 20, [])
        for each in range(60)
    ]
    effects.fired += many
    for _ in range(12):
        try:
            owner.commit(effects)
        except Aborted as aborted:
            assert aborted.topics == {}  # noqa: PT017  # it is tried again
        else:
            break
    # A reader may meet an end before the marker of the transaction is everywhere.
    wait_for("the records", lambda: len(place.keys("small")) >= 60)
    assert sorted(place.keys("small"), key=str) == sorted((b"%d" % n for n in range(60)), key=str)


def test_a_topic_that_is_gone_is_named(place: Place) -> None:
    owner = place.owner()
    owner.commit(step(place, 0))
    place.admin.delete_topics([place.topic("b")])[place.topic("b")].result(WAIT_S)
    wait_for(
        "the deletion", lambda: place.topic("b") not in place.admin.list_topics(timeout=5).topics
    )
    with pytest.raises(Aborted) as raised:
        owner.commit(step(place, 1))
    assert list(raised.value.topics) == [place.topic("b")]
    owner.commit(step(place, 2, topics=("a",)))
    assert place.manifests() == [0, 2]


def test_a_step_larger_than_a_request_is_whole(place: Place) -> None:
    owner = place.owner()
    effects = step(place, 0, fired=0)
    effects.rows = {b"row-%d" % n: n.to_bytes(4, "big") * 5_000 for n in range(600)}
    effects.rows[b"\0"] = b"manifest"
    owner._codec = 0
    receipt = owner.commit(effects)
    assert receipt.next_offset == 601
    assert place.keys("changelog") == list(effects.rows)
    owner.commit(step(place, 1))
    assert place.keys("changelog")[-1] == b"\x001"


def test_a_lost_connection_costs_nothing(place: Place) -> None:
    """What may have been appended is sent again with its sequence, and is there once."""
    owner = place.owner()
    owner.commit(step(place, 0))
    cluster = owner._cluster
    assert cluster is not None
    send: Any = cluster._client.send
    lost: list[Any] = []

    async def losing(node: int, request: Any, **more: Any) -> Any:
        answer = await send(node, request, **more)
        if type(request).__name__.startswith("Produce") and len(lost) < 3:
            lost.append(request)
            raise ConnectionError("cut")
        return answer

    cluster._client.send = losing
    receipt = owner.commit(step(place, 1))
    assert len(lost) == 3
    # The marker of the step before comes before these rows, or after them: nobody waits for it.
    assert receipt.next_offset == 1 + max(at.offset() or 0 for at in place.messages("changelog"))
    owner.commit(step(place, 2))
    assert len(place.keys("a")) + len(place.keys("b")) == 30


def test_an_end_without_an_answer(place: Place) -> None:
    """v2 repeats it; in v1 nobody may, so the partition is taken over anew, which tells."""
    owner = place.owner()
    cluster = owner._cluster
    assert cluster is not None
    send: Any = cluster._client.send
    lost: list[Any] = []

    async def losing(node: int, request: Any, **more: Any) -> Any:
        answer = await send(node, request, **more)
        if isinstance(request, EndTxn | EndTxnWithEpoch) and not lost:
            lost.append(request)
            raise ConnectionError("cut")
        return answer

    cluster._client.send = losing
    if own_epochs(owner):
        owner.commit(step(place, 0))
    else:
        with pytest.raises(Unknown):
            owner.commit(step(place, 0))
        owner.close()
        owner = place.owner()
    owner.commit(step(place, 1))
    assert place.manifests() == [0, 1]
