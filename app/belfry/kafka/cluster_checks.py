"""Brokers: their settings and features that promises rest on, compared with the right values.

A worker checks once at its start, `belfry topics check` and `belfry doctor` at each call. A finding
has one of three weights:

    fatal, refuses     the worker does not start: it could not keep a promise
    fatal or checked   it starts, and logs the risk and what to do
    not checked        the cluster does not let it look; that is logged, and not a problem itself

Brokers of a cluster are configured one by one, so each of them is asked. `broker_rules.py` says
which values are wrong, and why.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import structlog
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AdminClient,
    ConfigResource,
    ResourceType,
)

from belfry.kafka import broker_features, topics
from belfry.kafka.broker_features import METADATA, TRANSACTION, Features, feature_problems
from belfry.kafka.broker_rules import broker_problems
from belfry.kafka.topic_rules import TopicProblem, unread
from belfry.kafka.topics import REACH_S, described
from belfry.settings import SharedSettings

log = structlog.get_logger(__name__)
# A broker with this setting gives its partitions away before it stops.
CONTROLLED = "controlled.shutdown.enable"


class BrokerFindings(NamedTuple):
    """The findings, and a sentence about the brokers."""

    problems: list[TopicProblem]
    told: str


def check_at_start(admin: AdminClient, settings: SharedSettings) -> str:
    """Log dangers to promises; returns why a worker must not start, empty if it may.

    It blocks for some seconds. Raises KafkaException if no broker answers.
    """
    found = topics.problems(admin, settings)
    refused = [each for each in found if each.fatal and each.refuses]
    if refused:
        return " ".join(f"{each.topic}: {each.what}; {each.cure}." for each in refused)
    brokers = look_at_brokers(admin, settings)
    log.info("brokers", told=brokers.told)
    for each in (*found, *brokers.problems):
        tell = log.error if each.fatal else log.warning if each.checked else log.info
        tell("a promise rests on this", at=each.topic, found=each.what, why=each.why, do=each.cure)
    return ""


def look_at_brokers(admin: AdminClient, settings: SharedSettings) -> BrokerFindings:
    """Compare each broker; values that the cluster does not tell are unchecked problems."""
    cluster = admin.list_topics(timeout=REACH_S)
    names = sorted(str(number) for number in cluster.brokers)
    needs = {
        "transaction_timeout_ms": settings.transaction_timeout_ms,
        "session_timeout_ms": settings.session_timeout_ms,
    }
    configs = _configs(admin, names)
    found: list[TopicProblem] = []
    for name, config in configs.items():
        broker = f"broker {name}"
        if isinstance(config, KafkaException):
            found.append(_unread(broker, config))
        else:
            told = broker_problems(broker, config, len(names), needs)
            found += [each.cured_at(settings.bootstrap_servers) for each in told]
    try:
        answers = broker_features.ask_brokers(settings.kafka_properties())
    except ConnectionError as error:
        found.append(_featureless("brokers", str(error)))
        return BrokerFindings(found, f"{len(names)} brokers of unknown release")
    single = _has_lone_partitions(cluster, settings)
    features: dict[str, Features] = {}
    for name, each in sorted(answers.items()):
        if isinstance(each, str):
            found.append(_featureless(f"broker {name}", each))
            continue
        features[name] = each
        config = configs.get(name, {})
        shown = {} if isinstance(config, KafkaException) else config
        hands_on = single and shown.get(CONTROLLED, "true") == "true"
        found += feature_problems(f"broker {name}", each, hands_on=hands_on)
    return BrokerFindings(found, _told(features))


def _unread(broker: str, error: KafkaException) -> TopicProblem:
    """The problem of a broker whose settings could not be read, marked as unchecked.

    The cure differs: a missing right is to be granted, a broker that is away is asked later.
    """
    cause = error.args[0]
    told = unread(broker, cause.str(), "the cluster")
    if cause.code() in topics.DENIED:
        return told
    return told._replace(cure="look again with `belfry doctor` once it answers")


def _featureless(where: str, why: str) -> TopicProblem:
    """The problem of unknown features, with a check by hand."""
    what = f"its features could not be checked: {why}"
    cure = "check by hand that it is Kafka 3.6 or later"
    return TopicProblem(where, what, cure, fatal=False, refuses=False, checked=False)


def _configs(
    admin: AdminClient, names: list[str]
) -> dict[str, dict[str, str | None] | KafkaException]:
    """Settings of brokers, or why one does not tell them: a broker that is away breaks no promise.

    Each broker gets a request of its own, since librdkafka only does that; all are sent at once.
    """
    asked = [ConfigResource(ResourceType.BROKER, name) for name in names]
    futures = [admin.describe_configs([each], request_timeout=REACH_S) for each in asked]
    found: dict[str, dict[str, str | None] | KafkaException] = {}
    for resource, future in (pair for each in futures for pair in each.items()):
        try:
            found[resource.name] = described(future)
        except KafkaException as error:
            found[resource.name] = error
    return found


def _has_lone_partitions(cluster: Any, settings: SharedSettings) -> bool:
    """Whether a partition of the changelog has only one replica."""
    topic = cluster.topics.get(settings.topic("changelog"))
    return topic is not None and any(len(p.replicas) == 1 for p in topic.partitions.values())


def _told(features: dict[str, Features]) -> str:
    """The release of the brokers, and the levels of features in effect, in a sentence."""
    releases = sorted({each.release or "unknown" for each in features.values()})
    levels = next(iter(features.values())).finalized if features else {}
    shown = ", ".join(
        f"{name} {levels[name]}" for name in (METADATA, TRANSACTION) if name in levels
    )
    kafka = f"Kafka {' and '.join(releases) or 'of unknown release'}"
    return f"{kafka} ({shown})" if shown else kafka
