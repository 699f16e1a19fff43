"""`belfry doctor`: whether somebody delivers what there is to deliver.

Workers that only fire leave deliveries to others (`--role deliver`).  Where these have ended,
events come to their topics as ever, no worker is unwell, and webhooks wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from belfry.cli.check import Check, Status

if TYPE_CHECKING:
    from belfry.settings import SharedSettings

NAME: Final = "deliveries"
ASK_S: Final = 5.0


def delivery_checks(admin: Any, cluster: Any, settings: SharedSettings) -> Iterator[Check]:
    """One line where deliveries wait and the group that delivers has no member."""
    from confluent_kafka import KafkaException

    topic, group = settings.topic("deliveries"), f"{settings.cluster.app_id}.deliver"
    if topic not in cluster.topics:
        return
    try:
        if _has_members(admin, group):
            return
        begins, ends = _offsets(admin, topic, len(cluster.topics[topic].partitions), settings)
    except (KafkaException, TimeoutError) as error:
        yield Check(NAME, Status.SKIPPED, f"Kafka does not tell of the group {group}: {error}.")
        return
    yield from judge(group, begins, ends)


def judge(group: str, begins: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[Check]:
    """What it means that nobody is in the group; offsets by partition.

    `begins` are those up to which deliveries are done with.
    """
    # The last record may have the marker of its transaction behind it, which nobody reads.
    waiting = sum(max(0, end - begins[partition] - 1) for partition, end in ends.items())
    if waiting:
        yield Check(
            NAME,
            Status.PROBLEM,
            f"Nobody delivers: up to {waiting} deliveries wait, and the group {group} has no"
            " member.",
            "start a dispatcher (belfry worker --role deliver), or a worker without --role"
            " schedule; what waits is delivered then",
        )


def _has_members(admin: Any, group: str) -> bool:
    from confluent_kafka import KafkaError, KafkaException

    try:
        asked = admin.describe_consumer_groups([group], request_timeout=ASK_S)
        return bool(asked[group].result(ASK_S).members)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return False
        raise


def _offsets(
    admin: Any, topic: str, partitions: int, settings: SharedSettings
) -> tuple[dict[int, int], dict[int, int]]:
    """Up to where each partition is done with, and its end."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # its own re-exports

    from belfry.delivery.open_deliveries import progress_of

    def asked(spec: Any) -> dict[int, int]:
        wanted = {TopicPartition(topic, number): spec for number in range(partitions)}
        answers = admin.list_offsets(wanted, request_timeout=ASK_S)
        return {place.partition: each.result(ASK_S).offset for place, each in answers.items()}

    kinds: Any = OffsetSpec
    first, done = asked(kinds.earliest()), progress_of(settings)
    # Offsets of a group are forgotten after a while, and records as well.
    begins = {number: max(low, done[number].position) for number, low in first.items()}
    return begins, asked(kinds.latest())
