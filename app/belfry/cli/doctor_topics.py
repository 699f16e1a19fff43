"""Checks of `belfry doctor` on belfry's topics: settings, replicas, refusals and dead letters.

Refused requests, and deliveries that were given up, have to be looked at by somebody.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import time
from typing import TYPE_CHECKING, Any, Final

from belfry.cli.check import Check, Status

if TYPE_CHECKING:
    from belfry.kafka.topic_rules import TopicProblem
    from belfry.settings import SharedSettings

# Partitions that are named, of many.
NAMED: Final = 5
ASK_S: Final = 5.0
LATELY_S: Final = 3_600
LETTERS: Final = {
    "undelivered": (
        "deliveries were given up",
        "belfry deliveries list shows them, belfry deliveries replay sends them again",
    ),
    "rejected": (
        "requests were refused",
        "belfry redrive rejected TENANT --from … --dry-run counts them by code",
    ),
}


def topic_checks(admin: Any, hidden: set[str], settings: SharedSettings) -> Iterator[Check]:
    """Topics that are missing or not set as promises need it; `hidden` topics are not judged."""
    from confluent_kafka import KafkaException

    from belfry.kafka import topics

    try:
        absent = topics.missing(admin, settings)
        problems = topics.problems(admin, settings)
    except KafkaException as error:
        yield Check("topics", Status.PROBLEM, f"Kafka refuses to tell: {error.args[0].str()}.")
        return
    if hidden:
        names = ", ".join(sorted(hidden))
        yield Check("topics", Status.SKIPPED, f"Hidden from this user (see rights): {names}.")
    missing = [spec.name for spec in absent if spec.name not in hidden]
    if missing:
        detail = f"Missing: {', '.join(missing)}."
        yield Check("topics", Status.PROBLEM, detail, "belfry topics create")
    yield from map(finding, problems)
    if not absent and not any(each.checked for each in problems):
        found = topics.wanted_topics(settings, 1)
        yield Check("topics", Status.OK, f"All {len(found)} topics are as they should be.")


def finding(each: TopicProblem, check: str = "topics") -> Check:
    """A line about a topic, or a broker, that is not set as promises need it."""
    status = Status.PROBLEM if each.fatal else Status.RISK if each.checked else Status.SKIPPED
    why = f" Why: {each.why}." if each.why else ""
    return Check(check, status, f"{each.topic}: {each.what}.{why}", each.cure)


def replica_checks(cluster: Any, settings: SharedSettings) -> Iterator[Check]:
    """Partitions without a leader, and those with replicas that lag; empty if all are well.

    It is in the metadata that each client gets, so nothing more is asked. Tenants' output topics
    count too, as far as their names begin with belfry's prefix.
    """
    leaderless, lagging = [], []
    for name, topic in sorted(cluster.topics.items()):
        if not name.startswith(settings.cluster.topic_prefix):
            continue
        for number, each in sorted(topic.partitions.items()):
            if each.leader < 0:
                leaderless.append(f"{name}/{number}")
            elif len(each.isrs) < len(each.replicas):
                lagging.append(f"{name}/{number}")
    if leaderless:
        yield Check(
            "replicas",
            Status.PROBLEM,
            f"Nobody leads {_some(leaderless)}: nothing can be written there, and what fires to"
            " such a partition waits.",
            "start the brokers that hold its replicas",
        )
    if lagging:
        yield Check(
            "replicas",
            Status.RISK,
            f"Replicas are not in sync: {_some(lagging)}. With the next broker that ends, writes"
            " may wait.",
            "look which broker is down or slow; replicas catch up by themselves",
        )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def letter_checks(admin: Any, cluster: Any, settings: SharedSettings) -> Iterator[Check]:
    """One line for each topic in which something came to lie lately: refused, or given up.

    Both topics are kept for weeks, so their records may be old. Records of the last hour are
    counted, by the offsets of that instant.
    """
    from confluent_kafka import KafkaException

    for short, (what, to_do) in LETTERS.items():
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
    # No offset (-1) if no record is so new.
    return sum(ends[number] - begin for number, begin in begins.items() if begin >= 0)
