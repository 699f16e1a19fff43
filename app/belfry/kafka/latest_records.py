"""The latest records of a topic, shortened and remembered; each look reads on from the last.

    look 1   partition 0   ···|─────────────────|            reads 2 000 offsets
    look 2                     ···|─────────────────|        reads 40: the new ones
                              └──┘ forgotten

So a look only costs the new records. The memory is bounded: `most` offsets of each partition, and
`MOST_IN_ALL` of all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

from confluent_kafka import Message

from belfry.host import machine
from belfry.kafka.tail_readers import TailReaders
from belfry.kafka.topic_tail import TopicTail

T = TypeVar("T")
MOST_IN_ALL: Final = 16_000


class ShortRecord(NamedTuple, Generic[T]):
    """The place of a record, and its remembered part."""

    partition: int
    offset: int
    value: T


class LatestLook(NamedTuple, Generic[T]):
    """The findings of a look, in order within each partition.

    `cut` are partitions that keep older records than these, `examined` counts offsets.
    """

    records: list[ShortRecord[T]]
    cut: frozenset[int]
    examined: int


class LatestRecords(Generic[T]):
    """The last `most` offsets of each partition of a topic; any thread may look, one at a time."""

    def __init__(
        self,
        readers: TailReaders,
        topic: str,
        most: int,
        shortener: Callable[[], Callable[[Message], T]],
    ) -> None:
        """`shortener` makes the function that shortens records, for one look in one thread."""
        self._readers = readers
        self._topic = topic
        self._most = most
        self._shortener = shortener
        self._lock = machine.Lock()
        self._records: dict[int, deque[ShortRecord[T]]] = {}
        # The next offset, by partition.
        self._next: dict[int, int] = {}

    def look(self) -> LatestLook[T]:
        """The present latest records; raises ConnectionError and KafkaException."""
        with self._lock:
            return self._readers.look(self._topic, self._read_on)

    def _read_on(self, tail: TopicTail) -> LatestLook[T]:
        most = min(self._most, MOST_IN_ALL // max(1, len(tail.rest)))
        starts = {each: max(tail.low(each), end - most) for each, end in tail.rest.items()}
        positions = {each: self._position(each, at, tail.rest[each]) for each, at in starts.items()}
        kept = {
            each: deque(old for old in self._records.get(each, ()) if at <= old.offset < position)
            for (each, position), at in zip(positions.items(), starts.values(), strict=True)
        }
        short = self._shortener()
        new = tail.since(positions, lambda message: _placed(message, short))
        # From here on nothing fails, so a failed look is repeated from its begin.
        self._records = kept
        for each in new:
            self._records[each.partition].append(each)
        self._next = dict(tail.rest)
        return LatestLook(
            [record for _, some in sorted(self._records.items()) for record in some],
            frozenset(each for each, at in starts.items() if at > tail.low(each)),
            sum(tail.rest[each] - at for each, at in starts.items()),
        )

    def _position(self, partition: int, start: int, end: int) -> int:
        """The offset to read on from; the start of the stretch if it lacks the remembered one."""
        at = self._next.get(partition, start)
        return at if start <= at <= end else start


def _placed(message: Message, short: Callable[[Message], T]) -> ShortRecord[T]:
    return ShortRecord(message.partition() or 0, message.offset() or 0, short(message))
