"""Which partitions a worker looks at for transactions that stay open, and what one keeps back.

    changelog, requests       the partitions that this worker owns or takes over
    tenants' own topics       those of tenants that live there
    policies, deliveries      all partitions: any worker may read them

Names are without the prefix of belfry's topics, as metrics and the log show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from belfry.engine.forward import TenantInput
from belfry.kafka.fetch_position import Where
from belfry.kafka.log_ends import LogEnds
from belfry.placement.partition_count import PartitionCount
from belfry.settings import SharedSettings

CHANGELOG: Final = "changelog"
SCHEDULES: Final = "schedules"
TENANTS: Final = "tenants"
DELIVERIES: Final = "deliveries"
_MEANS: Final = {
    CHANGELOG: "nobody can take this partition over before it ends",
    SCHEDULES: "requests behind it are not taken in before it ends",
    TENANTS: "policies behind it do not count before it ends",
    DELIVERIES: "deliveries behind it are not made before it ends",
}
_TENANT_INPUT: Final = "this tenant's requests behind it are not taken in before it ends"
# Seconds for one answer.
REQUEST_S: Final = 5.0


class WatchedPlaces:
    """Finds the partitions; used by one thread."""

    def __init__(
        self,
        settings: SharedSettings,
        counted: PartitionCount,
        inputs: Callable[[int], Iterable[TenantInput]],
        log_ends: LogEnds,
    ) -> None:
        """`counted` knows the changelog's number of partitions; the input may have more.

        `inputs` are the topics of tenants that live at a partition.
        """
        self._settings = settings
        self._counted = counted
        self._inputs = inputs
        self._ends = log_ends
        self._shared: dict[str, list[int]] = {}

    def of(self, followed: Sequence[int]) -> list[Where]:
        """Those that firing hangs on, where these partitions are owned or taken over.

        Raises KafkaException.
        """
        topic = self._settings.topic
        found = [(topic(CHANGELOG), each) for each in followed if self._counted.holds(each)]
        found += [(topic(SCHEDULES), each) for each in followed]
        return found + self._all_of(topic(TENANTS))

    def of_others(self, followed: Sequence[int]) -> list[Where]:
        """Those that hold a tenant, or deliveries, back and nothing else; raises KafkaException."""
        inputs = [each.place for home in followed for each in self._inputs(home)]
        found = sorted((place.topic, place.partition) for place in inputs)
        return found + self._all_of(self._settings.topic(DELIVERIES))

    def _all_of(self, topic: str) -> list[Where]:
        return [(topic, each) for each in self._partitions(topic)]

    def _partitions(self, topic: str) -> list[int]:
        if not self._shared.get(topic):
            # A topic that is being made has no partitions at first.
            self._shared[topic] = self._ends.partitions(topic, REQUEST_S)
        return self._shared[topic]

    def forget(self) -> None:
        """Ask anew how many partitions there are."""
        self._shared.clear()

    def name(self, topic: str) -> str:
        """A topic's name without the prefix."""
        return topic.removeprefix(self._settings.topic(""))

    def means(self, topic: str) -> str:
        """What a transaction that stays open there keeps back, as a clause."""
        return _MEANS.get(self.name(topic), _TENANT_INPUT)
