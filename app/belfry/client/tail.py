"""Events of a tenant as they fire: an iterator over committed records of ``belfry.fired.<tenant>``.

Where the tenant's policy shares an output, they are its records among those of ``belfry.fired``.

Without a group it stands at the topic's end from the moment it is made, so that it misses no later
event; a topic that appears only later is read from its beginning. With a group it goes on where the
group left off, and a record counts as read when the next is asked for.

    12:00:00  events("shop") is made; belfry.fired.shop does not exist yet
    12:00:01  a look each second: not there
    12:00:30  the tenant's first schedule is accepted, and the topic is made
    12:00:31  it is there: read from its beginning, so its first event is not missed
    12:00:35  the first event

Only committed records come: those of an open transaction are held back, and those of one that was
rolled back are never seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Any, Final, Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    Message,
    TopicPartition,
)

from belfry.client.closing import Closing
from belfry.client.decoding import Decoder
from belfry.client.errors import MissingTopic
from belfry.client.faults import ABSENT, missing, permanent
from belfry.client.fired_record import FiredRecord
from belfry.client.kafka import Cluster, headers_of

# Longest single wait; Python's signals are handled between two of them.
POLL_S: Final = 0.5
# Seconds between two looks for a topic that is not there.
LOOK_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Start:
    """Where to begin: now, or at the beginning; for a group that has been there, where it was.

    `only` is the tenant whose events are wanted, None for all that the topic has.
    """

    from_beginning: bool = False
    group: str | None = None
    only: str | None = None


class Events(Closing):
    """Iterator over a tenant's fired events; it ends by `close` alone.

    Use it as a context manager, in one thread at a time. `next_within` waits for a limited time.
    `exists` says whether the topic was there at the last look. Raises `Unavailable` for an error
    that will not pass by itself, and waits on otherwise.
    """

    def __init__(
        self, cluster: Cluster, topic: str, start: Start, group: str, decoder: Decoder
    ) -> None:
        self.topic = topic
        self.exists = True
        self._cluster = cluster
        self._start = start
        self._decoder = decoder
        self._read: Message | None = None
        self._consumer: Consumer = cluster.consumer(
            start.group or group,
            commits=start.group is not None,
            from_beginning=start.from_beginning,
        )
        try:
            self._begin()
        except MissingTopic:
            self.exists = False
        except BaseException:
            self._consumer.close()
            raise

    def _begin(self) -> None:
        """Take up the place to read from; `MissingTopic` where the topic is not there."""
        if self._start.group is not None:
            self._cluster.partitions(self._consumer, self.topic)
            self._consumer.subscribe([self.topic])
        elif self._start.from_beginning or not self.exists:
            found = self._cluster.partitions(self._consumer, self.topic)
            self._consumer.assign([TopicPartition(self.topic, p, OFFSET_BEGINNING) for p in found])
        else:
            self._consumer.assign(self._cluster.ends(self._consumer, self.topic))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> FiredRecord:
        while True:
            found = self.next_within(POLL_S)
            if found is not None:
                return found

    def next_within(self, timeout_s: float) -> FiredRecord | None:
        """The next event, or None if none comes within `timeout_s` seconds.

        With a group, asking for the next event says that the one before was handled.
        """
        self._mark_read()
        deadline = monotonic() + timeout_s
        while True:
            left = deadline - monotonic()
            if not self.exists and not self._appeared(left):
                return None
            message = self._consumer.poll(max(left, 0))
            if message is not None and self._good(message):
                self._read = message if self._start.group is not None else None
                event = fired_record(message, self._decoder)
                if self._start.only in (None, event.tenant):
                    return event
                # Somebody else's needs no handling.
                self._mark_read()
            if left <= 0:
                return None

    def _appeared(self, timeout_s: float) -> bool:
        """Whether the topic is there now; waits for the next look at it."""
        try:
            self._begin()
        except MissingTopic:
            self._consumer.poll(max(min(LOOK_S, timeout_s), 0))
            return False
        self.exists = True
        return True

    def _good(self, message: Message) -> bool:
        """Whether a message is a record; raises for an error that does not pass."""
        error = message.error()
        if error is None:
            return True
        if error.code() in ABSENT:
            raise missing(self.topic, self._cluster.servers)
        if permanent(error, self._start.group):
            raise self._cluster.unavailable(error, self.topic, self._start.group or "")
        return False

    def _mark_read(self) -> None:
        """Let the group remember the record that was handed out before, where there is a group."""
        if self._read is not None:
            self._consumer.store_offsets(message=self._read)
            self._read = None

    def close(self) -> None:
        """Leave the group, if there is one, and give the connections back."""
        self._consumer.close()


def fired_record(message: Message, decoder: Decoder) -> FiredRecord:
    """A message without an error as a fired event."""
    value: Any = message.value()
    headers = headers_of(message)
    kind, timestamp_ms = message.timestamp()
    return FiredRecord(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        timestamp_ms=None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp_ms,
        key=message.key(),
        value=value,
        headers=headers,
        event=None if value is None else decoder.record(value, headers),
    )
