"""What brokers say of topics, where topics are made or get partitions amid a run: some hear late.

    0 ms      the controller makes belfry.homes, and gives belfry.changelog partitions
    3 ms      broker 0 says so
    2 400 ms  broker 1 does; whoever asks it meanwhile is told of the belfry of before

Each broker hears of all changes in the order in which they were made.  A client stays with one.
Writers and readers find what they name by its leader, which knows it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.simulation.broker import Broker, Log

BROKERS: Final = 3
TOPICS: Final = ("belfry.homes", "belfry.changelog", "belfry.schedules")
# How late a broker hears of a change, in ms: mostly at once.
LATE_MS: Final = (2.0, 5.0, 400.0, 3_000.0, 9_000.0)


class Hearsay:
    """Which partitions each broker knows of."""

    def __init__(
        self, broker: Broker, random: Random, changed: Callable[[str], None] = lambda _topic: None
    ) -> None:
        """`changed` hears of each topic that gets partitions, or is made."""
        self._broker = broker
        self._random = random
        self._changed = changed
        # Topic and partitions before, and when each broker hears that there are more.
        self._changes: list[tuple[str, int, list[float]]] = []
        # How often somebody was told of what was over.
        self.stale = 0

    def changes(self, topic: str, before: int) -> None:
        """A topic gets partitions now, or is made: it had so many."""
        if topic not in TOPICS:
            return
        now_ms, last = self._broker.stage.now_ms, [0.0] * BROKERS
        if self._changes:
            last = self._changes[-1][2]
        heard = [max(each, now_ms + self._random.choice(LATE_MS)) for each in last]
        self._changes.append((topic, before, heard))
        self._changed(topic)

    def some(self) -> int:
        """The broker that a client stays with."""
        return self._random.randrange(BROKERS)

    def known(self, at: int) -> dict[str, list[Log]]:
        """Topics and their partitions, as this broker knows them."""
        found, now_ms = dict(self._broker.topics), self._broker.stage.now_ms
        for topic, before, heard in reversed(self._changes):
            if heard[at] > now_ms:
                self.stale += 1
                found[topic] = found[topic][:before]
                if not before:
                    del found[topic]
        return found
