"""What promises ask of topics and brokers: each finding with its reason and cure."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from aiokafka.errors import NodeNotReadyError
from confluent_kafka import KafkaError, KafkaException

from belfry.engine.dead_letters import WHY_BYTES
from belfry.engine.rerouting import MAX_MISROUTED_BYTES
from belfry.kafka import broker_features, cluster_checks
from belfry.kafka.broker_features import Features, feature_problems, features_in
from belfry.kafka.broker_rules import broker_problems
from belfry.kafka.cluster_checks import check_at_start, look_at_brokers
from belfry.kafka.topic_rules import TopicProblem, problems_of, unread
from belfry.kafka.topics import described, problems, wanted_topics
from belfry.kafka.wanted_topics import letters_topic_spec, of_tenants
from belfry.settings import Settings

SETTINGS = Settings()
NEEDS = {"transaction_timeout_ms": 10_000, "session_timeout_ms": 6_000}
# As Kafka 4.3 answers: supported and finalized features, in tagged fields.
SUPPORTED = bytes.fromhex("02116d657461646174612e76657273696f6e0001001e00")
FINALIZED = bytes.fromhex("02147472616e73616374696f6e2e76657273696f6e0002000200")


def kinds() -> dict[str, dict[str, str]]:
    """Each kind of topic with the settings that belfry gives it."""
    specs = wanted_topics(SETTINGS, 3)
    prefix = SETTINGS.cluster.topic_prefix
    return {spec.name.removeprefix(prefix): spec.config for spec in specs}


def test_topics_as_belfry_creates_them_are_well() -> None:
    defaults = {
        "retention.bytes": "-1",
        "unclean.leader.election.enable": "false",
        "max.message.bytes": "1048588",
        "delete.retention.ms": "86400000",
    }
    for kind, config in kinds().items():
        assert problems_of(kind, kind, {**defaults, **config}, 3) == []


@pytest.mark.parametrize(
    ("kind", "key", "value", "fatal", "why"),
    [
        ("schedules", "retention.ms", "60000", True, "requests that no worker has read"),
        ("schedules", "retention.ms", "86400000", False, "requests that no worker has read"),
        ("schedules", "retention.bytes", "1000", False, "before retention.ms is over"),
        ("deliveries", "retention.ms", "1000", True, "no dispatcher has read"),
        ("lifecycle", "retention.ms", "3600000", False, "histories miss them"),
        ("rejected", "retention.ms", "1", False, "before somebody looks"),
        ("changelog", "delete.retention.ms", "0", True, "miss that a schedule was cancelled"),
        ("changelog", "max.message.bytes", "100000", True, "stops its partition"),
        ("rejected", "max.message.bytes", "100000", False, "do not fit"),
        ("fired", "cleanup.policy", "compact,delete", False, "events of one key"),
        *(
            (kind, "unclean.leader.election.enable", "true", fatal, "lacks acknowledged records")
            for kind, fatal in (
                *(("schedules", True), ("changelog", True), ("tenants", True)),
                *(("deliveries", True), ("fired", False), ("lifecycle", False)),
            )
        ),
        ("changelog", "min.insync.replicas", "1", True, "one broker alone"),
        ("fired", "min.insync.replicas", "1", False, "one broker alone"),
    ],
)
def test_what_endangers_a_promise_is_told_with_its_cure(
    kind: str, key: str, value: str, fatal: bool, why: str
) -> None:
    (found,) = problems_of(kind, f"x.{kind}", {key: value}, 3)
    assert (found.topic, found.fatal, found.refuses) == (f"x.{kind}", fatal, False)
    assert key in found.what
    assert value in found.what
    assert why in found.why
    assert f"kafka-configs.sh --alter --topic x.{kind} --add-config {key}=" in found.cure


@pytest.mark.parametrize(
    ("told", "pasted"),
    [
        ("kafka-configs.sh --alter --topic x", "kafka-configs.sh {} --alter --topic x"),
        ("set it (kafka-topics.sh --create) and …", "set it (kafka-topics.sh {} --create) and …"),
        (
            "move it with kafka-reassign-partitions.sh, or: kafka-configs.sh --alter",
            "move it with kafka-reassign-partitions.sh, or: kafka-configs.sh {} --alter",
        ),
    ],
)
def test_commands_say_which_brokers_they_ask(told: str, pasted: str) -> None:
    found = TopicProblem("x", "what", told, fatal=False).cured_at("a:1,b:2")
    assert found.cure == pasted.format("--bootstrap-server a:1,b:2")


class Lax:
    """A cluster of one broker and one topic, both set as they should not be."""

    topics: ClassVar[dict[str, Any]] = {
        "belfry.lifecycle": SimpleNamespace(partitions={0: SimpleNamespace(replicas=[1])})
    }
    brokers: ClassVar[dict[int, None]] = {1: None}

    def list_topics(self, **_: Any) -> Any:
        return self

    def describe_configs(self, asked: list[Any], **_: Any) -> dict[Any, Any]:
        config = {"retention.ms": "1", "unclean.leader.election.enable": "true"}
        told = {key: SimpleNamespace(value=value) for key, value in config.items()}
        return {each: SimpleNamespace(result=lambda: told) for each in asked}


def test_what_is_advised_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_features, "ask_brokers", lambda _: {})
    admin: Any = Lax()
    given = Settings(bootstrap_servers="kafka-1:9092")
    found = [*problems(admin, given), *look_at_brokers(admin, given).problems]
    assert {each.topic for each in found} == {"belfry.lifecycle", "broker 1"}
    assert all("kafka-configs.sh --bootstrap-server kafka-1:9092 --" in p.cure for p in found)


def test_no_limit_and_settings_that_are_not_told_are_no_problem() -> None:
    assert problems_of("schedules", "s", {"retention.ms": "-1"}, 3) == []
    assert problems_of("schedules", "s", {}, 3) == []
    assert problems_of("changelog", "c", {"min.insync.replicas": "1"}, 2) == []


@pytest.mark.parametrize(
    ("key", "value", "brokers", "fatal"),
    [
        ("unclean.leader.election.enable", "true", 1, False),
        ("transaction.partition.verification.enable", "false", 1, True),
        ("transaction.max.timeout.ms", "9999", 1, True),
        ("group.max.session.timeout.ms", "5999", 1, True),
        ("transaction.state.log.replication.factor", "1", 3, False),
        ("transaction.state.log.min.isr", "1", 3, False),
        ("offsets.retention.minutes", "60", 1, False),
    ],
)
def test_what_promises_ask_of_brokers(key: str, value: str, brokers: int, fatal: bool) -> None:
    (found,) = broker_problems("broker 1", {key: value}, brokers, NEEDS)
    assert (found.topic, found.fatal, found.refuses) == ("broker 1", fatal, False)
    assert f"{key} is {value}" in found.what
    assert found.why


def test_a_lone_broker_as_kafka_ships_it_is_well() -> None:
    shipped = {
        "unclean.leader.election.enable": "false",
        "transaction.partition.verification.enable": "true",
        "transaction.max.timeout.ms": "900000",
        "group.max.session.timeout.ms": "1800000",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "offsets.retention.minutes": "10080",
        "transaction.state.log.num.partitions": "50",
    }
    assert broker_problems("broker 1", shipped, 1, NEEDS) == []
    assert broker_problems("broker 1", {}, 1, NEEDS) == []


def test_features_are_read_from_a_brokers_answer() -> None:
    found = features_in([(24, 0, 5, {}), (18, 0, 4, {})], {0: SUPPORTED, 2: FINALIZED})
    assert found.supported == {"metadata.version": 30}
    assert found.finalized == {"transaction.version": 2}
    assert found.requests == {24: 5, 18: 4}
    assert found.release == "4.3"
    assert features_in([], {}) == ({}, {}, {})


@pytest.mark.parametrize(
    ("level", "release"), [(0, ""), (1, "3.0"), (14, "3.6"), (24, "3.9"), (99, "later than 4.3")]
)
def test_a_release_is_told_by_its_highest_level(level: int, release: str) -> None:
    assert Features({"metadata.version": level}, {}, {}).release == release


def test_what_a_broker_cannot_do_is_told() -> None:
    old = Features({"metadata.version": 11}, {}, {24: 3})
    (found,) = feature_problems("broker 1", old, hands_on=True)
    assert (found.fatal, found.refuses) == (True, False)
    assert "does not verify transactions (release 3.5)" in found.what
    newest = Features({"metadata.version": 30}, {}, {24: 5})
    assert feature_problems("broker 1", newest, hands_on=False) == []
    (found,) = feature_problems("broker 1", newest, hands_on=True)
    assert not found.fatal
    assert "KAFKA-20734" in found.why


class Denied:
    """Settings that the cluster does not show."""

    def __init__(self, code: int) -> None:
        self._code = code

    def result(self) -> Any:
        raise KafkaException(KafkaError(self._code))


def test_a_cluster_that_denies_to_describe_breaks_nothing() -> None:
    for code in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
        found = described(Denied(code))
        assert isinstance(found, KafkaException)
    with pytest.raises(KafkaException):
        described(Denied(KafkaError._TRANSPORT))
    told = unread("belfry.schedules", "denied", "topic belfry.schedules")
    assert (told.fatal, told.refuses, told.checked) == (False, False, False)
    assert "could not be checked: denied" in told.what


class Admin:
    """As much of an admin client as tells of brokers; one of them is away."""

    def __init__(self, away: str) -> None:
        self._away = away

    def list_topics(self, **_: Any) -> Any:
        return SimpleNamespace(brokers={1: None, 2: None}, topics={})

    def describe_configs(self, resources: list[Any], **_: Any) -> dict[Any, Any]:
        # As librdkafka does it: a broker is asked by a request of its own.
        alone = len(resources) == 1
        return {each: self._settings(each.name, alone=alone) for each in resources}

    def _settings(self, name: str, *, alone: bool) -> Any:
        if not alone:
            return Denied(KafkaError._CONFLICT)
        if name == self._away:
            return Denied(KafkaError._TIMED_OUT)
        return SimpleNamespace(result=dict)


def test_a_broker_that_is_away_is_unchecked_and_ends_no_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    newest = Features({"metadata.version": 29}, {}, {24: 5})
    answers = {"1": newest, "2": "no answer within 5 s"}
    monkeypatch.setattr(broker_features, "ask_brokers", lambda _: answers)
    admin: Any = Admin(away="2")
    found = cluster_checks.look_at_brokers(admin, SETTINGS)
    assert [(each.topic, each.checked) for each in found.problems] == [("broker 2", False)] * 2
    settings, features = found.problems
    assert "could not be checked" in settings.what
    assert "DescribeConfigs" not in settings.cure
    assert features.what == "its features could not be checked: no answer within 5 s"
    assert found.told == "Kafka 4.2"
    monkeypatch.setattr("belfry.kafka.topics.problems", lambda *_: [])
    assert check_at_start(admin, SETTINGS) == ""


class FeatureClient:
    """A client of four brokers: one answers, two answer what is cut off, one is away."""

    answers: ClassVar[dict[int, Any]] = {
        1: SimpleNamespace(api_versions=[(24, 0, 5, {})], tags={0: SUPPORTED}),
        2: SimpleNamespace(api_versions=[], tags={0: SUPPORTED[:5]}),
        3: struct.error("unpack requires a buffer of 4 bytes"),
        4: NodeNotReadyError("4"),
    }

    def __init__(self, **_: Any) -> None:
        brokers = [SimpleNamespace(nodeId=number) for number in self.answers]
        self.cluster = SimpleNamespace(brokers=lambda: brokers)

    async def bootstrap(self) -> None:
        """It is there."""

    close = bootstrap

    async def send(self, number: int, _request: object) -> Any:
        answer = self.answers[number]
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_each_broker_is_asked_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_features, "AIOKafkaClient", FeatureClient)
    found = broker_features.ask_brokers({"bootstrap.servers": "localhost:1"})
    told = found["1"]
    assert isinstance(told, Features)
    assert told.release == "4.3"
    for number, why in (("2", "IndexError"), ("3", "error: unpack"), ("4", "NodeNotReadyError")):
        assert str(found[number]).startswith(why)


def test_a_worker_starts_unless_a_problem_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, str]] = []

    class Log:
        def __getattr__(self, level: str) -> Any:
            return lambda _event, **said: told.append((level, said.get("at", "")))

    def found(*problems: TopicProblem) -> str:
        told.clear()
        monkeypatch.setattr("belfry.kafka.topics.problems", lambda *_: list(problems))
        return check_at_start(None, SETTINGS)  # type: ignore[arg-type]

    monkeypatch.setattr(cluster_checks, "log", Log())
    brokers = cluster_checks.BrokerFindings(
        [unread("broker 1", "denied", "the cluster")], "Kafka 4.3"
    )
    monkeypatch.setattr(cluster_checks, "look_at_brokers", lambda *_: brokers)
    broken = TopicProblem("s", "it is wrong", "mend it", fatal=True, refuses=False)
    risk = TopicProblem("r", "it is risky", "mend it", fatal=False)
    assert found(broken, risk) == ""
    assert told == [("info", ""), ("error", "s"), ("warning", "r"), ("info", "broker 1")]
    assert found(broken, TopicProblem("c", "compacted", "alter it", fatal=True)) == (
        "c: compacted; alter it."
    )


def test_a_topic_of_dead_letters_takes_what_the_topic_of_requests_takes_and_is_looked_at() -> None:
    cluster = SETTINGS.cluster
    spec = letters_topic_spec(cluster, "shop", 3)
    assert (spec.name, spec.replication) == ("belfry.dead-letters.shop", 3)
    assert int(spec.config["max.message.bytes"]) > MAX_MISROUTED_BYTES + WHY_BYTES
    (kind,) = of_tenants(cluster, [spec.name, "belfry.dead-letters", "dead-letters.shop"]).values()
    assert problems_of(kind, spec.name, spec.config, spec.replication) == []
    short = {**spec.config, "retention.ms": "1000"}
    (problem,) = problems_of(kind, spec.name, short, spec.replication)
    assert not problem.fatal
