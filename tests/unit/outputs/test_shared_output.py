"""The topic that tenants share: one of them costs no more than a name, and holds nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.effects import Effects
from belfry.kafka import librdkafka
from belfry.kafka.outcome import Aborted
from belfry.outputs.readiness import BLOCKED, Outputs
from belfry.outputs.topic_queue import BATCH_OVERHEAD_BYTES, TO_MAKE
from belfry.registry.answers import RegistryError
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from tests.unit.outputs.test_envelopes import REFUSED, Cluster, FakeRegistry

SHARED = "belfry.fired"
ROOM = 1_048_588 - BATCH_OVERHEAD_BYTES


class Asked(Cluster):
    """A cluster that counts what it is asked, and may refuse to let belfry write."""

    def __init__(self, properties: dict[str, Any]) -> None:
        super().__init__(properties)
        self.names = [SHARED]
        self.asked = 0
        self.may_write = True

    def describe_configs(self, resources: list[Any]) -> Any:
        self.asked += 1
        return super().describe_configs(resources)

    def describe_topics(self, topics: Any, **more: Any) -> Any:
        self.asked += 1
        found = super().describe_topics(topics, **more)
        for each in found.values():
            each.result().authorized_operations = None if self.may_write else set()
        return found


class Sharing:
    """Output topics of a belfry whose tenants all share one; those named `e…` have envelopes."""

    def __init__(self) -> None:
        self.registry = FakeRegistry()
        given: Any = self.registry
        self.tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
        self.tenants.effective_of = self.effective_of
        self.outputs = Outputs(Settings(), self.tenants, given)
        self.cluster: Any = self.outputs._admin
        self.outputs._view.look(0.0)

    def effective_of(self, name: str) -> EffectivePolicy:
        delivery: Any = "ENVELOPE" if name.startswith("e") else "PAYLOAD"
        return EffectivePolicy(TenantPolicy(name, output="SHARED", delivery=delivery))

    def fires(self, *names: str) -> None:
        """A step keeps and fires an event of each that is not held; Aborted where it cannot be."""
        found = Effects(tenants=set(names))
        for tenant in map(self.tenants.of, names):
            if not tenant.stopped:
                found.fired.append((tenant.topic, b"k", None, b"v", []))
        self.outputs.prepare(found)

    def held(self, *names: str) -> list[str]:
        """Why each of these waits."""
        return [self.tenants.of(name).held for name in names]

    def pauses_end(self) -> None:
        """What the thread does when it is time to try again."""
        retry = self.outputs._state._retry
        self.outputs._make_ready(list(retry))


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Sharing:
    monkeypatch.setattr(librdkafka, "AdminClient", Asked)
    return Sharing()


def test_who_joins_costs_no_question_and_no_look_at_the_others(site: Sharing) -> None:
    """Not even a snapshot of its own: a hundred thousand of them may come one by one."""
    site.fires("first")
    asked, snapshot = site.cluster.asked, site.tenants.snapshot
    for number in range(200):
        site.fires(f"t{number}")
        assert site.tenants.of(f"t{number}").max_record_bytes == ROOM
    assert site.cluster.asked == asked
    assert site.tenants.snapshot is snapshot


def test_a_registry_that_refuses_one_of_them_holds_that_one_alone(site: Sharing) -> None:
    site.registry.errors = {"belfry.fired-value": REFUSED}
    site.fires("calm", "e1")
    assert site.held("calm", "e1") == ["", str(REFUSED)]
    for _ in range(3):
        site.fires("calm", "e1")
        site.fires("new")
    assert site.held("calm", "e1", "new") == ["", str(REFUSED), ""]
    errors: dict[str, RegistryError] = {}
    site.registry.errors = errors
    site.outputs._state._retry = {"e1": (0.0, 1.0)}
    site.pauses_end()
    site.fires("calm", "e1")
    assert site.held("e1") == [""]


def test_a_policy_of_one_of_them_makes_no_step_look_again(site: Sharing) -> None:
    site.fires("a", "b")
    site.outputs.apply(site.effective_of("b"))
    assert site.outputs._state.covers({SHARED}, {"a", "b"})


def test_what_the_topic_refuses_holds_all_of_them_and_who_comes_later(site: Sharing) -> None:
    site.fires("a", "b")
    site.cluster.may_write = False
    assert site.outputs.hold({})
    assert site.held("a", "b") == [BLOCKED, BLOCKED]
    with pytest.raises(Aborted) as caught:
        site.fires("late")
    assert caught.value.topics == {SHARED: BLOCKED}
    assert site.held("late") == [BLOCKED]
    site.cluster.may_write = True
    site.pauses_end()
    assert site.held("a", "b", "late") == ["", "", ""]
    site.fires("a", "b", "late", "later")


def test_it_is_made_once_for_all_of_them(site: Sharing) -> None:
    site.cluster.names = []
    site.outputs._view.look(0.0)
    site.outputs.prepare(Effects(tenants={"a", "b"}))
    assert site.held("a", "b") == [TO_MAKE, TO_MAKE]
    site.cluster.names = [SHARED]
    site.outputs._maker.make_some()
    site.fires("a", "b", "c")
    assert site.held("a", "b", "c") == ["", "", ""]


def test_an_event_to_a_topic_that_is_gone_is_rolled_back_and_waits(site: Sharing) -> None:
    site.fires("a")
    site.cluster.names = []
    site.outputs._view.look(0.0)
    with pytest.raises(Aborted) as caught:
        site.outputs.prepare(Effects(fired=[(SHARED, b"a/k", None, b"v", [])]))
    assert caught.value.topics == {SHARED: "not there"}
    assert site.outputs.hold(caught.value.topics)
    assert site.held("a") == ["not there"]
