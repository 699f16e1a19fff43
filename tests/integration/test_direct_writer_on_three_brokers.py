"""Steps by requests of belfry's own on three brokers: leaders move and brokers die amid a step.

Each step is done as an owner does it: again after a roll-back, and after an unknown end by a new
owner, who looks in the changelog first.  Nothing may be missing or be there twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from confluent_kafka import ElectionType, KafkaException, TopicPartition

from belfry.devstack import Kafka
from belfry.devstack import KafkaNodes as Nodes
from belfry.kafka.outcome import Aborted, Unknown
from belfry.transactions.brokers import BrokerConnections
from belfry.transactions.producer import DirectProducer
from tests.acceptance.harness.site import wait_for
from tests.integration.test_direct_writer import OUTPUTS, PARTITIONS, Place, step

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FIRED: Final = 30
STEPS: Final = 8
READY_S: Final = 120.0
# Of the server: a step has to reach two of three.
SAFE: Final = {"min.insync.replicas": "2"}


class Steps:
    """Does one step after the other, until it is certain that each is there."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.owner = self._owner()
        self.done = 0
        self.ends: list[str] = []

    def some(self, at: str = "", strike: Callable[[], None] = lambda: None) -> None:
        """So many steps; within the third of them, at this point, something strikes."""
        for number in range(STEPS):
            struck = [strike] if number == 2 else []

            def reach(point: str, struck: list[Callable[[], None]] = struck) -> None:
                if point == at and struck:
                    struck.pop()()

            self.place.reach.side_effect = reach
            self._do()

    def _do(self) -> None:
        while True:
            try:
                self.owner.commit(step(self.place, self.done, FIRED))
            except Aborted as error:
                self.ends.append(f"aborted: {error}")
                continue
            except Unknown as error:
                self.ends.append(f"unknown: {error}")
                self.owner.close()
                self.owner = self._owner()
                if self.done not in self.place.manifests():
                    continue
            self.done += 1
            return

    def _owner(self) -> DirectProducer:
        owner = wait_for("an owner", self._try, READY_S)
        assert owner is not None
        return owner

    def _try(self) -> DirectProducer | None:
        try:
            return self.place.owner()
        except Unknown:
            return None


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with Nodes(tmp_path_factory.mktemp("three"), properties=SAFE) as running:
        yield running


def parts(place: Place) -> dict[tuple[str, int], Any]:
    """What a broker says of the changelog's partitions and of those of the outputs."""
    topics = place.admin.list_topics(timeout=10).topics
    names = [place.topic(name) for name in ("changelog", *OUTPUTS)]
    return {
        (name, number): part
        for name in names
        if name in topics
        for number, part in topics[name].partitions.items()
    }


def leaders(place: Place) -> dict[tuple[str, int], int]:
    return {where: part.leader for where, part in parts(place).items()}


def all_in_sync(place: Place) -> bool:
    """Whether three replicas of everything are alike."""
    try:
        found = parts(place)
    except KafkaException:
        return False
    count = PARTITIONS * (1 + len(OUTPUTS))
    return len(found) == count and all(len(part.isrs) == 3 for part in found.values())


def moved_back(place: Place) -> None:
    """Make the preferred replicas lead again: leaders change, and no broker dies."""
    before = leaders(place)
    wanted = [TopicPartition(*where) for where in before]
    place.admin.elect_leaders(ElectionType.PREFERRED, wanted).result(30)
    wait_for("other leaders", lambda: leaders(place) != before)


def node_of(nodes: Nodes, number: int) -> Kafka:
    return nodes.nodes[number - 1]


def noted_words(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What brokers say of who leads now."""
    found: list[tuple[Any, ...]] = []
    tell = BrokerConnections.tell_leader

    def noted(self: BrokerConnections, *word: Any) -> bool:
        found.append(word)
        return tell(self, *word)

    monkeypatch.setattr(BrokerConnections, "tell_leader", noted)
    return found


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_nothing_is_lost_or_doubled_when_leaders_move_and_brokers_die(
    nodes: Nodes, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    if protocol == "v1":

        async def overlooked(_self: BrokerConnections) -> bool:
            return False

        monkeypatch.setattr(BrokerConnections, "gives_own_epochs", overlooked)
    words = noted_words(monkeypatch)
    place = Place(nodes.bootstrap_servers, unique("three"), "lz4", replicas=3)
    wait_for("replicas", lambda: all_in_sync(place), READY_S)
    assert len(set(leaders(place).values())) == 3
    steps = Steps(place)
    steps.some()
    first = node_of(nodes, leaders(place)[place.topic("changelog"), 0])
    steps.some("S4", first.kill)
    first.start().wait_ready(READY_S)
    wait_for("replicas", lambda: all_in_sync(place), READY_S)
    words.clear()
    steps.some("S4", lambda: moved_back(place))
    # A broker that lives and leads no more says who does, in v2 (KIP-951).
    assert bool(words) == (protocol == "v2")
    second = node_of(nodes, leaders(place)[place.topic("a"), 0])
    steps.some("S5", second.kill)
    second.start().wait_ready(READY_S)
    assert place.manifests() == list(range(steps.done)), steps.ends
    keys = sorted(key or b"" for name in OUTPUTS for key in place.keys(name))
    wanted = sorted(b"%d-%d" % (n, each) for n in range(steps.done) for each in range(FIRED))
    assert keys == wanted, steps.ends
    assert steps.done == 4 * STEPS
    place.close()
