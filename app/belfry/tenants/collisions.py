"""Which tenants' topics cannot exist beside one another, and whose the name is then.

In Kafka's metrics a dot and an underscore are the same, so Kafka makes no topic `a_b` where there
is an `a.b`.  Whose a name is follows from what lasts and what every worker reads alike: topics that
are there, and policies.  A request never decides it, least of all one that is refused.

    topics that are there   belfry.fired.a.b
    policies                a_b, a-c
    a request of a_b        tenant_collides: the name is that of a.b, whose topic is there
    a request of a-c        taken in: a dash is a dash in metrics, too
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

NOTHING: Final[frozenset[str]] = frozenset()


def metric_name(topic: str) -> str:
    """What Kafka's metrics call a topic."""
    return topic.replace(".", "_")


class Collisions:
    """Topics that are there, and those that policies reserve for their tenants.

    Looked up by the name that Kafka's metrics give them, so a question costs the same with a
    hundred thousand topics.  Belongs to the directory's lock.
    """

    def __init__(self, prefix: str = "") -> None:
        """Topics that begin with the prefix are named after their tenants, and counted."""
        self._prefix = prefix
        self._there: dict[str, frozenset[str]] = {}
        self._reserved: dict[str, frozenset[str]] = {}
        # Topics that are there and not reserved.
        self._strange: set[str] = set()

    def topics(self, come: Iterable[str], gone: Iterable[str]) -> set[str]:
        """Note topics that are there now, and those that are not; the names in metrics of both."""
        come, gone = list(come), list(gone)
        touched = _note(self._there, come, gone)
        self._look(come, gone)
        return touched

    def reservations(self, come: Iterable[str], gone: Iterable[str]) -> set[str]:
        """The same of topics that a policy's tenant has by its name."""
        come, gone = list(come), list(gone)
        touched = _note(self._reserved, come, gone)
        self._look(come, gone)
        return touched

    def _look(self, *several: list[str]) -> None:
        for topic in (topic for topics in several for topic in topics):
            name = metric_name(topic)
            there = topic in self._there.get(name, NOTHING)
            mine = there and topic.startswith(self._prefix)
            if mine and topic not in self._reserved.get(name, NOTHING):
                self._strange.add(topic)
            else:
                self._strange.discard(topic)

    def known(self, topic: str) -> bool:
        """Whether a topic is there, or reserved."""
        name = metric_name(topic)
        return topic in self._there.get(name, NOTHING) or topic in self._reserved.get(name, NOTHING)

    def reserved(self, topic: str) -> bool:
        """Whether a policy reserves a topic."""
        return topic in self._reserved.get(metric_name(topic), NOTHING)

    @property
    def unreserved(self) -> int:
        """How many topics are there that are named after a tenant, and that no policy reserves."""
        return len(self._strange)

    def rival(self, topic: str) -> str | None:
        """The topic that keeps this one from being there, or None.

        A topic that is there has its name.  Else one that is has it; else a reserved one, and of
        two such the first by the alphabet.
        """
        there = self._there.get(metric_name(topic), NOTHING)
        first = min(there or self._reserved.get(metric_name(topic), NOTHING), default=topic)
        return None if topic in there or first == topic else first


def _note(noted: dict[str, frozenset[str]], come: Iterable[str], gone: Iterable[str]) -> set[str]:
    touched = set()
    for topic in gone:
        name = metric_name(topic)
        noted[name] = noted.get(name, NOTHING) - {topic}
        touched.add(name)
    for topic in come:
        name = metric_name(topic)
        noted[name] = noted.get(name, NOTHING) | {topic}
        touched.add(name)
    return touched
