"""The reading of a redrive: the records of a range that are left to be sent again.

    belfry.rejected/0   41 other tenant   42   43   57 mark of 42   the end of the log
    to be sent                            42   42   43
                                               43

A range is read from its begin to the end of the log, behind transactions that are open, because
marks lie behind what they mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from belfry.client.errors import Unavailable
from belfry.client.kafka import Cluster, headers_of
from belfry.client.redrive_source import Place, RedriveCount, RedriveSource, TooMuchToRedrive
from belfry.client.watermarks import offsets_since, watermarks

TIMEOUT_S: Final = 30.0
# Waits so many seconds, and says whether to end now.
Pause = Callable[[float], bool]
_BATCH: Final = 500
_POLL_S: Final = 0.2


class RangeReader:
    """Reads the range of a source; belongs to one thread."""

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        source: RedriveSource,
        most_read: int | None,
        pause: Pause,
    ) -> None:
        """`group` is the readers' group id; more than `most_read` records are not counted.

        A mark of what is asked for makes up for itself and for one more record: the next refusal,
        where a request is refused again. So no redrive grows beyond the limit by what it sends, and
        at most three times `most_read` records are read.
        """
        self._cluster = cluster
        self._group = group
        self._source = source
        self._most_read = most_read
        self._pause = pause
        self._records_read = 0

    def consumer(self) -> Consumer:
        """A reader of committed records, for `records`."""
        return self._cluster.consumer(self._group, from_beginning=True, tells_ends=True)

    def count(self, *, until_any: bool = False) -> RedriveCount:
        """Records to send again, and sent ones; raises `Unavailable` and `TooMuchToRedrive`.

        With `until_any` it ends behind the first partition that has something to be sent, and waits
        for no transaction that is open: more may seem to be left than is, and never less.
        """
        self._records_read = 0
        found = RedriveCount()
        consumer = self.consumer()
        try:
            for partition in self._cluster.partitions(consumer, self._source.topic):
                end = self._end(partition, uncommitted=not until_any)
                self._look(self._read(consumer, partition, end), partition, found)
                if self._pause(0.0):
                    raise Unavailable(
                        "The process ends, so the redrive ends too. What was sent is marked: ask"
                        " another worker for the rest."
                    )
                if until_any and found.places:
                    break
        except KafkaException as error:
            raise self._cluster.unavailable(error.args[0], self._source.topic) from None
        finally:
            consumer.close()
        return found

    def _look(self, read: Iterator[Message], partition: int, found: RedriveCount) -> None:
        """Add the records of a partition; marks lie behind the records that they mark."""
        wanted: dict[int, tuple[str, str | None]] = {}
        for message in read:
            headers = headers_of(message)
            marked = self._source.marked(headers)
            is_done = marked is not None and wanted.pop(marked, None) is not None
            found.redriven += is_done
            self._counted(found.redriven)
            if marked is None and (each := self._source.wanted(message.timestamp()[1], headers)):
                wanted[message.offset() or 0] = each
        for offset, (code, hindrance) in wanted.items():
            if hindrance is None:
                found.codes[code] += 1
                found.places.append((partition, offset))
            else:
                found.stuck[hindrance] += 1

    def _counted(self, marks: int) -> None:
        """One more record was read, and so many marks of what is asked for by now.

        Raises `TooMuchToRedrive`.
        """
        self._records_read += 1
        most = self._most_read
        if most is not None and self._records_read > min(most + 2 * marks, 3 * most):
            raise TooMuchToRedrive(most)

    def _read(self, consumer: Consumer, partition: int, end: int) -> Iterator[Message]:
        """Committed records of the range, and those behind it, up to an offset."""
        since = TopicPartition(self._source.topic, partition, self._source.from_ms)
        (start,) = offsets_since(consumer, [since], TIMEOUT_S)
        if start.offset < 0:
            return
        consumer.assign([start])
        yield from self._up_to(consumer, start.offset, end)

    def _end(self, partition: int, *, uncommitted: bool) -> int:
        """Where the log ends now; with `uncommitted` behind transactions that are open, for a mark
        may lie there.
        """
        looks = self._cluster.consumer(self._group, uncommitted=uncommitted)
        try:
            place = TopicPartition(self._source.topic, partition)
            return watermarks(looks, place, TIMEOUT_S)[1]
        finally:
            looks.close()

    def records(self, consumer: Consumer, places: list[Place]) -> Iterator[Message]:
        """The records at these places, in their order."""
        by_partition: dict[int, set[int]] = {}
        for partition, offset in places:
            by_partition.setdefault(partition, set()).add(offset)
        for partition, offsets in by_partition.items():
            first, end = min(offsets), max(offsets) + 1
            consumer.assign([TopicPartition(self._source.topic, partition, first)])
            for message in self._up_to(consumer, first, end):
                if message.offset() in offsets:
                    yield message

    def _up_to(self, consumer: Consumer, reached: int, end: int) -> Iterator[Message]:
        """Records up to an offset, or until the process ends.

        Raises KafkaException if no record comes for long.
        """
        deadline = monotonic() + TIMEOUT_S
        while reached < end and not self._pause(0.0):
            messages = consumer.consume(_BATCH, _POLL_S)
            if not messages and monotonic() > deadline:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            for message in messages:
                offset, error = message.offset() or 0, message.error()
                if error is None:
                    reached = offset + 1
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    reached = max(reached, offset)
                elif error.fatal() or not error.retriable():
                    raise KafkaException(error)
            if messages:
                # The code that takes them may take a while.
                deadline = monotonic() + TIMEOUT_S
