"""Tenants' topics that cannot exist beside one another, and the tenant that has the name then.

In Kafka's metrics a dot and an underscore are the same, so Kafka makes no topic `a_b` if there is
an `a.b`. Which tenant has a name is decided by facts that last and that every worker reads alike:
topics that exist, and policies. A request never decides it, least of all a refused one.

    topics that exist       belfry.fired.a.b
    policies                a_b, a-c
    a request of a_b        tenant_collides: the name is that of a.b, whose topic exists
    a request of a-c        taken in: a dash stays a dash in metrics
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

NOTHING: Final[frozenset[str]] = frozenset()


def metric_name(topic: str) -> str:
    """The name of a topic in Kafka's metrics."""
    return topic.replace(".", "_")


class Collisions:
    """Topics that exist, and those that policies reserve for their tenants.

    They are looked up by their names in Kafka's metrics, so a question costs the same with a
    hundred thousand topics. The directory's lock guards them.
    """

    def __init__(self, prefix: str = "") -> None:
        """Topics that begin with `prefix` are named after their tenants, and counted."""
        self._prefix = prefix
        self._there: dict[str, frozenset[str]] = {}
        self._reserved: dict[str, frozenset[str]] = {}
        # Topics that exist and are not reserved.
        self._strange: set[str] = set()

    def topics(self, come: Iterable[str], gone: Iterable[str]) -> set[str]:
        """Note new topics, and topics that are gone; returns the names of both in metrics."""
        come, gone = list(come), list(gone)
        touched = _note(self._there, come, gone)
        self._look(come, gone)
        return touched

    def reservations(self, come: Iterable[str], gone: Iterable[str]) -> set[str]:
        """The same for topics that a tenant with a policy has by its name."""
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
        """Whether a topic exists, or is reserved."""
        name = metric_name(topic)
        return topic in self._there.get(name, NOTHING) or topic in self._reserved.get(name, NOTHING)

    def reserved(self, topic: str) -> bool:
        """Whether a policy reserves a topic."""
        return topic in self._reserved.get(metric_name(topic), NOTHING)

    @property
    def unreserved(self) -> int:
        """The number of topics that exist, are named after a tenant, and have no reservation."""
        return len(self._strange)

    def rival(self, topic: str) -> str | None:
        """The topic that keeps this one from being made, or None.

        A topic that exists has its name. If it does not exist, another one that exists has the
        name; else a reserved one, and of two reserved ones the first by the alphabet.
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
