"""Where a partition's log begins and ends, also while its leader changes.

librdkafka asks the leader once and reports its answer.  A broker that has just started, or has just
lost the partition, says that it does not lead it: the question is asked again then.

    12:00:00.0  asked    not the leader of the partition
    12:00:00.1  asked    0 to 4711
"""

from __future__ import annotations

from time import monotonic, sleep
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from belfry.client.faults import ABSENT, MOVING

PAUSE_S: Final = 0.1
_ASK_AGAIN: Final = MOVING - ABSENT | {KafkaError.OFFSET_NOT_AVAILABLE}


def watermarks(consumer: Consumer, place: TopicPartition, timeout_s: float) -> tuple[int, int]:
    """The first offset of a partition's log, and the offset behind its last record.

    What counts as the last record goes by the consumer's isolation.  Raises KafkaException, for a
    leader that is not found within `timeout_s` seconds as well.
    """
    deadline = monotonic() + timeout_s
    while True:
        try:
            low, end = consumer.get_watermark_offsets(place, timeout_s, cached=False)
        except KafkaException as error:
            if error.args[0].code() not in _ASK_AGAIN or monotonic() > deadline:
                raise
            sleep(PAUSE_S)
        else:
            return low, end
