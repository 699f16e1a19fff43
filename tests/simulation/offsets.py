"""What stands in for belfry's client of offsets: commits of a group without members.

A commit that nobody waits for travels in a task of its own, as it does in a client's loop, and its
end is heard by who polls.
"""

from __future__ import annotations

from queue import Empty
from typing import Any, Final

from confluent_kafka import KafkaError, TopicPartition

from tests.simulation.primitives import SimSimpleQueue
from tests.simulation.readers import SimConsumer
from tests.simulation.stage import here

# `socket.timeout.ms`, unless a client says another.
ANSWER_MS: Final = 60_000


class SimOffsets(SimConsumer):
    """`OffsetClient`."""

    def __init__(self, properties: dict[str, Any], **_: Any) -> None:
        super().__init__(properties)
        self._on_commit = properties.get("on_commit")
        self._answer_ms = float(properties.get("socket.timeout.ms", ANSWER_MS))
        self._answers = SimSimpleQueue()

    def committed(self, places: list[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        """Offsets that the group has committed, with their texts; -1001 where it has none."""
        self._ask(timeout)
        kept, found = self._machine.broker.offsets, []
        for place in places:
            offset, text = kept.get((self._group, place.topic, place.partition), (-1001, ""))
            found.append(TopicPartition(place.topic, place.partition, offset, text))
        return found

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        """Commit offsets with their texts; whoever does not ask asynchronously waits."""
        if not asynchronous:
            self._ask(self._answer_ms / 1000)
            return self._keep(offsets)
        here().spawn("commit of offsets", lambda: self._send(offsets))
        return []

    def poll(self, timeout: float = -1) -> None:
        """Wait for the end of a commit without a waiting caller, and call `on_commit`."""
        try:
            error, places = self._answers.get(timeout=timeout)
        except Empty:
            return
        if self._on_commit is not None:
            self._on_commit(error, places)

    def _send(self, offsets: list[TopicPartition]) -> None:
        machine = self._machine
        if machine.travel(self._answer_ms):
            kept = self._keep(offsets)
            if machine.travel(self._answer_ms):
                self._answers.put((None, kept))
                return
        self._answers.put((KafkaError(KafkaError._TIMED_OUT, "no answer"), []))

    def _keep(self, offsets: list[TopicPartition]) -> list[TopicPartition]:
        for place in offsets:
            key = (self._group, place.topic, place.partition)
            self._machine.broker.offsets[key] = (place.offset, place.metadata or "")
        return offsets
