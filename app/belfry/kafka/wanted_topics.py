"""belfry's topics as they should be, and the problems of those that exist.

The topics are a table (`CONFIGS`); `topics_of` makes specifications of it for a cluster of so many
brokers. The other functions compare a specification with Kafka's description of a topic. A
difference is only reported, because an operator may have good reasons, and is only fatal if it
breaks a promise. `topics.py` asks the cluster, and creates missing topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final, NamedTuple

from belfry.kafka.topic_rules import DAY_MS, MIB, TopicProblem
from belfry.settings.cluster import ClusterSettings
from belfry.tenants.canary import CANARY_TOPIC, SLO_TOPIC
from belfry.tenants.topic_names import LETTERS

REPLICATION: Final = 3
MOST_OF_TENANTS: Final = 500
HOMES_TOPIC: Final = "homes"
HANDED_OVER_BYTES: Final = 900_000

_DELETE: Final = {"cleanup.policy": "delete"}
_APPEND_TIME: Final = {"message.timestamp.type": "LogAppendTime"}
CONFIGS: Final[dict[str, dict[str, str]]] = {
    "schedules": {**_DELETE, **_APPEND_TIME, "retention.ms": str(7 * DAY_MS)},
    "rejected": {**_DELETE, "retention.ms": str(14 * DAY_MS)},
    "lifecycle": {**_DELETE, "retention.ms": str(7 * DAY_MS)},
    "deliveries": {**_DELETE, "retention.ms": str(7 * DAY_MS)},
    "undelivered": {**_DELETE, "retention.ms": str(14 * DAY_MS)},
    "audit": {**_DELETE, "retention.ms": str(90 * DAY_MS)},
    "tenants": {"cleanup.policy": "compact"},
    "changelog": {
        "cleanup.policy": "compact",
        **_APPEND_TIME,
        # Recovery reads the whole topic, so it is compacted early and in small segments.
        "min.cleanable.dirty.ratio": "0.2",
        "segment.bytes": str(64 * MIB),
        "segment.ms": str(DAY_MS // 4),
        # A worker that was away for longer than half of this starts without local state: tombstones
        # that it has not seen may be gone.
        "delete.retention.ms": str(DAY_MS),
        # A schedule's row holds a request and a little more.
        "max.message.bytes": str(2 * MIB),
    },
}
# These topics only exist if belfry measures itself.
_CANARY_CONFIGS: Final[dict[str, dict[str, str]]] = {
    CANARY_TOPIC: {**_DELETE, "retention.ms": str(DAY_MS)},
    SLO_TOPIC: {"cleanup.policy": "compact,delete", "retention.ms": str(100 * DAY_MS)},
}
# This topic only exists if usage is counted.
_METERING_CONFIGS: Final[dict[str, dict[str, str]]] = {
    "metering": {**_DELETE, "retention.ms": str(400 * DAY_MS)},
}
# The settings that a promise rests on; all others are an operator's choice.
_FATAL: Final = frozenset({"cleanup.policy", "message.timestamp.type"})


class TopicSpec(NamedTuple):
    """A topic as it should be created."""

    name: str
    partitions: int
    replication: int
    config: dict[str, str]


def topics_of(
    cluster: ClusterSettings, brokers: int, *, canary: bool, metering: bool
) -> list[TopicSpec]:
    """All topics that do not belong to one tenant, for a cluster of so many brokers.

    `canary` and `metering` say whether belfry measures itself, and whether it counts usage.
    """
    configs = CONFIGS | (_CANARY_CONFIGS if canary else {})
    configs |= _METERING_CONFIGS if metering else {}
    return [
        _spec(cluster.topic_prefix + name, cluster.partitions, brokers, config)
        for name, config in configs.items()
    ]


def output_topic_spec(cluster: ClusterSettings, topic: str, brokers: int) -> TopicSpec:
    """An output topic of a tenant."""
    return _spec(topic, cluster.partitions, brokers, _DELETE)


def tenant_topic_spec(cluster: ClusterSettings, tenant: str, brokers: int) -> TopicSpec:
    """The input topic of one tenant: one partition keeps all of its requests in order.

    Its largest record still fits the shared topic with the headers that the hand-over adds.
    """
    config = {**CONFIGS["schedules"], "max.message.bytes": str(HANDED_OVER_BYTES)}
    return _spec(f"{cluster.topic_prefix}schedules.{tenant}", 1, brokers, config)


def letters_topic_spec(cluster: ClusterSettings, tenant: str, brokers: int) -> TopicSpec:
    """The topic of one tenant's dead letters; each letter fits, with the headers that say why."""
    config = {**CONFIGS["rejected"], "max.message.bytes": str(2 * MIB)}
    name = f"{cluster.topic_prefix}{LETTERS}.{tenant}"
    return _spec(name, cluster.partitions, brokers, config)


def _spec(name: str, partitions: int, brokers: int, config: dict[str, str]) -> TopicSpec:
    replication = max(1, min(REPLICATION, brokers))
    # One replica may be down without stopping writers; with two replicas, either of them.
    in_sync = {"min.insync.replicas": str(max(1, replication - 1))}
    return TopicSpec(name, partitions, replication, {**config, **in_sync})


def of_tenants(cluster: ClusterSettings, topics: Iterable[str]) -> dict[str, str]:
    """Topics of tenants, each with its kind; some hundreds at most."""
    kinds = {f"{cluster.topic_prefix}{kind}.": kind for kind in ("fired", "schedules", LETTERS)}
    shared = f"{cluster.topic_prefix}fired"
    found = {
        topic: "fired" if topic == shared else kind
        for topic in topics
        for prefix, kind in kinds.items()
        if topic == shared or topic.startswith(prefix)
    }
    return dict(islice(sorted(found.items()), MOST_OF_TENANTS))


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
        least = f"min.insync.replicas={spec.config['min.insync.replicas']}"
        lower = f"kafka-configs.sh --alter --topic {spec.name} --add-config {least}"
        # The cluster may have too few brokers for as many replicas as writers ask for.
        cure = f"{more}, or: {lower}" if spec.replication >= in_sync else lower
        return [TopicProblem(spec.name, what, cure, fatal=True)]
    if replicas < spec.replication:
        what = f"{replicas} replicas, where the cluster has brokers for {spec.replication}"
        return [TopicProblem(spec.name, what, more, fatal=False)]
    return []


def homes_topic(cluster: ClusterSettings) -> str:
    """The topic that keeps the number of homes of a belfry that has grown; others lack it.

    It holds no records: its number of partitions is the number of homes. So that number is read
    with the other metadata, is never compacted away or forgotten, and cannot become less.
    """
    return cluster.topic_prefix + HOMES_TOPIC


def homes_of(cluster: ClusterSettings, counts: Mapping[str, int]) -> int:
    """The number of homes by the partitions of all topics; 0 without a changelog.

    It is the changelog's number of partitions, unless the belfry has grown (`belfry rebalance
    grow`).
    """
    held = counts.get(cluster.topic_prefix + "changelog", 0)
    return min(held, counts.get(homes_topic(cluster), held))


def as_grown(
    specs: Iterable[TopicSpec], cluster: ClusterSettings, counts: Mapping[str, int]
) -> list[TopicSpec]:
    """These topics with the present partitions of a belfry; if it has grown, changelog and input
    get as many as the larger one has.

    If a lost changelog came back with fewer, some groups would lie in partitions without state.
    """
    if homes_topic(cluster) not in counts:
        return list(specs)
    pair = [cluster.topic_prefix + name for name in ("changelog", "schedules")]
    most = max(counts.get(name, 0) for name in pair)
    return [
        each._replace(partitions=max(each.partitions, most)) if each.name in pair else each
        for each in specs
    ]


def home_problems(cluster: ClusterSettings, counts: Mapping[str, int]) -> list[TopicProblem]:
    """Another number of homes than agreed: schedules would be looked for in wrong partitions."""
    changelog, wanted = cluster.topic_prefix + "changelog", cluster.partitions
    if changelog not in counts:
        return []
    homes, said_by = homes_of(cluster, counts), changelog
    if homes < counts[changelog]:
        said_by = homes_topic(cluster)
    if homes == wanted:
        return []
    what = (
        f"cluster settings differ: {said_by} has {homes} partitions, and"
        f" BELFRY_CLUSTER__PARTITIONS is {wanted}; the number of homes never changes"
    )
    cure = f"set it to {homes} on all workers"
    if said_by == changelog and homes > wanted:
        # The belfry has grown, or was altered, and no visible topic says which.
        topic = homes_topic(cluster)
        made = f"kafka-topics.sh --create --topic {topic} --partitions {wanted}"
        cure += (
            f"; but where {wanted} was right before partitions were added, make the topic that says"
            f" so, if it is missing ({made}), and let workers Describe it"
        )
    return [TopicProblem(said_by, what, cure, fatal=True)]


def partition_problems(cluster: ClusterSettings, counts: Mapping[str, int]) -> list[TopicProblem]:
    """Fewer partitions of input than of state: some schedules would have no home to be sent to.

    More partitions of input are fine; they only take requests, which are re-routed. If each home
    has one, the belfry has not got all of its partitions yet: workers start, because its growth
    needs them.
    """
    schedules, changelog = (cluster.topic_prefix + name for name in ("schedules", "changelog"))
    given, held = counts.get(schedules), counts.get(changelog)
    if given is None or held is None or given >= held:
        return []
    what = f"{given} partitions, but {changelog} has {held}"
    if given >= homes_of(cluster, counts):
        cure = f"belfry rebalance grow --partitions {held} --yes"
        return [TopicProblem(schedules, what, cure, fatal=False)]
    cure = f"kafka-topics.sh --alter --topic {schedules} --partitions {held}"
    return [TopicProblem(schedules, what, cure, fatal=True)]
