"""`belfry doctor`: whether a dispatcher runs for the deliveries that wait.

Workers that only fire leave deliveries to others (`--role deliver`).  Where these have ended,
events come to their topics as ever, no worker is unwell, and webhooks wait, until the topic's
retention removes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from belfry.cli.check import Check, Status

if TYPE_CHECKING:
    from belfry.settings import SharedSettings

NAME: Final = "deliveries"
ASK_S: Final = 5.0
REMOVED: Final = "belfry_deliveries_removed_total"
LOST: Final = (
    "keep dispatchers running, and retention.ms of the topic longer than they may be away; the"
    " events are in the tenants' topics all the same (docs/runbooks/BelfryDeliveriesRemoved.md)"
)


def delivery_checks(admin: Any, cluster: Any, settings: SharedSettings) -> Iterator[Check]:
    """One line where deliveries wait and the group that delivers has no member."""
    from confluent_kafka import KafkaException

    from belfry.kafka.causes import cause_of

    topic, group = settings.topic("deliveries"), f"{settings.cluster.app_id}.deliver"
    if topic not in cluster.topics:
        return
    try:
        if _has_members(admin, group):
            return
        found = _offsets(admin, topic, len(cluster.topics[topic].partitions), settings)
    except (KafkaException, TimeoutError) as error:
        yield Check(
            NAME, Status.SKIPPED, f"Kafka does not tell of the group {group}: {cause_of(error)}."
        )
        return
    yield from judge(group, found)


class Offsets(NamedTuple):
    """Offsets of the topic of deliveries, by partition.

    Up to `done` deliveries are done with; `kept` is the first one that is kept, `ends` the end.
    """

    done: Mapping[int, int]
    kept: Mapping[int, int]
    ends: Mapping[int, int]


def judge(group: str, found: Offsets) -> Iterator[Check]:
    """Findings on a group without members: events that were lost, and events that wait."""
    begins = {number: max(kept, found.done[number]) for number, kept in found.kept.items()}
    # A group whose position was forgotten says nothing of earlier deliveries.
    lost = sum(
        max(0, kept - found.done[number])
        for number, kept in found.kept.items()
        if found.done[number] >= 0
    )
    if lost:
        yield Check(
            NAME,
            Status.PROBLEM,
            f"Up to {lost} deliveries were removed by the topic's retention before anybody made"
            f" them: the group {group} has no member.",
            LOST,
        )
    # The last record may have the marker of its transaction behind it, which nobody reads.
    waiting = sum(max(0, end - begins[number] - 1) for number, end in found.ends.items())
    if waiting:
        yield Check(
            NAME,
            Status.PROBLEM,
            f"Nobody delivers: up to {waiting} deliveries wait, and the group {group} has no"
            " member.",
            "start a dispatcher (belfry worker --role deliver), or a worker without --role"
            " schedule; what waits is delivered then",
        )


def removed_checks(metrics: str) -> Iterator[Check]:
    """Deliveries that were removed before they arrived, from a worker's page of metrics."""
    lost = int(figure(metrics, f'{REMOVED}{{topic="deliveries"}}') or 0)
    if lost:
        detail = (
            f"Up to {lost} deliveries were removed by the topic's retention before this worker,"
            " since its start, could make them."
        )
        yield Check(NAME, Status.RISK, detail, LOST)


def figure(metrics: str, series: str) -> float | None:
    """The value of a series on a page of metrics, or None if the page lacks the series."""
    line = next((each for each in metrics.splitlines() if each.startswith(series + " ")), None)
    return None if line is None else float(line.rpartition(" ")[2])


def _has_members(admin: Any, group: str) -> bool:
    from confluent_kafka import KafkaError, KafkaException

    try:
        asked = admin.describe_consumer_groups([group], request_timeout=ASK_S)
        return bool(asked[group].result(ASK_S).members)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return False
        raise


def _offsets(admin: Any, topic: str, partitions: int, settings: SharedSettings) -> Offsets:
    """Up to where each partition is done with, from where on it is kept, and its end."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # its own re-exports

    from belfry.delivery.open_deliveries import progress_of

    def asked(spec: Any) -> dict[int, int]:
        wanted = {TopicPartition(topic, number): spec for number in range(partitions)}
        answers = admin.list_offsets(wanted, request_timeout=ASK_S)
        return {place.partition: each.result(ASK_S).offset for place, each in answers.items()}

    kinds: Any = OffsetSpec
    # Offsets of a group are forgotten after a while: they are negative then.
    done = {number: each.position for number, each in progress_of(settings).items()}
    return Offsets(done, asked(kinds.earliest()), asked(kinds.latest()))
