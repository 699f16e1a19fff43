"""What a writer is told of the brokers: who leads, who coordinates, and what is lost."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import CoordinatorNotAvailableError, NodeNotReadyError, RequestTimedOutError
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.structs import TopicPartition

from belfry.kafka import shared_client
from belfry.kafka.broker_features import TRANSACTION
from belfry.kafka.coordinator_requests import FindCoordinators
from belfry.kafka.gathered_requests import GatheredRequests
from belfry.kafka.moved_leaders import MovedLeaders
from belfry.kafka.shared_client import SharedClient
from belfry.kafka.transactions import PartitionProducer
from belfry.settings import Settings
from belfry.transactions import brokers, choosing
from belfry.transactions.brokers import BrokerConnections, Lost
from belfry.transactions.producer import DirectProducer

GROUP = 107


class Client:
    """aiokafka's client, which knows of the topics that were asked for often enough."""

    def __init__(self) -> None:
        self.leaders: dict[TopicPartition, int] = {}
        self.cluster = SimpleNamespace(
            _partitions={},
            leader_for_partition=self.leaders.get,
            broker_metadata=lambda node: node if node in (1, 2, 3) else None,
        )
        self.sent: list[tuple[int, Any, int]] = []
        self.fails: Exception | None = None
        self.asked_for: list[Any] = []
        # A broker before 3.0, and the code of the error by which coordinators are not told.
        self.old, self.code = False, 0

    def get_random_node(self) -> int:
        """One of the nodes."""
        return 4

    async def send(self, node: int, request: Any, *, group: int = 0) -> Any:
        """The answer, or an error."""
        if isinstance(request, FindCoordinators | FindCoordinatorRequest):
            return await self.coordinators(node, request)
        self.sent.append((node, request, group))
        if self.fails is not None:
            raise self.fails
        return "answer"

    async def coordinators(self, node: int, request: Any) -> Any:
        """Who coordinates, of one id or of several, or an error."""
        names = getattr(request, "_names", None)
        if self.old and names is not None:
            raise NotImplementedError("v4")
        self.asked_for.append((node, names or request._coordinator_key))
        await asyncio.sleep(0)
        if self.fails is not None:
            raise self.fails
        told = -1 if self.code else 2
        if names is None:
            return SimpleNamespace(coordinator_id=told, error_code=self.code)
        rows: list[Any] = [(name, told, "host", 9092, self.code, None, {}) for name in names]
        return SimpleNamespace(coordinators=rows)

    def put_leader(self, where: tuple[str, int], leader: int) -> None:
        """Note who leads."""
        self.leaders[TopicPartition(*where)] = leader


class Shared:
    """What all connections share; each look makes the next topics known."""

    def __init__(self) -> None:
        self.client = Client()
        self.moved = MovedLeaders()
        self.becomes_known: list[set[str]] = []
        self.looks: list[set[str]] = []
        self.forgotten: set[str] = set()
        # So many looks come to nothing, for no broker answers.
        self.silent = 0
        self.takes_s = 0.0
        self._levels: Any = GatheredRequests(
            lambda *given: SharedClient._levels_of(self, *given)  # type: ignore[arg-type]
        )

        self._coordinators: Any = GatheredRequests(
            lambda *given: SharedClient._coordinators_by(self, *given)  # type: ignore[arg-type]
        )

    def level(self, feature: str) -> Any:
        """What the real one says."""
        return SharedClient.level(self, feature)  # type: ignore[arg-type]

    def coordinator_of(self, name: str) -> Any:
        """What the real one says."""
        return SharedClient.coordinator_of(self, name)  # type: ignore[arg-type]

    def enter(self) -> int:
        """The number of these connections."""
        return GROUP

    async def refresh(self, topics: Any = ()) -> bool:
        """Learn; whether a broker answered."""
        self.looks.append({*topics})
        await asyncio.sleep(self.takes_s)
        if self.silent:
            self.silent -= 1
            return False
        known = self.becomes_known.pop(0) if self.becomes_known else set[str]()
        self.client.cluster._partitions.update({topic: {0, 1} for topic in known})
        return True

    def forget(self, topics: Any) -> None:
        """Ask for them no more."""
        self.forgotten |= topics


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Shared:
    found = Shared()
    monkeypatch.setattr(brokers, "shared", lambda _properties: found)
    monkeypatch.setattr(brokers, "LOOK_S", 0.001)
    return found


async def test_a_request_goes_over_the_writers_own_connection(shared: Shared) -> None:
    assert await BrokerConnections({}).send(3, "request") == "answer"
    assert shared.client.sent == [(3, "request", GROUP)]


@pytest.mark.parametrize(
    ("error", "sent"),
    [(NodeNotReadyError("away"), False), (RequestTimedOutError("late"), True), (OSError(), True)],
)
async def test_what_has_not_left_is_told_from_what_may_have_been_carried_out(
    shared: Shared, error: Exception, sent: bool
) -> None:
    """Nobody repeats an end of protocol v1 that a broker may have got."""
    shared.client.fails = error
    with pytest.raises(Lost) as lost:
        await BrokerConnections({}).send(3, "request")
    assert lost.value.sent is sent


async def test_a_coordinator_is_asked_for_by_its_transactional_id(shared: Shared) -> None:
    connections = BrokerConnections({})
    assert await connections.coordinator_of("belfry.1") == 2
    assert await connections.coordinator_of("belfry.1", 3) == 2
    assert shared.client.asked_for == [(4, ["belfry.1"]), (3, "belfry.1")]


@pytest.mark.parametrize("old", [False, True])
async def test_coordinators_of_all_partitions_are_asked_for_together(
    shared: Shared, old: bool
) -> None:
    """Before brokers of 3.0 each is asked for alone."""
    shared.client.old = old
    names = [f"belfry.{number}" for number in range(64)]
    made = [BrokerConnections({}) for _ in names]
    told = await asyncio.gather(
        *(each.coordinator_of(name) for each, name in zip(made, names, strict=True))
    )
    assert told == [2] * 64
    assert shared.client.asked_for == ([(4, name) for name in names] if old else [(4, names)])


@pytest.mark.parametrize("informed", [None, 3])
async def test_a_coordinator_that_is_not_told_has_an_error_or_is_lost(
    shared: Shared, monkeypatch: pytest.MonkeyPatch, informed: int | None
) -> None:
    connections = BrokerConnections({})
    shared.client.code = CoordinatorNotAvailableError.errno
    assert await connections.coordinator_of("belfry.1", informed) == (None, 15)
    for error in (ConnectionRefusedError(111, "refused"), TimeoutError(), KeyError("a node")):
        shared.client.fails = error
        with pytest.raises(Lost):
            await connections.coordinator_of("belfry.1", informed)

    async def never(*_: Any) -> None:
        await asyncio.sleep(60)

    shared.client.coordinators = never  # type: ignore[method-assign,assignment]
    monkeypatch.setattr(brokers, "METADATA_S", 0.01)
    with pytest.raises(Lost):
        await connections.coordinator_of("belfry.1", informed)


async def test_without_a_broker_that_is_known_a_coordinator_is_lost(shared: Shared) -> None:
    shared.client.get_random_node = lambda: None  # type: ignore[method-assign,assignment,return-value]
    with pytest.raises(Lost):
        await BrokerConnections({}).coordinator_of("belfry.1")


@pytest.mark.parametrize(("told", "leader"), [(None, None), (-1, None), (0, 0), (1, 1)])
def test_a_partition_that_nobody_leads_has_no_leader(
    shared: Shared, told: int | None, leader: int | None
) -> None:
    if told is not None:
        shared.client.leaders[TopicPartition("fired", 1)] = told
    shared.client.leaders[TopicPartition("fired", 0)] = 9
    assert BrokerConnections({}).leader_of(("fired", 1)) == leader


async def test_a_leader_that_was_told_counts_for_all_writers_whatever_is_asked_meanwhile(
    shared: Shared,
) -> None:
    where, one, other = ("fired", 0), BrokerConnections({}), BrokerConnections({})
    shared.client.leaders[TopicPartition(*where)] = 2
    assert one.tell_leader(where, 3, 8)
    # Also once its time is up, unless it is asked anew.
    assert shared.client.leaders[TopicPartition(*where)] == 3
    shared.client.leaders[TopicPartition(*where)] = 2
    assert (one.leader_of(where), other.leader_of(where), other.is_told(where)) == (3, 3, True)
    assert not other.tell_leader(where, 2, 7)
    other.doubt(where, 2)
    assert one.is_told(where), "an answer of the former leader got lost"
    other.doubt(where, 3)
    assert (one.leader_of(where), one.is_told(where)) == (2, False)


async def test_a_leader_that_is_not_known_is_not_sent_to(shared: Shared) -> None:
    connections = BrokerConnections({})
    assert not connections.tell_leader(("fired", 0), 9, 8)
    assert not connections.is_told(("fired", 0))


async def test_a_leader_whose_follower_is_not_known_is_asked_no_more(shared: Shared) -> None:
    where, connections = ("fired", 0), BrokerConnections({})
    assert connections.tell_leader(where, 3, 8)
    assert not connections.tell_leader(where, 9, 8)
    assert connections.is_told(where)
    assert not connections.tell_leader(where, 9, 9)
    assert not connections.is_told(where)


@pytest.mark.parametrize(("level", "own"), [(None, False), (1, False), (2, True), (3, True)])
async def test_epochs_are_each_transactions_own_from_level_2_on(
    shared: Shared, monkeypatch: pytest.MonkeyPatch, level: int | None, own: bool
) -> None:
    async def features(client: Any, node: int) -> Any:
        assert (client, node) == (shared.client, 4)
        return SimpleNamespace(finalized={} if level is None else {TRANSACTION: level})

    monkeypatch.setattr(shared_client, "ask_features", features)
    assert await BrokerConnections({}).gives_own_epochs() is own


async def test_brokers_that_tell_no_features_are_not_taken_for_old_ones(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def features(_client: Any, _node: int) -> str:
        return "no answer"

    monkeypatch.setattr(shared_client, "ask_features", features)
    with pytest.raises(ConnectionError, match="do not tell their features: no answer"):
        await BrokerConnections({}).gives_own_epochs()


async def test_new_topics_are_asked_for_until_they_are_known(shared: Shared) -> None:
    shared.becomes_known = [{"a"}, set(), {"b"}]
    await BrokerConnections({}).know(["a", "b"])
    assert shared.looks == [{"a", "b"}, {"b"}, {"b"}]
    assert not shared.forgotten


async def test_topics_that_stay_unknown_are_not_asked_for_for_ever(shared: Shared) -> None:
    shared.becomes_known = [{"a"}]
    connections = BrokerConnections({})
    # However long a look takes on a busy machine, there is time for another one.
    await connections.know(["a", "gone"], 0.2)
    assert len(shared.looks) > 1
    assert shared.forgotten == {"gone"}
    assert (connections.partitions_of("a"), connections.partitions_of("gone")) == (2, 0)


async def test_a_topic_that_no_broker_tells_of_is_not_taken_for_gone(shared: Shared) -> None:
    """Its tenant would be held, and its requests refused, while the topic is there."""
    shared.silent = 1_000_000
    with pytest.raises(Lost, match="no broker tells of fired") as lost:
        await BrokerConnections({}).know(["fired"], 0.02)
    assert not lost.value.sent
    assert shared.forgotten == {"fired"}


async def test_a_topic_is_missed_for_as_long_as_brokers_answer(shared: Shared) -> None:
    """The first answer may be that of a broker that does not know the topic yet."""
    shared.silent = 2
    shared.becomes_known = [set(), {"new"}]
    await BrokerConnections({}).know(["new"], 0.5)
    assert len(shared.looks) == 4
    shared.takes_s, shared.becomes_known = 0.05, [set(), {"late"}]
    connections = BrokerConnections({})
    # The time is over before the first answer comes.
    await connections.know(["late"], 0.02)
    assert connections.partitions_of("late") == 2


def test_settings_choose_the_writer_and_how_many_ids_take_turns() -> None:
    direct: Any = choosing.producers(Settings(transaction_writer="direct", transactional_ids=1))
    assert direct.func is DirectProducer
    assert direct.keywords["in_turn"] == 1
    assert direct.keywords["loop"]._name == "transaction-writer"
    assert choosing.producers(Settings(transaction_writer="librdkafka")) is PartitionProducer
