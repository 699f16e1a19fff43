"""Where a partition's log begins, ends and reaches an instant, also while its leader changes.

librdkafka asks the leader once and reports its answer.  A broker that has just started, or has just
lost the partition, says that it does not lead it: the question is asked again then.  Where nobody
leads the partition, librdkafka keeps that, and answers each later question by it.  So the brokers
are asked for the leader before every other try.

    12:00:00.0  asked    not the leader of the partition
    12:00:00.1  asked    no leader: the partition is unknown
    12:00:00.2  asked    0 to 4711

Where several partitions are asked about at once, an error stands beside the offset of its
partition, which then looks like that of one without such a record.  So it is looked at, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from belfry.client.faults import ABSENT, MOVING

PAUSE_S: Final = 0.1
# Seconds for brokers to tell who leads.
LEADERS_S: Final = 1.0
# What librdkafka says of a partition that has no leader, where it knows of none.
LEADERLESS: Final = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001
_ASK_AGAIN: Final = MOVING - ABSENT | {KafkaError.OFFSET_NOT_AVAILABLE, LEADERLESS}
_T = TypeVar("_T")


def watermarks(consumer: Consumer, place: TopicPartition, timeout_s: float) -> tuple[int, int]:
    """The first offset of a partition's log, and the offset behind its last record.

    What counts as the last record goes by the consumer's isolation.  Raises KafkaException, for a
    leader that is not found within `timeout_s` seconds as well.
    """

    def ask() -> tuple[int, int]:
        low, end = consumer.get_watermark_offsets(place, timeout_s, cached=False)
        return low, end

    return _answer(ask, consumer, {place.topic}, timeout_s)


def offsets_since(
    consumer: Consumer, places: Sequence[TopicPartition], timeout_s: float
) -> list[TopicPartition]:
    """The first offset of each partition whose record is of an instant, or later.

    The instants (epoch ms) stand in place of the offsets.  If a partition has no such record, its
    offset is negative.  Raises KafkaException for the first partition that cannot be asked about,
    for a leader that is not found within `timeout_s` seconds as well.
    """

    def ask() -> list[TopicPartition]:
        found = consumer.offsets_for_times(list(places), timeout=timeout_s)
        for each in found:
            if each.error is not None:
                raise KafkaException(each.error)
        return found

    return _answer(ask, consumer, {each.topic for each in places}, timeout_s)


def look_for_leaders(consumer: Consumer, topics: Iterable[str]) -> None:
    """Let a client hear anew who leads the partitions of topics; silent where nobody tells."""
    for topic in topics:
        with suppress(KafkaException):
            consumer.list_topics(topic, timeout=LEADERS_S)


def _answer(ask: Callable[[], _T], consumer: Consumer, topics: set[str], timeout_s: float) -> _T:
    """The answer to a question about topics, which is asked again while leaders change."""
    deadline = monotonic() + timeout_s
    while True:
        try:
            return ask()
        except KafkaException as error:
            code = error.args[0].code()
            if code not in _ASK_AGAIN or monotonic() > deadline:
                if code == LEADERLESS:
                    # Partitions come from the brokers, so they know it.
                    raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE)) from error
                raise
            sleep(PAUSE_S)
            look_for_leaders(consumer, topics)
