"""belfry's topics in a cluster: finds missing ones, creates them, and finds problems.

`wanted_topics.py` has the topics as they should be, and compares. Nothing here ever changes a topic
that exists.
"""

from __future__ import annotations

from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from belfry.host import machine
from belfry.kafka.topic_rules import DAY_MS, TopicProblem, problems_of, unread
from belfry.kafka.wanted_topics import (
    TopicSpec,
    as_grown,
    config_problems,
    home_problems,
    letters_topic_spec,
    of_tenants,
    partition_problems,
    replication_problems,
    tenant_topic_spec,
    topics_of,
)
from belfry.settings import SharedSettings

REACH_S: Final = 5.0
CREATE_S: Final = 30.0
# Seconds between two looks whether new topics can be used: the first pause, and the longest.
LOOK_S: Final = 0.05
LATEST_LOOK_S: Final = 1.0
# The most names in an error; it also has the number of all others.
NAMED: Final = 5
DENIED: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)


def wanted_topics(settings: SharedSettings, brokers: int) -> list[TopicSpec]:
    """All topics that do not belong to one tenant, for a cluster of so many brokers."""
    canary, metering = bool(settings.canary_interval_ms), bool(settings.metering_interval_ms)
    return topics_of(settings.cluster, brokers, canary=canary, metering=metering)


def missing(admin: AdminClient, settings: SharedSettings) -> list[TopicSpec]:
    """Topics that `create` would create; raises KafkaException when no broker answers."""
    cluster = admin.list_topics(timeout=REACH_S)
    wanted = wanted_topics(settings, len(cluster.brokers))
    absent = [spec for spec in wanted if spec.name not in cluster.topics]
    counts = {name: len(topic.partitions) for name, topic in cluster.topics.items()}
    return as_grown(absent, settings.cluster, counts)


def missing_of_tenants(
    admin: AdminClient, settings: SharedSettings, tenants: list[str], letters_of: list[str]
) -> list[TopicSpec]:
    """Missing topics of tenants: inputs of their own, and topics of dead letters."""
    cluster = admin.list_topics(timeout=REACH_S)
    brokers = len(cluster.brokers)
    wanted = [tenant_topic_spec(settings.cluster, each, brokers) for each in tenants]
    wanted += [letters_topic_spec(settings.cluster, each, brokers) for each in letters_of]
    return [spec for spec in wanted if spec.name not in cluster.topics]


def create(admin: AdminClient, settings: SharedSettings) -> list[str]:
    """Create missing topics; returns the names of created ones.

    Raises KafkaException if the cluster refuses.
    """
    return create_topics(admin, missing(admin, settings))


def create_topics(admin: AdminClient, specs: list[TopicSpec]) -> list[str]:
    """Create these topics, if they are missing, and wait until they can be used."""
    if not specs:
        return []
    new = [
        NewTopic(
            spec.name,
            num_partitions=spec.partitions,
            replication_factor=spec.replication,
            config=spec.config,
        )
        for spec in specs
    ]
    created: list[str] = []
    for name, future in admin.create_topics(new, operation_timeout=CREATE_S).items():
        try:
            future.result()
            created.append(name)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    _wait_usable(admin, specs)
    return created


def _wait_usable(admin: AdminClient, specs: list[TopicSpec]) -> None:
    """Wait until topics can be used: the controller knows a topic before the brokers do."""
    deadline = machine.monotonic() + CREATE_S
    waiting, pause_s = {spec.name for spec in specs}, LOOK_S
    while waiting and machine.monotonic() < deadline:
        topics = admin.list_topics(timeout=REACH_S).topics
        waiting = {name for name in waiting if not _usable(topics.get(name))}
        if waiting:
            # Each look asks for all topics, which takes a broker with thousands of them a while.
            machine.sleep(pause_s)
            pause_s = min(2 * pause_s, LATEST_LOOK_S)
    if waiting:
        names = sorted(waiting)
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        raise KafkaException(
            KafkaError(
                KafkaError.LEADER_NOT_AVAILABLE,
                f"topics {', '.join(names[:NAMED])}{more} have no leader after {CREATE_S:.0f} s",
            )
        )


def _usable(topic: Any) -> bool:
    return (
        topic is not None
        and bool(topic.partitions)
        and all(partition.leader >= 0 for partition in topic.partitions.values())
    )


def problems(admin: AdminClient, settings: SharedSettings) -> list[TopicProblem]:
    """What is wrong with the topics that exist; raises KafkaException when no broker answers."""
    cluster = admin.list_topics(timeout=REACH_S)
    wanted = wanted_topics(settings, len(cluster.brokers))
    there = {spec.name: spec for spec in wanted if spec.name in cluster.topics}
    tenants = of_tenants(settings.cluster, cluster.topics)
    configs = _configs(admin, [*there, *tenants])
    found: list[TopicProblem] = []
    for name, config in configs.items():
        if isinstance(config, KafkaException):
            found.append(unread(name, config.args[0].str(), f"topic {name}"))
            continue
        topic = cluster.topics[name]
        least = min((len(p.replicas) for p in topic.partitions.values()), default=0)
        spec = there.get(name)
        if spec is not None:
            found += config_problems(spec, config)
            in_sync = int(config.get("min.insync.replicas") or 1)
            found += replication_problems(spec, least, in_sync)
        kind = tenants.get(name) or name.removeprefix(settings.cluster.topic_prefix)
        found += problems_of(kind, name, config, least)
    counts = {name: len(topic.partitions) for name, topic in cluster.topics.items()}
    found += home_problems(settings.cluster, counts)
    found += partition_problems(settings.cluster, counts)
    return [each.cured_at(settings.bootstrap_servers) for each in found]


def _configs(
    admin: AdminClient, names: list[str]
) -> dict[str, dict[str, str | None] | KafkaException]:
    """Settings of topics, or why the cluster does not tell them."""
    if not names:
        return {}
    asked = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    futures = admin.describe_configs(asked, request_timeout=REACH_S)
    return {resource.name: described(future) for resource, future in futures.items()}


def described(future: Any) -> dict[str, str | None] | KafkaException:
    """Settings of one resource, or why the cluster does not tell them."""
    try:
        return {key: entry.value for key, entry in future.result().items()}
    except KafkaException as error:
        if error.args[0].code() in DENIED:
            return error
        raise


def tombstones_kept_ms(admin: AdminClient, changelog: str) -> int:
    """How long the changelog keeps tombstones, in ms: older local state misses deletions."""
    config = _configs(admin, [changelog])[changelog]
    told = None if isinstance(config, KafkaException) else config.get("delete.retention.ms")
    return int(told or DAY_MS)
