"""What `belfry doctor` sees of records that somebody has to look at: refused, and given up.

Both topics are kept for weeks, so what lies there may be old news.  What came within the last hour
is counted, by the offsets of that instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import time
from typing import TYPE_CHECKING, Any, Final

from belfry.cli.check import Check, Status

if TYPE_CHECKING:
    from belfry.settings import SharedSettings

ASK_S: Final = 5.0
LATELY_S: Final = 3_600
TOPICS: Final = {
    "undelivered": (
        "deliveries were given up",
        "belfry deliveries list shows them, belfry deliveries replay sends them again",
    ),
    "rejected": (
        "requests were refused",
        "belfry redrive rejected TENANT --from … --dry-run counts them by code",
    ),
}


def letter_checks(admin: Any, cluster: Any, settings: SharedSettings) -> Iterator[Check]:
    """One line for each topic in which something came to lie lately."""
    from confluent_kafka import KafkaException

    for short, (what, to_do) in TOPICS.items():
        topic = settings.topic(short)
        if topic not in cluster.topics:
            continue
        try:
            lately = _since(admin, topic, len(cluster.topics[topic].partitions))
        except KafkaException as error:
            detail = f"Kafka does not tell of {topic}: {error.args[0].str()}."
            yield Check("refused", Status.SKIPPED, detail)
            continue
        if lately:
            # Each transaction has a marker, which takes an offset.
            detail = f"up to {lately} {what} within the last hour ({topic})."
            yield Check("refused", Status.RISK, detail, to_do)


def _since(admin: Any, topic: str, partitions: int) -> int:
    """How many offsets came within the last hour; markers of transactions are among them."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # its own re-exports

    def asked(spec: Any) -> dict[int, int]:
        wanted = {TopicPartition(topic, number): spec for number in range(partitions)}
        answers = admin.list_offsets(wanted, request_timeout=ASK_S)
        return {place.partition: each.result(ASK_S).offset for place, each in answers.items()}

    kinds: Any = OffsetSpec
    begins = asked(kinds.for_timestamp(int((time() - LATELY_S) * 1000)))
    ends = asked(kinds.latest())
    # No offset (-1) where nothing is so new.
    return sum(ends[number] - begin for number, begin in begins.items() if begin >= 0)
