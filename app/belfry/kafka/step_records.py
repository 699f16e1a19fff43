"""The records of one step, as values: each with its topic and its partition, in order.

They are made once from a step's effects, whichever client sends them (`transactions.py` by
librdkafka, `transactions/` by requests of its own):

    fired ─► letters ─► deliveries ─► refused ─► misrouted ─► usage ─► outcomes ─► rows ─► manifest

A record without a partition gets the one that Kafka's own partitioner gives its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from belfry.engine.effects import Effects, Fired
from belfry.kafka.row_signing import BATCH_BYTES, RowSigner, Signed
from belfry.schedules.identity import partition_of
from belfry.wire.accepted import PlainAccepted, Told, accepted_record
from belfry.wire.lifecycle import LifecycleEvent, encode_lifecycle, headers_of
from belfry.wire.record import Headers


@dataclass(frozen=True, slots=True)
class OutputTopics:
    """Topics that every partition writes to, and the frame of lifecycle records."""

    changelog: str
    schedules: str
    rejected: str
    lifecycle: str
    # The first bytes of Avro records of a topic.
    lifecycle_head: bytes
    deliveries: str
    deliveries_head: bytes
    # The number of partitions of an output topic.
    partitions_of: Callable[[str], int]
    metering: str = ""


# topic, partition (None: where the key decides), key, value, headers
StepRecord = tuple[str, int | None, bytes | None, bytes | None, Headers]


def place_of(fired: Fired, partitions_of: Callable[[str], int]) -> int | None:
    """The partition of a fired record that belongs to a group; None for others."""
    group = fired[2]
    return None if group is None else partition_of(group, partitions_of(fired[0]))


def fired_records(fired: Iterable[Fired], output_topics: OutputTopics) -> Iterator[StepRecord]:
    """Fired events; raises TopicGone if the topic of a group is not there any more."""
    partitions_of = output_topics.partitions_of
    for each in fired:
        topic, key, group, value, headers = each
        where = None if group is None else place_of(each, partitions_of)
        yield topic, where, key, value, headers


def topics_of(effects: Effects) -> set[str]:
    """Topics of tenants that a step writes to: those of fired events, and of dead letters."""
    return {each[0] for each in effects.fired} | {each.topic for each in effects.letters}


def delivery_records(effects: Effects, output_topics: OutputTopics) -> Iterator[StepRecord]:
    """Deliveries over HTTP that are to be made."""
    topic, head = output_topics.deliveries, output_topics.deliveries_head
    for name, body, headers in effects.deliveries:
        yield topic, None, name, head + body, headers


def letter_records(effects: Effects) -> Iterator[StepRecord]:
    """Dead letters, to topics of their tenants; one of them may refuse, as an output topic may."""
    for letter in effects.letters:
        yield letter.topic, None, letter.key, letter.value, letter.headers


def outcome_records(effects: Effects, output_topics: OutputTopics) -> Iterator[StepRecord]:
    """Refused requests, requests on their way to their home, and usage."""
    for rejected in effects.rejected:
        yield output_topics.rejected, None, rejected.key, rejected.value, rejected.headers
    for sent in effects.rerouted:
        where = output_topics.schedules, sent.partition
        yield *where, sent.key, sent.value, sent.headers
    for tenant, used in effects.metered:
        yield output_topics.metering, None, tenant, used, []


def told_records(effects: Effects, output_topics: OutputTopics) -> Iterator[StepRecord]:
    """Verdicts and other reported outcomes."""
    topic, head = output_topics.lifecycle, output_topics.lifecycle_head
    for event in effects.lifecycle:
        yield topic, None, *told_record(head, event)


def told_record(head: bytes, event: Told) -> tuple[bytes, bytes, Headers]:
    """Key, value and headers of an outcome's record; `head` is the frame."""
    if isinstance(event, PlainAccepted):
        return accepted_record(head, event)
    return key_of(event), head + encode_lifecycle(event), headers_of(event)


def key_of(event: LifecycleEvent) -> bytes:
    """The key of an outcome's record: its schedule, so a schedule's outcomes keep their order."""
    return f"{event.tenant}/{event.schedule_id}".encode(errors="replace")


def changelog_rows(
    rows: Mapping[bytes, bytes | None], signer: RowSigner | None, batch_bytes: int = BATCH_BYTES
) -> Signed:
    """Rows of the changelog in the order in which they are to lie; the manifest is the last.

    A batch of the changelog may have `batch_bytes`.
    """
    if signer is not None:
        return signer.sign(rows, batch_bytes)
    plain = [*rows.items()]
    manifest = plain.pop()
    return Signed(plain, [], manifest)
