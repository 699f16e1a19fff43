"""belfry's topics: what they should be, what is missing, what is wrong with those that exist.

`wanted_topics` is data; the other functions compare it with a cluster.  Nothing here ever changes
a topic that exists: an operator may have good reasons, so a difference is only reported, and only
what makes a promise untrue is called fatal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from time import monotonic, sleep
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from belfry.kafka.topic_rules import TopicProblem, problems_of, unread
from belfry.settings import SharedSettings
from belfry.tenants.canary import CANARY_TOPIC, SLO_TOPIC

REPLICATION: Final = 3
REACH_S: Final = 5.0
CREATE_S: Final = 30.0
MOST_OF_TENANTS: Final = 500
DENIED: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
HANDED_OVER_BYTES: Final = 900_000
_DAY_MS: Final = 86_400_000
_MIB: Final = 1024 * 1024

_DELETE: Final = {"cleanup.policy": "delete"}
_APPEND_TIME: Final = {"message.timestamp.type": "LogAppendTime"}
_CONFIGS: Final[dict[str, dict[str, str]]] = {
    "schedules": {**_DELETE, **_APPEND_TIME, "retention.ms": str(7 * _DAY_MS)},
    "rejected": {**_DELETE, "retention.ms": str(14 * _DAY_MS)},
    "lifecycle": {**_DELETE, "retention.ms": str(7 * _DAY_MS)},
    "deliveries": {**_DELETE, "retention.ms": str(7 * _DAY_MS)},
    "undelivered": {**_DELETE, "retention.ms": str(14 * _DAY_MS)},
    "audit": {**_DELETE, "retention.ms": str(90 * _DAY_MS)},
    "tenants": {"cleanup.policy": "compact"},
    "changelog": {
        "cleanup.policy": "compact",
        **_APPEND_TIME,
        # Recovery reads the whole topic, so garbage is collected early and in small segments.
        "min.cleanable.dirty.ratio": "0.2",
        "segment.bytes": str(64 * _MIB),
        "segment.ms": str(_DAY_MS // 4),
        # A worker that was away for longer than half of this starts from nothing: the tombstones
        # it has not seen may be gone.
        "delete.retention.ms": str(_DAY_MS),
        # A schedule's row holds a request and a little more.
        "max.message.bytes": str(2 * _MIB),
    },
}
# There only where belfry measures itself.
_CANARY_CONFIGS: Final[dict[str, dict[str, str]]] = {
    CANARY_TOPIC: {**_DELETE, "retention.ms": str(_DAY_MS)},
    SLO_TOPIC: {"cleanup.policy": "compact,delete", "retention.ms": str(100 * _DAY_MS)},
}
# There only where usage is counted.
_METERING_CONFIGS: Final[dict[str, dict[str, str]]] = {
    "metering": {**_DELETE, "retention.ms": str(400 * _DAY_MS)},
}
# What a promise rests on; anything else is an operator's choice.
_FATAL: Final = frozenset({"cleanup.policy", "message.timestamp.type"})


class TopicSpec(NamedTuple):
    """A topic as it should be created."""

    name: str
    partitions: int
    replication: int
    config: dict[str, str]


def wanted_topics(settings: SharedSettings, brokers: int) -> list[TopicSpec]:
    """All topics that do not belong to one tenant, for a cluster of so many brokers."""
    configs = _CONFIGS | (_CANARY_CONFIGS if settings.canary_interval_ms else {})
    configs |= _METERING_CONFIGS if settings.metering_interval_ms else {}
    return [
        _spec(settings.topic(name), settings.cluster.partitions, brokers, config)
        for name, config in configs.items()
    ]


def output_topic_spec(settings: SharedSettings, topic: str, brokers: int) -> TopicSpec:
    """A topic that a tenant's events come out on."""
    return _spec(topic, settings.cluster.partitions, brokers, _DELETE)


def tenant_topic_spec(settings: SharedSettings, tenant: str, brokers: int) -> TopicSpec:
    """The input topic of one tenant's own: one partition keeps all of its requests in order.

    What it takes still fits the shared topic with the headers that the hand-over adds.
    """
    config = {**_CONFIGS["schedules"], "max.message.bytes": str(HANDED_OVER_BYTES)}
    return _spec(settings.topic(f"schedules.{tenant}"), 1, brokers, config)


def _spec(name: str, partitions: int, brokers: int, config: dict[str, str]) -> TopicSpec:
    replication = max(1, min(REPLICATION, brokers))
    # One replica may be down without stopping writers; with two, either of them.
    in_sync = {"min.insync.replicas": str(max(1, replication - 1))}
    return TopicSpec(name, partitions, replication, {**config, **in_sync})


def missing(admin: AdminClient, settings: SharedSettings) -> list[TopicSpec]:
    """Topics that `create` would create; raises KafkaException when no broker answers."""
    cluster = admin.list_topics(timeout=REACH_S)
    wanted = wanted_topics(settings, len(cluster.brokers))
    return [spec for spec in wanted if spec.name not in cluster.topics]


def missing_of_tenants(
    admin: AdminClient, settings: SharedSettings, tenants: list[str]
) -> list[TopicSpec]:
    """Input topics of these tenants' own that are not there yet."""
    cluster = admin.list_topics(timeout=REACH_S)
    wanted = [tenant_topic_spec(settings, each, len(cluster.brokers)) for each in tenants]
    return [spec for spec in wanted if spec.name not in cluster.topics]


def create(admin: AdminClient, settings: SharedSettings) -> list[str]:
    """Create what is missing; the names of what was created.

    Raises KafkaException where the cluster refuses.
    """
    return create_topics(admin, missing(admin, settings))


def create_topics(admin: AdminClient, specs: list[TopicSpec]) -> list[str]:
    """Create these topics and wait until they can be used; who comes second finds them there."""
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
    """The controller knows a topic before the brokers do."""
    deadline = monotonic() + CREATE_S
    waiting = {spec.name for spec in specs}
    while waiting and monotonic() < deadline:
        topics = admin.list_topics(timeout=REACH_S).topics
        waiting = {name for name in waiting if not _usable(topics.get(name))}
        if waiting:
            sleep(0.05)
    if waiting:
        raise KafkaException(
            KafkaError(
                KafkaError.LEADER_NOT_AVAILABLE,
                f"topics {', '.join(sorted(waiting))} have no leader after {CREATE_S:.0f} s",
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
    of_tenants = _of_tenants(settings, cluster.topics)
    configs = _configs(admin, [*there, *of_tenants])
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
        kind = of_tenants.get(name) or name.removeprefix(settings.cluster.topic_prefix)
        found += problems_of(kind, name, config, least)
    counts = {name: len(topic.partitions) for name, topic in cluster.topics.items()}
    changelog = settings.topic("changelog")
    found += home_problems(changelog, counts, settings.cluster.partitions)
    return found + partition_problems(settings.topic("schedules"), changelog, counts)


def _of_tenants(settings: SharedSettings, topics: Iterable[str]) -> dict[str, str]:
    """Topics of tenants, and of which kind each is; some hundreds at most."""
    kinds = {settings.topic(f"{kind}."): kind for kind in ("fired", "schedules")}
    found = {
        topic: kind
        for topic in topics
        for prefix, kind in kinds.items()
        if topic.startswith(prefix)
    }
    return dict(islice(sorted(found.items()), MOST_OF_TENANTS))


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
    """For how long the changelog keeps tombstones: what was away for longer misses deletions."""
    config = _configs(admin, [changelog])[changelog]
    told = None if isinstance(config, KafkaException) else config.get("delete.retention.ms")
    return int(told or _DAY_MS)


def config_problems(spec: TopicSpec, actual: Mapping[str, str | None]) -> list[TopicProblem]:
    """Settings of a topic that break a promise."""
    return [
        TopicProblem(
            spec.name,
            f"{key} is {actual.get(key)}; it has to be {value}",
            f"kafka-configs.sh --alter --topic {spec.name} --add-config {key}={value}",
            fatal=True,
        )
        for key, value in spec.config.items()
        if key in _FATAL and actual.get(key) != value
    ]


def replication_problems(spec: TopicSpec, replicas: int, in_sync: int) -> list[TopicProblem]:
    """A topic with too few replicas to write to, or to survive the loss of a broker."""
    more = f"give it {spec.replication} replicas with kafka-reassign-partitions.sh"
    if in_sync > replicas:
        what = f"min.insync.replicas is {in_sync}, with {replicas} replicas: nobody can write"
        return [TopicProblem(spec.name, what, f"{more}, or lower min.insync.replicas", fatal=True)]
    if replicas < spec.replication:
        what = f"{replicas} replicas, where the cluster has brokers for {spec.replication}"
        return [TopicProblem(spec.name, what, more, fatal=False)]
    return []


def home_problems(changelog: str, counts: dict[str, int], wanted: int) -> list[TopicProblem]:
    """Another number of homes than was agreed: schedules would be looked for where they are not."""
    homes = counts.get(changelog)
    if homes is None or homes == wanted:
        return []
    what = (
        f"cluster settings differ: {changelog} has {homes} partitions, and"
        f" BELFRY_CLUSTER__PARTITIONS is {wanted}; the number of homes never changes"
    )
    cure = (
        f"set it to {homes} on all workers; if {changelog} was altered, restore a backup into"
        " new topics"
    )
    return [TopicProblem(changelog, what, cure, fatal=True)]


def partition_problems(
    schedules: str, changelog: str, counts: dict[str, int]
) -> list[TopicProblem]:
    """Fewer partitions of input than of state: some schedules would have no home to be sent to.

    More of input are fine; they only take requests, which are re-routed.
    """
    given, homes = counts.get(schedules), counts.get(changelog)
    if given is None or homes is None or given >= homes:
        return []
    what = f"{given} partitions, but {changelog} has {homes}"
    cure = f"kafka-topics.sh --alter --topic {schedules} --partitions {homes}"
    return [TopicProblem(schedules, what, cure, fatal=True)]
