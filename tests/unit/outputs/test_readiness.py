"""What is asked of the cluster about thousands of output topics."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.engine.effects import Effects
from belfry.host import machine
from belfry.kafka import librdkafka
from belfry.kafka.outcome import Aborted, TopicGone
from belfry.outputs.readiness import Outputs
from belfry.outputs.topic_queue import (
    AT_ONCE,
    BATCH_OVERHEAD_BYTES,
    CROWDED_OUT,
    TO_MAKE,
    TOPICS_AT_ONCE,
    TopicQueue,
)
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
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
    monkeypatch.setattr(librdkafka, "AdminClient", Cluster)
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    tenants.of("tenant-1000")
    before = tenants.of("tenant-7").max_record_bytes
    found = Outputs(Settings(), tenants, None)
    found._view.look(0.0)
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
    monkeypatch.setattr(librdkafka, "AdminClient", Silent)
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    found = Outputs(Settings(), tenants, None)
    found.apply(EffectivePolicy(TenantPolicy("new", output_topic="elsewhere", paused=True)))
    assert tenants.of("new").paused
    assert tenants.of("new").held == TO_MAKE
    with pytest.raises(KafkaException):
        found._maker.make_some()
    assert tenants.of("new").held == "no answer"
    found.prepare(Effects(tenants={"new"}))
    with pytest.raises(Aborted):
        found.prepare(Effects(fired=[("elsewhere", b"k", None, b"v", [])]))


@pytest.mark.parametrize("topic", ["belfry.tenants", "belfry.fired.victim"])
def test_no_step_that_fires_to_a_reserved_topic_is_written(
    monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    """Even where the directory gave a tenant such a topic, which it never does."""
    monkeypatch.setattr(librdkafka, "AdminClient", Cluster)
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    found = Outputs(Settings(), tenants, None)
    monkeypatch.setattr(tenants, "on", lambda _: [SimpleNamespace(name="a", topic=topic, held="")])
    monkeypatch.setattr(found, "_make_ready", lambda _: None)
    with pytest.raises(Aborted) as caught:
        found.prepare(Effects(fired=[(topic, b"k", None, b"v", [])]))
    assert "is reserved" in caught.value.topics[topic]


class Made(Cluster):
    """A cluster that makes what it is asked for; `requests` says what was asked for together."""

    def __init__(self, properties: dict[str, Any]) -> None:
        super().__init__(properties)
        self.names: dict[str, None] = {}
        self.requests: list[list[str]] = []

    def list_topics(self, timeout: float) -> Any:
        assert timeout > 0
        leader = SimpleNamespace(leader=1)
        topic = SimpleNamespace(error=None, partitions={0: leader})
        return SimpleNamespace(topics=dict.fromkeys(self.names, topic), brokers={1: leader})

    def create_topics(self, new: list[Any], **_: Any) -> dict[str, Future[Any]]:
        self.requests.append([topic.topic for topic in new])
        self.names |= dict.fromkeys(self.requests[-1])
        done: Future[Any] = Future()
        done.set_result(None)
        return {topic.topic: done for topic in new}

    def describe_topics(self, topics: Any, **_: Any) -> dict[str, Future[Any]]:
        return {}


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
    """What was accepted before that waits, with the reason; nothing more is accepted."""
    monkeypatch.setattr(librdkafka, "AdminClient", Taken)
    monkeypatch.setattr(Taken, "names", ())
    driver = Driver()
    found = Outputs(Settings(), driver.tenants, None)
    driver.ask(tenant="a_b", at=T0 + HOUR)
    found.prepare(driver.step(T0).effects)
    found._maker.make_some()
    assert driver.tenants.of("a_b").held == "collides"
    driver.ask(tenant="a_b", at=T0 + HOUR)
    step = driver.step(T0)
    assert step.codes == ["tenant_collides"]
    found.prepare(step.effects)


def test_of_two_tenants_of_one_step_the_first_has_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step that accepted the other one is rolled back, and its request refused then."""
    monkeypatch.setattr(librdkafka, "AdminClient", Made)
    driver = Driver()
    found = Outputs(Settings(), driver.tenants, None)
    driver.ask(tenant="a.b", at=T0 + HOUR)
    found.prepare(driver.step(T0).effects)
    driver.ask(tenant="a_b", at=T0 + HOUR)
    assert driver.step(T0).codes == ["tenant_collides"]
    driver.ask(tenant="c_d", at=T0 + HOUR)
    driver.ask(tenant="c.d", at=T0 + HOUR)
    effects = driver.engine.accept(driver.batch(), T0)
    with pytest.raises(Aborted, match=r"collide"):
        found.prepare(effects)
    driver.engine.aborted()
    step = driver.step(T0)
    assert step.codes == ["tenant_collides"]
    found.prepare(step.effects)


def test_a_topic_that_was_deleted_is_told_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that found it there may meet the look that misses it."""
    monkeypatch.setattr(librdkafka, "AdminClient", Cluster)
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    found = Outputs(Settings(), tenants, None)
    with pytest.raises(TopicGone, match=r"belfry\.fired\.doomed is not there any more"):
        found.partitions_of("belfry.fired.doomed")


def test_a_step_that_fires_to_a_topic_that_cannot_be_made_is_rolled_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its tenant was not held before: that it is now is found out for this very step."""
    monkeypatch.setattr(librdkafka, "AdminClient", Taken)
    monkeypatch.setattr(Taken, "names", ())
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    found = Outputs(Settings(), tenants, None)
    assert not tenants.of("a_b").held
    with pytest.raises(Aborted) as aborted:
        found.prepare(Effects(fired=[("belfry.fired.a_b", b"k", None, b"v", [])]))
    assert aborted.value.topics == {"belfry.fired.a_b": TO_MAKE}
    assert tenants.of("a_b").held == TO_MAKE
    found._maker.make_some()
    with pytest.raises(Aborted) as aborted:
        found.prepare(Effects(fired=[("belfry.fired.a_b", b"k", None, b"v", [])]))
    assert aborted.value.topics == {"belfry.fired.a_b": "not there"}
    assert tenants.of("a_b").held == "collides"


def asked_for(driver: Driver, *tenants: str) -> Effects:
    """A step that accepts a schedule of each of these tenants."""
    for tenant in tenants:
        driver.ask(tenant=tenant, at=T0 + HOUR)
    return driver.step(T0).effects


def test_a_step_waits_for_no_topic_and_its_tenant_is_held_until_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(librdkafka, "AdminClient", Made)
    driver = Driver()
    found = Outputs(Settings(), driver.tenants, None)
    found.prepare(asked_for(driver, "new"))
    admin: Any = found._admin
    assert not admin.requests
    assert driver.tenants.of("new").held == TO_MAKE
    # What is due before it is there waits in the backlog.
    assert driver.step(T0 + HOUR).ids == []
    found._maker.make_some()
    assert admin.requests == [["belfry.fired.new"]]
    assert not driver.tenants.of("new").held
    assert driver.tenants.of("new").max_record_bytes == 5_000 - BATCH_OVERHEAD_BYTES
    fired = driver.step(T0 + HOUR)
    assert fired.ids == ["a"]
    found.prepare(fired.effects)


class Overtaken(Made):
    """A cluster whose answer takes so long that another thread has its turn meanwhile."""

    meanwhile: Any = None

    def describe_configs(self, resources: list[Any]) -> dict[Any, Future[Any]]:
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()
        return super().describe_configs(resources)


def test_a_topic_that_was_made_before_its_tenant_was_held_holds_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody would ever tell of it again, and its events would wait for the next request."""
    monkeypatch.setattr(librdkafka, "AdminClient", Overtaken)
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    found = Outputs(Settings(), tenants, None)
    admin: Any = found._admin
    admin.names["belfry.fired.old"] = None
    found._view.look(0.0)
    found._view.doubt("belfry.fired.old")
    admin.meanwhile = found._maker.make_some
    found.prepare(Effects(tenants={"old", "new"}))
    assert admin.requests == [["belfry.fired.new"]]
    assert tenants.of("new").held == ""
    found.prepare(Effects(fired=[("belfry.fired.new", b"k", None, b"v", [])]))


class Undescribed(Made):
    """A cluster that makes topics, and gives no answer when it is asked what they take."""

    def describe_configs(self, resources: list[Any]) -> dict[Any, Future[Any]]:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, "no answer"))


def waiting_for_its_topic(
    monkeypatch: pytest.MonkeyPatch, cluster: type[Made]
) -> tuple[Outputs, Tenants]:
    """Outputs whose tenant `new` is held until its topic is made."""
    monkeypatch.setattr(librdkafka, "AdminClient", cluster)
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    found = Outputs(Settings(), tenants, None)
    found.prepare(Effects(tenants={"new"}))
    assert tenants.of("new").held == TO_MAKE
    return found, tenants


def test_a_tenant_goes_on_though_nobody_tells_what_its_new_topic_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The topic is there, and nobody would look at it again: its events would wait for ever."""
    found, tenants = waiting_for_its_topic(monkeypatch, Undescribed)
    found._maker.make_some()
    assert not tenants.of("new").held


def test_a_tenant_goes_on_whatever_ends_the_look_at_its_new_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, tenants = waiting_for_its_topic(monkeypatch, Made)
    monkeypatch.setattr(found._view, "describe", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        found._maker.make_some()
    assert not tenants.of("new").held


def test_made_up_tenants_topics_are_made_some_at_a_time_behind_those_of_known_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now=1_000.0)
    monkeypatch.setattr(librdkafka, "AdminClient", Made)
    monkeypatch.setattr(machine, "monotonic", lambda: clock.now)
    driver = Driver()
    driver.tenants.note_policies(["known"])
    found = Outputs(Settings(new_topics_per_second=10), driver.tenants, None)
    found.prepare(asked_for(driver, *(f"made-up-{n}" for n in range(400)), "known"))
    admin: Any = found._admin
    for _ in range(400):
        found._maker.make_some()
        clock.now += 0.1
    first, *rest = admin.requests
    assert len(first) == AT_ONCE
    assert first[0] == "belfry.fired.known"
    assert {len(topics) for topics in rest} == {1}
    assert len(rest) >= 400 - AT_ONCE - 1 - 2
    assert len(admin.names) >= 399


def test_beyond_the_topics_that_unknown_tenants_may_have_they_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(librdkafka, "AdminClient", Made)
    driver = Driver()
    driver.tenants.topics.most_unknown = 2
    found = Outputs(Settings(), driver.tenants, None)
    for name in ("a", "b", "c"):
        driver.ask(tenant=name, at=T0 + HOUR)
    effects = driver.engine.accept(driver.batch(), T0)
    with pytest.raises(Aborted, match="no room"):
        found.prepare(effects)
    driver.engine.aborted()
    step = driver.step(T0)
    assert step.codes == ["too_many_tenants"]
    found.prepare(step.effects)
    found._maker.make_some()
    assert asked_for(driver, "d").rejections == {"too_many_tenants": 1}
    assert driver.tenants.of("c").held == CROWDED_OUT
    # There is room again: a policy makes one of them known.
    driver.tenants.note_policies(["a"])
    again = asked_for(driver, "c")
    assert not again.rejections
    found.prepare(again)
    found._maker.make_some()
    assert not driver.tenants.of("c").held


def test_a_queue_is_emptied_at_its_rate_and_known_ones_go_first() -> None:
    queue = TopicQueue(per_second=2)
    for n in range(AT_ONCE + 5):
        queue.add(f"t{n}", known=False)
    queue.add("t24", known=True)
    assert queue.next(100.0)[0] == "t24"
    assert queue.next(100.0) == []
    assert len(queue.next(101.0)) == 2
    assert len(queue) == AT_ONCE + 5, "they stay in until they are done"
    queue.done("t24")
    assert "t24" not in queue
    assert len(queue) == AT_ONCE + 4
