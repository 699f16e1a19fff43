"""Partitions in which a worker looks for open transactions, and the effect of such a transaction.

    changelog, requests           the partitions that this worker owns or takes over
    tenants' own topics           those of tenants that live at these partitions
    policies, deliveries          all partitions: any worker may read them
    verdicts, refusals, letters   all partitions: people and programs read them
    events                        `fired.…`: each topic is looked at by the owner of one partition

belfry itself does not wait for topics that it only writes.  But no reader of committed records gets
past a transaction that hangs there, and no broker says so.  There may be thousands of output
topics, so some of their partitions have their turn at each look (`OutputRounds`).  Other programs
write to topics that policies name as well, and their transactions may be long. So these are not
looked at.

Names are without the prefix of belfry's topics, as metrics and the log show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from zlib import crc32

from confluent_kafka import KafkaError, KafkaException

from belfry.engine.forward import TenantInput
from belfry.kafka.fetch_position import Where
from belfry.kafka.log_ends import LogEnds
from belfry.placement.partition_count import PartitionCount
from belfry.settings import SharedSettings

CHANGELOG: Final = "changelog"
SCHEDULES: Final = "schedules"
TENANTS: Final = "tenants"
DELIVERIES: Final = "deliveries"
# Topics that belfry writes and others read.
WRITTEN: Final = ("lifecycle", "rejected", "undelivered")
_MEANS: Final = {
    CHANGELOG: "no worker can take this partition over before it ends",
    SCHEDULES: "requests behind it are not taken in before it ends",
    TENANTS: "policies behind it do not count before it ends",
    DELIVERIES: "deliveries behind it are not made before it ends",
    "lifecycle": "nobody reads a verdict behind it before it ends",
    "rejected": "nobody reads a refused request behind it before it ends",
    "undelivered": "nobody reads a dead letter behind it before it ends",
}
_TENANT_INPUT: Final = "this tenant's requests behind it are not taken in before it ends"
_OUTPUT: Final = "events are still written there, and nobody reads one behind it before it ends"
# Seconds for one answer.
REQUEST_S: Final = 5.0
# So many partitions of output topics have their turn at a look.
MOST_OUTPUTS: Final = 1_000


class WatchedPlaces:
    """Finds the partitions; used by one thread."""

    def __init__(
        self,
        settings: SharedSettings,
        counted: PartitionCount,
        inputs: Callable[[int], Iterable[TenantInput]],
        log_ends: LogEnds,
        outputs: Callable[[], Mapping[str, int]],
    ) -> None:
        """`counted` knows the changelog's number of partitions; the input may have more.

        `inputs` are the topics of tenants that live at a partition, `outputs` gives the numbers of
        partitions of all output topics.
        """
        self._settings = settings
        self._counted = counted
        self._inputs = inputs
        self._ends = log_ends
        self._outputs = OutputRounds(settings.topic("fired"), outputs)
        self._shared: dict[str, list[int]] = {}

    def of(self, followed: Sequence[int]) -> list[Where]:
        """The places that firing depends on, where these partitions are owned or taken over.

        Raises KafkaException.
        """
        topic = self._settings.topic
        found = [(topic(CHANGELOG), each) for each in followed if self._counted.holds(each)]
        found += [(topic(SCHEDULES), each) for each in followed]
        return found + self._all_of(topic(TENANTS))

    def of_others(self, followed: Sequence[int]) -> list[Where]:
        """The places for which only a tenant, deliveries or readers wait; without output topics.

        A topic that this worker may not see is left out.  Raises KafkaException.
        """
        inputs = [each.place for home in followed for each in self._inputs(home)]
        found = sorted((place.topic, place.partition) for place in inputs)
        for name in (DELIVERIES, *WRITTEN):
            try:
                found += self._all_of(self._settings.topic(name))
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise
        return found

    def outputs(self, followed: Sequence[int], again: Iterable[Where]) -> list[Where]:
        """Partitions of output topics whose turn it is, and those of `again` that belong here.

        `again` are partitions where readers were held back at the last look.
        """
        homes = [each for each in followed if each < self._counted.homes]
        return self._outputs.next(homes, self._counted.homes, again)

    def is_output(self, topic: str) -> bool:
        """Whether belfry alone writes events to it."""
        return self._outputs.has(topic)

    def _all_of(self, topic: str) -> list[Where]:
        return [(topic, each) for each in self._partitions(topic)]

    def _partitions(self, topic: str) -> list[int]:
        if not self._shared.get(topic):
            # A topic that is being made has no partitions at first.
            self._shared[topic] = self._ends.partitions(topic, REQUEST_S)
        return self._shared[topic]

    def forget(self) -> None:
        """Ask for the numbers of partitions anew, next time."""
        self._shared.clear()

    def name(self, topic: str) -> str:
        """A topic's name without the prefix."""
        return topic.removeprefix(self._settings.topic(""))

    def means(self, topic: str) -> str:
        """The effect of a transaction that stays open in a topic, as a clause."""
        if self.is_output(topic):
            return _OUTPUT
        return _MEANS.get(self.name(topic), _TENANT_INPUT)


class OutputRounds:
    """Goes round the partitions of output topics, some at each look; used by one thread.

    Each topic is the task of the owner of one home, by a hash of its name, so of all workers one
    looks at it.
    """

    def __init__(self, shared: str, outputs: Callable[[], Mapping[str, int]]) -> None:
        """`shared` is the topic that tenants share; with a dot it is the prefix of tenants' topics.

        `outputs` gives the numbers of partitions of all topics, as they are known here.
        """
        self._shared = shared
        self._outputs = outputs
        self._last: Where = ("", 0)

    def has(self, topic: str) -> bool:
        """Whether belfry alone writes events to it."""
        return topic == self._shared or topic.startswith(f"{self._shared}.")

    def next(self, owned: Sequence[int], homes: int, again: Iterable[Where]) -> list[Where]:
        """The next partitions, and those of `again` that are still a task of these homes."""
        known, mine = self._outputs(), {*owned}
        places = [
            (topic, partition)
            for topic, count in sorted(known.items())
            if self.has(topic) and crc32(topic.encode()) % homes in mine
            for partition in range(count)
        ]
        behind = [place for place in places if place > self._last]
        found = (behind + places[: len(places) - len(behind)])[:MOST_OUTPUTS]
        if found:
            self._last = found[-1]
        return sorted({*found} | {*places}.intersection(again))
