"""Topics of dead letters: found where somebody made them, and left alone where they refuse."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # its own re-exports

from belfry.engine.effects import Effects
from belfry.host import machine
from belfry.kafka import librdkafka
from belfry.outputs.letter_topics import PAUSE_S
from belfry.outputs.readiness import Outputs
from belfry.outputs.topic_queue import BATCH_OVERHEAD_BYTES
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from tests.unit.outputs.test_readiness import Cluster

SHOP = "belfry.dead-letters.shop"
BANK = "belfry.dead-letters.bank"
ROOM = 5_000 - BATCH_OVERHEAD_BYTES


class Letters(Cluster):
    """A cluster with these topics, by their leaders; some of them may not be written to."""

    def __init__(self, properties: dict[str, Any]) -> None:
        super().__init__(properties)
        self.leaders = {SHOP: 1, BANK: 1, "belfry.fired.shop": 1, "other.dead-letters.shop": 1}
        self.closed: set[str] = set()

    def list_topics(self, timeout: float) -> Any:
        topics = {
            name: SimpleNamespace(error=None, partitions={0: SimpleNamespace(leader=leader)})
            for name, leader in self.leaders.items()
        }
        return SimpleNamespace(topics=topics, brokers={1: None})

    def describe_topics(self, topics: Any, **_: Any) -> dict[str, Future[Any]]:
        return {name: self._rights(name) for name in topics.topic_names}

    def _rights(self, topic: str) -> Future[Any]:
        answer: Future[Any] = Future()
        rights = set() if topic in self.closed else {AclOperation.WRITE}
        answer.set_result(SimpleNamespace(authorized_operations=rights))
        return answer


class Looked:
    """Outputs of a worker at such a cluster, at instants that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(librdkafka, "AdminClient", Letters)
        self.now_s = 100.0
        monkeypatch.setattr(machine, "monotonic", lambda: self.now_s)
        self.tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
        self.outputs = Outputs(Settings(), self.tenants, None)
        self.cluster: Any = self.outputs._admin

    def at(self, now_s: float) -> Mapping[str, int]:
        """Look; the topics that letters go to from then on."""
        self.now_s = now_s
        self.outputs._view.look(now_s)
        return self.tenants.topics.letters


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Looked:
    return Looked(monkeypatch)


def test_those_that_there_are_get_letters_and_the_cluster_is_asked_about_each_once(
    looked: Looked,
) -> None:
    assert looked.at(100) == {SHOP: ROOM, BANK: ROOM}
    asked = len(looked.cluster.asked)
    assert looked.at(105) == {SHOP: ROOM, BANK: ROOM}
    assert len(looked.cluster.asked) == asked
    del looked.cluster.leaders[BANK]
    assert looked.at(110) == {SHOP: ROOM}


def test_where_belfry_may_not_write_none_are_written_until_it_may(looked: Looked) -> None:
    looked.cluster.closed = {SHOP}
    assert looked.at(100) == {BANK: ROOM}
    looked.cluster.closed = set()
    assert looked.at(100 + PAUSE_S - 1) == {BANK: ROOM}
    assert looked.at(100 + PAUSE_S) == {SHOP: ROOM, BANK: ROOM}


def test_one_that_refuses_a_record_is_left_alone_and_holds_no_tenant(looked: Looked) -> None:
    looked.at(100)
    assert not looked.outputs.hold({SHOP: "not there"})
    assert looked.tenants.topics.letters == {BANK: ROOM}
    assert not looked.tenants.of("shop").held
    assert looked.at(100 + PAUSE_S - 1) == {BANK: ROOM}
    assert looked.at(100 + PAUSE_S) == {SHOP: ROOM, BANK: ROOM}


def test_one_that_a_broker_refuses_without_its_name_is_found(looked: Looked) -> None:
    looked.at(100)
    looked.cluster.closed = {BANK}
    looked.outputs.hold({})
    assert looked.tenants.topics.letters == {SHOP: ROOM}


def test_one_that_refuses_while_a_look_goes_on_stays_out(looked: Looked) -> None:
    looked.at(100)
    looked.cluster.leaders["belfry.dead-letters.new"] = 1
    described = looked.cluster.describe_topics

    def amid(topics: Any, **more: Any) -> Any:
        looked.outputs.hold({SHOP: "refused"})
        return described(topics, **more)

    looked.cluster.describe_topics = amid
    assert looked.at(105) == {BANK: ROOM, "belfry.dead-letters.new": ROOM}


def test_a_leader_that_moves_costs_no_letter_and_one_that_stays_away_no_step(
    looked: Looked,
) -> None:
    looked.at(100)
    looked.cluster.leaders[SHOP] = -1
    assert looked.at(105) == {SHOP: ROOM, BANK: ROOM}
    looked.cluster.leaders[SHOP] = 2
    assert looked.at(110) == {SHOP: ROOM, BANK: ROOM}
    looked.cluster.leaders[SHOP] = -1
    assert looked.at(115) == {SHOP: ROOM, BANK: ROOM}
    assert looked.at(120) == {BANK: ROOM}
    looked.cluster.leaders[SHOP] = 1
    assert looked.at(125) == {SHOP: ROOM, BANK: ROOM}


def test_a_step_with_letters_asks_for_nothing_more(looked: Looked) -> None:
    looked.at(100)
    letter: Any = (SHOP, b"k", b"v", [])
    looked.outputs.prepare(Effects(letters=[letter]))
