"""Where users send requests, and where their schedules live, in worlds where that is not the same.

    spread 3     ash ─► crc32(schedule id) % 3 = 2 ─► murmur2("ash/2")     one of three shards
    own topic    belfry.schedules.ash ─► the partition where ash lives ─► the shard
    added        a partition that the changelog lacks ─► where the tenant lives

Users write by the tenant's name, or to any partition that was added, or to the tenant's own topic.
Written against the specification, without a line of `schedules/identity.py`.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final
from zlib import crc32

from tests.simulation.murmur import partition_of
from tests.simulation.sent import SOURCE, Sent

if TYPE_CHECKING:
    from tests.simulation.broker import Broker

# Which share of a tenant's requests goes to its own topic.
OWN: Final = 0.7
# Which share goes to partitions that were added, where there are some.
ADDED: Final = 0.5
GROUP: Final = "belfry.inlets"


class Placing:
    """Draws who is spread and who has a topic, and where each request goes."""

    def __init__(
        self,
        broker: Broker,
        random: Random,
        tenants: tuple[str, ...],
        partitions: int,
        spread: float,
        inputs: float,
    ) -> None:
        self._broker = broker
        self._random = random
        self._partitions = partitions
        self.spreads = {
            each: random.choice((2, 3, 5)) for each in tenants if random.random() < spread
        }
        self._inputs = {
            each: random.choice((1, 1, 2)) for each in tenants if random.random() < inputs
        }
        # How often requests went which way.
        self.struck: list[str] = []

    def open(self) -> None:
        """Make the topics of tenants."""
        for tenant, partitions in self._inputs.items():
            self._broker.create(f"{SOURCE}.{tenant}", partitions)
            config = {"message.timestamp.type": "LogAppendTime"}
            self._broker.configs[f"{SOURCE}.{tenant}"] = config

    def place(self, sent: Sent, partition: int) -> int:
        """Say where a request goes, and where its schedule lives; the partition of its topic."""
        random, shards = self._random, self.spreads.get(sent.tenant, 1)
        route = sent.tenant
        if shards > 1:
            route = f"{route}/{crc32(sent.schedule_id.encode()) % shards}"
            self.struck.append("to a shard")
            # Those of a tenant that is spread are refused.
            sent.fields.pop("group", None)
        sent.home = partition_of(route.encode(), self._partitions)
        added = len(self._broker.topics[SOURCE]) - self._partitions
        own = self._inputs.get(sent.tenant)
        if own and not sent.schema_id and random.random() < OWN:
            self.struck.append("to an own topic")
            sent.topic, partition = f"{SOURCE}.{sent.tenant}", random.randrange(own)
        elif added and random.random() < ADDED:
            self.struck.append("to an added partition")
            partition = self._partitions + random.randrange(added)
        # What a tenant writes to its own topic counts in time, unless it lives elsewhere.
        lives_there = route == sent.tenant
        sent.stray = not lives_there if sent.topic != SOURCE else partition != sent.home
        return partition

    def add(self) -> None:
        """One more partition of the input."""
        self._broker.extend(SOURCE, len(self._broker.topics[SOURCE]) + 1)

    def handed_over(self) -> bool:
        """Whether all that lies in topics of tenants has been sent on."""
        for tenant in self._inputs:
            for log in self._broker.topics[f"{SOURCE}.{tenant}"]:
                place = (GROUP, log.topic, log.partition)
                last = max((e.offset for e in log.entries if e.committed), default=-1)
                if self._broker.offsets.get(place, (0, ""))[0] <= last:
                    return False
        return True
