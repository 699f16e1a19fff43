"""Brokers: their settings and features that promises rest on, compared with what they should be."""

from __future__ import annotations

from typing import Any, NamedTuple

import structlog
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AdminClient,
    ConfigResource,
    ResourceType,
)

from belfry.settings import Settings
from belfry.worker import topics
from belfry.worker.broker_features import (
    METADATA,
    TRANSACTION,
    Features,
    ask_brokers,
    feature_problems,
)
from belfry.worker.topic_rules import Problem, broker_problems, unread
from belfry.worker.topics import REACH_S, described

log = structlog.get_logger(__name__)
CONTROLLED = "controlled.shutdown.enable"


class Brokers(NamedTuple):
    """What was found, and a sentence on which brokers these are."""

    problems: list[Problem]
    told: str


def check_at_start(admin: AdminClient, settings: Settings) -> str:
    """Say what endangers a promise; why a worker must not start, empty where it may."""
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


def look_at_brokers(admin: AdminClient, settings: Settings) -> Brokers:
    """Compare each broker; what the cluster does not tell is among the problems, unchecked."""
    cluster = admin.list_topics(timeout=REACH_S)
    names = sorted(str(number) for number in cluster.brokers)
    needs = {
        "transaction_timeout_ms": settings.transaction_timeout_ms,
        "session_timeout_ms": settings.session_timeout_ms,
    }
    configs = _configs(admin, names)
    found: list[Problem] = []
    for name, config in configs.items():
        broker = f"broker {name}"
        if isinstance(config, KafkaException):
            found.append(unread(broker, config.args[0].str(), "the cluster"))
        else:
            found += broker_problems(broker, config, len(names), needs)
    try:
        features = ask_brokers(settings.kafka_properties())
    except ConnectionError as error:
        why = f"its features could not be checked: {error}"
        cure = "check by hand that it is Kafka 3.6 or later"
        unknown = Problem("brokers", why, cure, fatal=False, refuses=False, checked=False)
        return Brokers([*found, unknown], f"{len(names)} brokers of unknown release")
    single = _has_lone_partitions(cluster, settings)
    for name, each in sorted(features.items()):
        config = configs.get(name, {})
        told = {} if isinstance(config, KafkaException) else config
        hands_on = single and told.get(CONTROLLED, "true") == "true"
        found += feature_problems(f"broker {name}", each, hands_on=hands_on)
    return Brokers(found, _told(features))


def _configs(
    admin: AdminClient, names: list[str]
) -> dict[str, dict[str, str | None] | KafkaException]:
    asked = [ConfigResource(ResourceType.BROKER, name) for name in names]
    futures = admin.describe_configs(asked, request_timeout=REACH_S)
    return {resource.name: described(future) for resource, future in futures.items()}


def _has_lone_partitions(cluster: Any, settings: Settings) -> bool:
    """Whether a partition of the changelog has one replica alone."""
    topic = cluster.topics.get(settings.topic("changelog"))
    return topic is not None and any(len(p.replicas) == 1 for p in topic.partitions.values())


def _told(features: dict[str, Features]) -> str:
    releases = sorted({each.release or "unknown" for each in features.values()})
    levels = next(iter(features.values())).finalized if features else {}
    shown = ", ".join(
        f"{name} {levels[name]}" for name in (METADATA, TRANSACTION) if name in levels
    )
    return f"Kafka {' and '.join(releases)}" + (f" ({shown})" if shown else "")
