"""More partitions for a running belfry: the topics that get them, the order, and the way.

    1  belfry.homes        made, with as many partitions as there are homes: that number stays
    2  belfry.changelog    gets partitions; workers see them within seconds, and none owns them yet
    3  belfry.schedules    gets as many; the group shares them out, and each has its state from the
                           first record on

A partition that takes requests needs a partition for its state first: a worker that owned a new
partition of `belfry.schedules` without one would only send requests on. So the second step ends
when all workers have seen the partitions. If the whole is done again, steps that are done are left
out.

Other topics stay as they are: their partitions do not belong to those of schedules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AdminClient,
    NewPartitions,
)

from belfry.host import machine
from belfry.kafka.topics import REACH_S, create_topics
from belfry.kafka.wanted_topics import TopicSpec, homes_of, homes_topic, topics_of
from belfry.settings.cluster import ClusterSettings

ADD_S: Final = 30.0
_LOOK_S: Final = 0.1
# The topics that get partitions, in this order.
STATE: Final = "changelog"
REQUESTS: Final = "schedules"


class CannotGrow(Exception):
    """A belfry cannot have so many partitions; `code` is the reason for programs."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Growth(NamedTuple):
    """The number of partitions of each topic, and the number that it is to have."""

    homes: int
    partitions: int
    # Partitions of the topic that keeps the number of homes; 0 if it does not exist.
    kept: int
    changelog: int
    schedules: int

    @property
    def steps(self) -> list[tuple[str, int, int]]:
        """The remaining steps: the kind of the topic, its partitions now, and afterwards."""
        wanted = (
            ("homes", self.kept, self.homes),
            (STATE, self.changelog, self.partitions),
            (REQUESTS, self.schedules, self.partitions),
        )
        grows = self.partitions > self.homes
        return [each for each in wanted if each[1] < each[2] and grows]


def growth_of(cluster: ClusterSettings, counts: Mapping[str, int], partitions: int) -> Growth:
    """The growth to so many partitions, by the partitions of all topics; raises CannotGrow."""
    prefix = cluster.topic_prefix
    changelog, schedules = counts.get(prefix + STATE, 0), counts.get(prefix + REQUESTS, 0)
    if not (changelog and schedules):
        name = prefix + (REQUESTS if changelog else STATE)
        raise CannotGrow("no_topics", f"There is no topic {name}: start a worker, which makes it.")
    kept = counts.get(homes_topic(cluster), 0)
    if kept > changelog:
        reason = (
            f"{homes_topic(cluster)} has {kept} partitions, and {prefix}{STATE} {changelog}: it"
            " tells the number of homes, and was not made by belfry. Delete it."
        )
        raise CannotGrow("wrong_homes", reason)
    if not kept and schedules < changelog:
        reason = (
            f"{prefix}{STATE} has {changelog} partitions, and {prefix}{REQUESTS} {schedules}: one"
            " of them was altered. `belfry topics check` says what to do."
        )
        raise CannotGrow("uneven_topics", reason)
    most = max(changelog, schedules)
    if partitions < most:
        reason = (
            f"There are {most} partitions, and Kafka cannot remove any: give {most} or more. Groups"
            f" leave those above {partitions - 1} by `belfry rebalance apply --partitions"
            f" {partitions}`."
        )
        raise CannotGrow("fewer_partitions", reason)
    return Growth(homes_of(cluster, counts), partitions, kept, changelog, schedules)


def topic_counts(admin: AdminClient) -> dict[str, int]:
    """The number of each topic's partitions; raises KafkaException if no broker answers."""
    found = admin.list_topics(timeout=REACH_S).topics
    return {name: len(topic.partitions) for name, topic in found.items()}


def keep_homes(admin: AdminClient, cluster: ClusterSettings, homes: int) -> None:
    """Make the topic that keeps the number of homes from now on; raises KafkaException."""
    brokers = len(admin.list_topics(timeout=REACH_S).brokers)
    like = topics_of(cluster, brokers, canary=False, metering=False)[0]
    config = {"cleanup.policy": "delete", "min.insync.replicas": like.config["min.insync.replicas"]}
    create_topics(admin, [TopicSpec(homes_topic(cluster), homes, like.replication, config)])


def add_partitions(admin: AdminClient, topic: str, partitions: int) -> None:
    """Give a topic so many partitions, and wait until each has a leader; raises KafkaException.

    A topic that has as many already is in order, even if another process has added them.
    """
    if topic_counts(admin).get(topic, 0) < partitions:
        asked = admin.create_partitions([NewPartitions(topic, partitions)], operation_timeout=ADD_S)
        asked[topic].result(ADD_S)
    deadline = machine.monotonic() + ADD_S
    while machine.monotonic() < deadline and not _all_led(admin, topic, partitions):
        machine.sleep(_LOOK_S)


def _all_led(admin: AdminClient, topic: str, partitions: int) -> bool:
    found = admin.list_topics(topic, timeout=REACH_S).topics[topic].partitions
    return len(found) >= partitions and all(each.leader >= 0 for each in found.values())
