"""Checks of `belfry doctor` on signatures in the changelog: owners' marks, and newest records.

An owner says of its partition when all rows are signed (`kafka/signature_marks.py`), after it has
walked through them. A record that a stranger writes later is among the newest ones. So only these
are looked at, for there may be millions in all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from belfry.cli.check import Check, Status
from belfry.cli.shown import partitions_text

if TYPE_CHECKING:
    from confluent_kafka import Message

    from belfry.kafka.signature_marks import Mark
    from belfry.settings import SharedSettings

# So many offsets before the end of each partition are looked at, and for so long in all.
NEWEST: Final = 1_000
LOOK_S: Final = 10.0
NAME: Final = "signatures"


def changelog_checks(cluster: Any, settings: SharedSettings) -> Iterator[Check]:
    """Whether all rows are signed, where some owner signs or these settings ask for it."""
    from confluent_kafka import KafkaException

    from belfry.kafka.causes import cause_of
    from belfry.kafka.signature_marks import CHOICE, BadMark, marks_of

    changelog = settings.topic("changelog")
    if changelog not in cluster.topics:
        return
    marks = marks_of(settings)
    try:
        said = {number: marks.read(number) for number in cluster.topics[changelog].partitions}
        asked = settings.changelog != "trusted" or any(mark.keys for mark in said.values())
        signed = [number for number, mark in said.items() if asked and mark.whole]
        unsigned = unsigned_rows(newest(settings, signed)) if signed else {}
    except BadMark as error:
        found = str(error).removesuffix(f" {CHOICE}")
        yield Check(NAME, Status.PROBLEM, f"No worker takes the partition over: {found}", CHOICE)
        return
    except (ConnectionError, KafkaException) as error:
        yield Check(NAME, Status.SKIPPED, f"Kafka does not tell: {cause_of(error)}.")
        return
    yield from judge(said, unsigned, settings.changelog)


def judge(
    said: Mapping[int, Mark], unsigned: Mapping[int, list[int]], wanted: str
) -> Iterator[Check]:
    """What the marks of partitions, and offsets of rows without a signature, mean."""
    if wanted == "trusted" and not any(mark.keys for mark in said.values()):
        detail = (
            "BELFRY_CHANGELOG is trusted: everybody who may write to the changelog is believed."
        )
        yield Check(NAME, Status.SKIPPED, detail)
        return
    parts = [number for number, mark in said.items() if not mark.whole]
    if parts:
        yield Check(
            NAME,
            Status.RISK,
            f"Rows of {partitions_text(parts)} are not all signed: what a stranger writes there"
            " counts as state, and a worker with BELFRY_CHANGELOG=required does not take them.",
            'give all workers BELFRY_CHANGELOG=signed, and wait for "all rows of the changelog are'
            ' signed" in the log of each owner (docs/workers.md)',
        )
    required = wanted == "required" or any(mark.required for mark in said.values())
    for number, offsets in unsigned.items():
        means = (
            "workers with BELFRY_CHANGELOG=required skip them, others take them for state"
            if required
            else "workers take them for state"
        )
        yield Check(
            NAME,
            Status.PROBLEM,
            f"{len(offsets)} of the newest records of partition {number} are not signed, though all"
            f" rows were (first at offset {offsets[0]}): {means}.",
            "find out who else may write to the changelog, or which worker does not sign; take the"
            " right away, then set BELFRY_CHANGELOG=required (docs/threat-model.md)",
        )
    if not parts and not unsigned:
        detail = f"All rows of {len(said)} partitions are signed, as owners and newest records say."
        yield Check(NAME, Status.OK, detail)


def unsigned_rows(records: Iterable[Message]) -> dict[int, list[int]]:
    """Offsets, by partition, of unsigned records that a worker may take for rows.

    An owner that begins to sign writes signed copies of what it has.  The originals lie before them
    until they are compacted away, and so do manifests, of which the newest counts.
    """
    from belfry.kafka.record_headers import proof_of
    from belfry.store.layout.keys import MANIFEST_PREFIX
    from belfry.store.row_judge import may_be_a_row
    from belfry.store.signatures import is_signed

    found: dict[int, dict[bytes, int]] = {}
    for record in records:
        key, value = record.key() or b"", record.value()
        if not may_be_a_row(key, value):
            continue
        said = MANIFEST_PREFIX if key.startswith(MANIFEST_PREFIX) else key
        of = found.setdefault(record.partition() or 0, {})
        if proof_of(record) is not None if value is None else is_signed(value):
            of.pop(said, None)
        else:
            of.setdefault(said, record.offset() or 0)
    return {partition: sorted(of.values()) for partition, of in found.items() if of}


def newest(settings: SharedSettings, partitions: Collection[int]) -> Iterator[Message]:
    """The last records of these partitions of the changelog, up to their ends."""
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

    topic = settings.topic("changelog")
    consumer = Consumer(
        {
            "fetch.wait.max.ms": 10,
            **settings.kafka_properties(),
            "group.id": f"{settings.cluster.app_id}.doctor",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    try:
        starts = []
        for number in partitions:
            low, end = consumer.get_watermark_offsets(TopicPartition(topic, number), LOOK_S)
            starts.append(TopicPartition(topic, number, max(low, end - NEWEST)))
        consumer.assign(starts)
        open_, until = set(partitions), monotonic() + LOOK_S
        while open_ and monotonic() < until:
            for record in consumer.consume(500, 0.2):
                error = record.error()
                if error is None:
                    yield record
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_.discard(record.partition() or 0)
                elif error.fatal() or not error.retriable():
                    raise KafkaException(error)
        if open_:
            raise ConnectionError(
                f"the ends of {partitions_text(sorted(open_))} were not reached in time"
            )
    finally:
        consumer.close()
