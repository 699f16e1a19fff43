"""Who owns what, as Kafka knows it: no worker's HTTP port is needed for that.

Kafka tells the members of the group and what each was assigned.  The last record of a changelog
tells when its owner last committed: an owner that works does so twice a minute, however idle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from belfry.cli.check import Check, Status
from belfry.cli.shown import partitions_text

if TYPE_CHECKING:
    from belfry.settings import SharedSettings

ASK_S: Final = 5.0
SILENT_S: Final = 90.0
STABLE: Final = "STABLE"


class GroupMember(NamedTuple):
    """A member of the group."""

    name: str
    host: str
    owns: tuple[int, ...]
    others: tuple[str, ...] = ()
    """Topics of requests that it was assigned, and that are not this belfry's."""


class GroupFacts(NamedTuple):
    """All that is judged: partitions of input and of state, and seconds since the last commits."""

    group: str
    state: str
    workers: Sequence[GroupMember]
    partitions: int
    silent_s: Mapping[int, float]


def group_checks(admin: Any, settings: SharedSettings) -> Iterator[Check]:
    """One line for each worker, and one for each thing that is wrong."""
    from confluent_kafka import KafkaException

    try:
        found = _ownership(admin, settings)
    except KafkaException as error:
        yield Check("group", Status.PROBLEM, f"Kafka refuses to tell: {error.args[0].str()}.")
        return
    yield from judge(found)


def judge(found: GroupFacts) -> Iterator[Check]:
    """The findings that follow from the facts."""
    if not found.workers:
        detail = f"No worker is a member of the group {found.group}."
        yield Check("group", Status.SKIPPED, detail, "start one: belfry worker")
        return
    yield from _intruders(found)
    for worker in found.workers:
        owns = partitions_text(worker.owns) if worker.owns else "no partition"
        yield Check("group", Status.OK, f"{worker.name} at {worker.host} owns {owns}.")
    if found.state != STABLE:
        detail = f"The group {found.group} is {found.state.lower().replace('_', ' ')}."
        cure = "wait some seconds; if it stays, look for a worker that starts over and over"
        yield Check("group", Status.RISK, detail, cure)
        return
    if len(found.workers) == 1:
        detail = "There is one worker: when it ends, nothing fires until it is back."
        yield Check(
            "group",
            Status.RISK,
            detail,
            "start a second one, which stands by; if there is one, it has ended, hangs, or cannot"
            " reach Kafka: see its log",
        )
    yield from _wrong(found)


def _intruders(found: GroupFacts) -> Iterator[Check]:
    for worker in found.workers:
        if worker.others:
            detail = (
                f"{worker.name} at {worker.host} is in the group {found.group} and reads"
                f" {', '.join(worker.others)}: two belfrys have one app id, and fence each other."
            )
            to_do = "give one of them a BELFRY_CLUSTER__APP_ID of its own, before it has any state"
            yield Check("group", Status.PROBLEM, detail, to_do)


def _wrong(found: GroupFacts) -> Iterator[Check]:
    owners = {partition: worker.name for worker in found.workers for partition in worker.owns}
    nobodys = [partition for partition in range(found.partitions) if partition not in owners]
    if nobodys:
        detail = (
            f"Nobody owns {partitions_text(nobodys)}: all workers are leaving, or count as unfit."
        )
        yield Check("group", Status.PROBLEM, detail, "read /healthz/ready of the workers")
    for partition, silent_s in found.silent_s.items():
        if silent_s >= SILENT_S and partition in owners:
            detail = (
                f"{owners[partition]} owns partition {partition}, and the last commit of that was"
                f" {silent_s:.0f} s ago."
            )
            cure = "read /healthz/ready and the log of that worker; restarting it is safe"
            yield Check("group", Status.PROBLEM, detail, cure)


def _ownership(admin: Any, settings: SharedSettings) -> GroupFacts:
    group = settings.cluster.app_id
    asked = admin.describe_consumer_groups([group], request_timeout=ASK_S)
    described = asked[group].result()
    schedules, changelog = settings.topic("schedules"), settings.topic("changelog")
    topics = admin.list_topics(timeout=ASK_S).topics
    homes = len(topics[changelog].partitions) if changelog in topics else 0
    return GroupFacts(
        group,
        described.state.name,
        [member_of(member, schedules) for member in described.members],
        len(topics[schedules].partitions) if schedules in topics else 0,
        _silent_s(admin, changelog, homes),
    )


def member_of(member: Any, schedules: str) -> GroupMember:
    """A member as Kafka describes it; `schedules` is the topic of this belfry's requests."""
    given = member.assignment.topic_partitions if member.assignment else ()
    owns = sorted(tp.partition for tp in given if tp.topic == schedules)
    short = schedules.rpartition(".")[2]
    others = {tp.topic for tp in given if tp.topic.rpartition(".")[2] == short} - {schedules}
    # A worker joins as ``<app id>@<address of its HTTP port>``.
    name = member.client_id.partition("@")[2] or member.client_id
    return GroupMember(name, member.host.lstrip("/"), tuple(owns), tuple(sorted(others)))


def _silent_s(admin: Any, changelog: str, homes: int) -> dict[int, float]:
    """Seconds since the last record of each partition of the changelog that has any."""
    from confluent_kafka import TopicPartition
    from confluent_kafka import admin as kinds

    newest: Any = kinds.OffsetSpec.max_timestamp()  # type: ignore[attr-defined,no-untyped-call]
    asked = {TopicPartition(changelog, p): newest for p in range(homes)}
    if not asked:
        return {}
    now_s = time()
    answers = admin.list_offsets(asked, request_timeout=ASK_S)
    stamps = {place.partition: answer.result().timestamp for place, answer in answers.items()}
    return {partition: now_s - ms / 1000 for partition, ms in stamps.items() if ms > 0}
