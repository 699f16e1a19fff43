"""What is asked of the cluster about thousands of output topics."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.engine.effects import Effects
from belfry.schedules.policy import TenantPolicy
from belfry.schedules.tenant import Delivery, Level, Terms
from belfry.schedules.tenants import Tenants
from belfry.settings import Settings
from belfry.worker import outputs
from belfry.worker.outcome import Aborted, TopicGone
from belfry.worker.outputs import BATCH_OVERHEAD_BYTES, TOPICS_AT_ONCE, Outputs
from tests.unit.engine.driver import HOUR, T0, Driver

TOPICS = 2 * TOPICS_AT_ONCE + 1
SLOW = "belfry.fired.tenant-7"


class Cluster:
    """An admin client of a cluster with many topics, one of which is never described in time."""

    def __init__(self, _properties: dict[str, Any]) -> None:
        self.asked: list[int] = []

    def list_topics(self, timeout: float) -> Any:
        assert timeout > 0
        leader = SimpleNamespace(leader=1)
        names = [f"belfry.fired.tenant-{number}" for number in range(TOPICS)]
        topic = SimpleNamespace(error=None, partitions={0: leader})
        return SimpleNamespace(topics=dict.fromkeys(names, topic))

    def describe_configs(self, resources: list[Any]) -> dict[Any, Future[Any]]:
        self.asked.append(len(resources))
        return {resource: self._described(resource.name) for resource in resources}

    def _described(self, topic: str) -> Future[Any]:
        answer: Future[Any] = Future()
        if topic == SLOW:
            answer.set_exception(TimeoutError())
        else:
            answer.set_result({"max.message.bytes": SimpleNamespace(value="5000")})
        return answer


def test_thousands_of_topics_are_described_some_at_a_time_and_a_slow_one_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outputs, "AdminClient", Cluster)
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    tenants.of("tenant-1000")
    before = tenants.of("tenant-7").max_record_bytes
    found = Outputs(Settings(), tenants, None)
    found._look()
    asked = found._admin.asked  # type: ignore[attr-defined]
    assert sum(asked) == TOPICS
    assert max(asked) <= TOPICS_AT_ONCE
    assert tenants.of("tenant-1000").max_record_bytes == 5_000 - BATCH_OVERHEAD_BYTES
    assert tenants.of("tenant-7").max_record_bytes == before


class Silent(Cluster):
    """A cluster that tells of no topic in time."""

    def list_topics(self, timeout: float) -> Any:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, "no answer"))

    def describe_topics(self, topics: Any, **_: Any) -> dict[str, Future[Any]]:
        return {}


def test_a_cluster_that_does_not_tell_of_its_brokers_holds_whose_topic_is_to_be_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outputs, "AdminClient", Silent)
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    found = Outputs(Settings(), tenants, None)
    found.treat(Terms(TenantPolicy("new", output_topic="elsewhere", paused=True)))
    assert tenants.of("new").paused
    assert tenants.of("new").held == "no answer"
    found.prepare(Effects(tenants={"new"}))
    with pytest.raises(Aborted):
        found.prepare(Effects(fired=[("elsewhere", b"k", None, b"v", [])]))


class Taken(Cluster):
    """A cluster in which another worker makes `a.b` just before this one asks for `a_b`."""

    names: tuple[str, ...] = ()

    def list_topics(self, timeout: float) -> Any:
        assert timeout > 0
        leader = SimpleNamespace(leader=1)
        topic = SimpleNamespace(error=None, partitions={0: leader})
        return SimpleNamespace(topics=dict.fromkeys(self.names, topic), brokers={1: leader})

    def create_topics(self, new: list[Any], **_: Any) -> dict[str, Future[Any]]:
        Taken.names = ("belfry.fired.a.b",)
        refused: Future[Any] = Future()
        refused.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_EXCEPTION, "collides")))
        return {topic.topic: refused for topic in new}


def test_of_two_tenants_that_ask_at_once_kafka_says_whose_the_name_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The step that accepted the other one is rolled back, and its request refused then."""
    monkeypatch.setattr(outputs, "AdminClient", Taken)
    driver = Driver()
    found = Outputs(Settings(), driver.tenants, None)
    driver.ask(tenant="a_b", at=T0 + HOUR)
    effects = driver.engine.accept(driver.batch(), T0)
    assert [str(each.outcome) for each in effects.lifecycle] == ["ACCEPTED"]
    with pytest.raises(Aborted, match=r"'a_b': 'a\.b'"):
        found.prepare(effects)
    driver.engine.aborted()
    step = driver.step(T0)
    assert step.codes == ["tenant_collides"]
    found.prepare(step.effects)


def test_a_topic_that_was_deleted_is_told_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that found it there may meet the look that misses it."""
    monkeypatch.setattr(outputs, "AdminClient", Cluster)
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    found = Outputs(Settings(), tenants, None)
    with pytest.raises(TopicGone, match=r"belfry\.fired\.doomed is not there any more"):
        found.partitions_of("belfry.fired.doomed")


def test_a_step_that_fires_to_a_topic_that_cannot_be_made_is_rolled_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its tenant was not held before: that it is now is found out for this very step."""
    monkeypatch.setattr(outputs, "AdminClient", Taken)
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    found = Outputs(Settings(), tenants, None)
    assert not tenants.of("a_b").held
    with pytest.raises(Aborted) as aborted:
        found.prepare(Effects(fired=[("belfry.fired.a_b", b"k", None, b"v", [])]))
    assert aborted.value.topics == {"belfry.fired.a_b": "not there"}
    assert tenants.of("a_b").held
