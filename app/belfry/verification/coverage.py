"""Which output topics were read, how far back they reach, and the tenants whose events go there.

    changelog   09:00 a fired     10:00 b fired     11:00 c fired
    output      retention has removed records from before 09:30
    so          a may be gone: not checked          b and c have to be there

An event that is not found is a finding only where its topic was read, and reaches back far enough.
Everything else is counted as not checked, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# A topic that holds all that was ever written to it.
ALL_OF_IT = -1


class Coverage(NamedTuple):
    """The part of the outputs that a round can see.

    `floors` are the topics that were read: up to which instant (epoch ms) records of them may be
    gone (`ALL_OF_IT`: none are).  `topics` are those of tenants that have one by their policy;
    others fire to the `prefix` and their name.  Events of `repeats`, which are tenants, may come
    twice (AT_LEAST_ONCE), and those of the topics `repeated` might until lately.  Those of `held`
    may wait: their policy pauses or limits them.  Those of `spread` are spread over several
    partitions, or were.
    """

    prefix: str
    floors: Mapping[str, int]
    topics: Mapping[str, str] = {}
    repeats: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    spread: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()

    def topic_of(self, tenant: str) -> str:
        """Where the events of a tenant go."""
        return self.topics.get(tenant, self.prefix + tenant)

    def floor_of(self, name: bytes) -> int | None:
        """Up to when the events of a schedule's tenant may be gone; None: its topic is not read."""
        return self.floors.get(self.topic_of(tenant_of(name)))

    def may_be_gone(self, timestamp_ms: int) -> bool:
        """Whether some topic that was read may have lost events of this instant (epoch ms)."""
        return any(timestamp_ms <= floor_ms for floor_ms in self.floors.values())

    def tenants_of(self, topic: str) -> list[str]:
        """The tenants whose events go to a topic."""
        found = [tenant for tenant, of in self.topics.items() if of == topic]
        own = topic.removeprefix(self.prefix)
        if topic.startswith(self.prefix) and own not in self.topics:
            found.append(own)
        return found

    def may_repeat(self, topic: str) -> bool:
        """Whether events of this topic may come twice."""
        return topic in self.repeated or any(
            self.topic_of(tenant) == topic for tenant in self.repeats
        )


def tenant_of(name: bytes) -> str:
    """The tenant of a schedule's name, ``tenant/schedule_id``."""
    return name.partition(b"/")[0].decode(errors="replace")
