"""Reading topics for `belfry verify`: committed records, from a position to an earlier end.

A pass compares topics with one another, so each is read to an end that was asked for at a known
moment, and not as far as it goes. A reader with `read_committed` goes to the last stable offset:
records behind an open transaction are not shown, and `hides` says where that is so.

It joins no group and commits no offset, so the brokers keep no trace of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from belfry.cli.failures import CommandError
from belfry.kafka.record_headers import proof_of
from belfry.verification.rows import Logged

if TYPE_CHECKING:
    from belfry.client.kafka import Cluster
    from belfry.store.row_judge import Judge
    from belfry.verification.findings import Breached

# confluent-kafka ships these without types.
EARLIEST: Final[Any] = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: Final[Any] = OffsetSpec.latest()  # type: ignore[no-untyped-call]
# The client needs the name of a group, though it joins none.
GROUP: Final = "belfry-verifies-without-a-group"
# Records that are taken from the client at once.
BATCH: Final = 2_000
# Seconds without an answer, or without a record, after which the brokers count as silent.
ANSWER_S: Final = 30.0


# Offsets by topic and partition.
Places = Mapping[tuple[str, int], int]


class ReadableRange(NamedTuple):
    """The readable part of a partition: first offset, and offset of the first open record."""

    low: int
    end: int


class NothingComes(CommandError):
    """A topic was not read to its end: brokers answer, and send no records."""


class TopicReader:
    """Reads any topics of one cluster, read_committed, without a group.

    Methods block, and raise `BelfryError` where brokers do not answer. One read is under way at a
    time.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._consumer = cluster.consumer(GROUP, from_beginning=True, tells_ends=True)
        self._admin = cluster.admin()
        cluster.reach(self._consumer)

    def topics(self) -> dict[str, list[int]]:
        """All topics, with their partitions."""
        found = self._cluster.reach(self._consumer).topics
        return {name: sorted(topic.partitions) for name, topic in found.items()}

    def spans(self, topics: Mapping[str, Iterable[int]]) -> dict[str, dict[int, ReadableRange]]:
        """Where partitions begin and end for a reader of committed records; by topic."""
        places = [TopicPartition(name, each) for name in topics for each in topics[name]]
        lows = self._asked(places, EARLIEST)
        ends = self._asked(places, LATEST)
        found: dict[str, dict[int, ReadableRange]] = {name: {} for name in topics}
        for place in places:
            span = ReadableRange(lows[place], ends[place])
            found[place.topic][place.partition] = span
        return found

    def hides(self, topic: str, spans: Mapping[int, ReadableRange]) -> set[int]:
        """Partitions in which an open transaction holds back records behind the end of a span."""
        places = [TopicPartition(topic, each) for each in spans]
        uncommitted = IsolationLevel.READ_UNCOMMITTED
        ends = self._asked(places, LATEST, uncommitted)
        return {each.partition for each in places if ends[each] > spans[each.partition].end}

    def log_ends(self, topics: Mapping[str, Iterable[int]]) -> dict[tuple[str, int], int]:
        """Where partitions end, including records that an open transaction still holds back."""
        places = [TopicPartition(name, each) for name in topics for each in topics[name]]
        ends = self._asked(places, LATEST, IsolationLevel.READ_UNCOMMITTED)
        return {(place.topic, place.partition): end for place, end in ends.items()}

    def _asked(
        self,
        places: list[TopicPartition],
        spec: Any,
        level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[TopicPartition, int]:
        """One offset of each partition: its first, or its end for readers of this isolation
        level.
        """
        asked = self._admin.list_offsets(
            dict.fromkeys(places, spec), isolation_level=level, request_timeout=ANSWER_S
        )
        try:
            return {place: each.result().offset for place, each in asked.items()}
        except KafkaException as error:
            topic = next((place.topic for place in places), "")
            raise self._cluster.unavailable(error.args[0], topic) from None

    def read(self, starts: Places, ends: Places) -> Iterator[list[Message]]:
        """Records of partitions from these offsets up to before those.

        They come in batches, in order within a partition; partitions mix. Raises `NothingComes`
        if no record that is still to be read comes for `ANSWER_S` seconds: a transaction may be
        open in a partition, while others grow behind their ends.
        """
        at = {place: start for place, start in starts.items() if start < ends[place]}
        self._consumer.assign([TopicPartition(*place, start) for place, start in at.items()])
        moved = monotonic()
        while at:
            found: list[Message] = []
            for message in self._some():
                if self._take(message, at, ends, found):
                    moved = monotonic()
            if found:
                yield found
                # The code that takes them may take a while.
                moved = monotonic()
            if monotonic() - moved > ANSWER_S:
                topics = ", ".join(sorted({topic for topic, _ in at}))
                raise NothingComes(
                    f"{topics} was not read to its end: nothing came for {ANSWER_S:.0f} s. Look at"
                    " the brokers with `belfry doctor`, and run the command again."
                )
        self._consumer.unassign()

    def _some(self) -> list[Message]:
        """Records as soon as there are any: to ask for many at once would wait for them all."""
        first = self._consumer.poll(0.1)
        return [] if first is None else [first, *self._consumer.consume(BATCH, 0.002)]

    def _take(
        self,
        message: Message,
        at: dict[tuple[str, int], int],
        ends: Places,
        found: list[Message],
    ) -> bool:
        """Take a record into `found`, or note that a partition has come to its end; whether it is
        of a partition that is still to be read.

        Offsets have gaps where markers and aborted records are, so a partition may end without a
        record at `end - 1`; the client then tells its end.
        """
        place, error = (message.topic() or "", message.partition() or 0), message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            if error.fatal() or not error.retriable():
                raise self._cluster.unavailable(error, message.topic() or "")
            return False
        if place not in at:
            return False
        offset = message.offset() or 0
        if error is None and offset < ends[place]:
            found.append(message)
        # The end of a partition is told by the offset that comes next.
        at[place] = offset + (error is None)
        if at[place] >= ends[place]:
            del at[place]
        return True

    def key_at(self, topic: str, partition: int, offset: int) -> bytes | None:
        """The key of this very record, None where it is not in the log any more."""
        place = topic, partition
        for messages in self.read({place: offset}, {place: offset + 1}):
            return next((each.key() for each in messages if each.offset() == offset), None)
        return None

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()


def with_name(reader: TopicReader, found: Breached) -> Breached:
    """A finding of several schedules with the name of the oldest, which memory has not."""
    key = reader.key_at(*found.spot) or b"?"
    oldest = key.decode(errors="backslashreplace")
    return found._replace(found=f"{found.found}; the oldest is {oldest}")


def logged(message: Message, judge: Judge) -> Logged:
    """A record of the changelog without its proof, and whether a worker wrote it."""
    key, offset = message.key() or b"", message.offset() or 0
    known, value = judge.row(offset, key, message.value(), partial(proof_of, message))
    return Logged(offset, message.timestamp()[1], key, value, not known)
