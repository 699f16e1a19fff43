"""Where a partition's log begins, ends and reaches an instant, also while its leader changes.

librdkafka asks the leader once and reports its answer.  A broker that has just started, or has just
lost the partition, says that it does not lead it: the question is asked again then.

    12:00:00.0  asked    not the leader of the partition
    12:00:00.1  asked    0 to 4711

Where several partitions are asked about at once, an error stands beside the offset of its
partition, which then looks like that of one without such a record.  So it is looked at, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic, sleep
from typing import Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from belfry.client.faults import ABSENT, MOVING

PAUSE_S: Final = 0.1
_ASK_AGAIN: Final = MOVING - ABSENT | {KafkaError.OFFSET_NOT_AVAILABLE}
_T = TypeVar("_T")


def watermarks(consumer: Consumer, place: TopicPartition, timeout_s: float) -> tuple[int, int]:
    """The first offset of a partition's log, and the offset behind its last record.

    What counts as the last record goes by the consumer's isolation.  Raises KafkaException, for a
    leader that is not found within `timeout_s` seconds as well.
    """

    def ask() -> tuple[int, int]:
        low, end = consumer.get_watermark_offsets(place, timeout_s, cached=False)
        return low, end

    return _answer(ask, timeout_s)


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

    return _answer(ask, timeout_s)


def _answer(ask: Callable[[], _T], timeout_s: float) -> _T:
    """The answer to a question, which is asked again while leaders change."""
    deadline = monotonic() + timeout_s
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in _ASK_AGAIN or monotonic() > deadline:
                raise
            sleep(PAUSE_S)
