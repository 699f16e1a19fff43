"""The fence and the activation of a partition: its changelog names its owner cluster.

    fence        source   identity: the target's      manifest: nothing but the next number
    activate     target   identity: its own           manifest: the position of its own requests
                                                      mark: taken over

Each is one transaction under the partition's transactional ids. So there is no instant at which a
worker of either side reads half of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Final

from confluent_kafka import KafkaException, TopicPartition

from belfry.host import machine
from belfry.kafka import librdkafka
from belfry.kafka.log_bounds import WITHOUT_GROUP
from belfry.kafka.record_headers import headers_of
from belfry.mirror.beginnings import CannotMirror
from belfry.mirror.carried import carried_from, translated
from belfry.mirror.lane import TRANSACTION_MS
from belfry.mirror.marks import (
    CHANGELOG,
    MARK_KEY,
    MARKS,
    REQUESTS,
    Activated,
    MirrorMark,
    encode_mark,
)
from belfry.mirror.opening import is_added
from belfry.mirror.premature import left_out
from belfry.mirror.reading import is_end
from belfry.mirror.sides import Side
from belfry.recovery.changelog_writer import ChangelogWriter
from belfry.store.identity import encode_identity
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, encode_manifest
from belfry.store.recovery import activation_manifest, fence_manifest, manifest_after

# So often a fence is tried, where others fence in the same moment.
TRIES: Final = 5
# Seconds for one look at carried requests.
LOOK_S: Final = 10.0


def fence(source: Side, target: Side, partition: int) -> int:
    """Let the last row of a partition name the target's cluster; the number of that transaction.

    The owner of the partition is refused from here on, and a worker that takes it over stops before
    it fires (`other_cluster`). A worker that takes it over in this very moment may come first, so
    it is tried some times. Raises CannotMirror where the end of the changelog is hidden.
    """
    for _ in range(TRIES - 1):
        with suppress(KafkaException):
            return _fence(source, target, partition)
    return _fence(source, target, partition)


def _fence(source: Side, target: Side, partition: int) -> int:
    with closing(ChangelogWriter(source.settings, partition, TRANSACTION_MS)) as writer:
        log = source.bounds(CHANGELOG, partition)
        if log.ends()[1] < log.log_end():
            writer.abort_what_is_torn()
        if log.ends()[1] < log.log_end():
            raise CannotMirror(
                f"a transaction is open in partition {partition} of the source's changelog and"
                " hides its end: `belfry doctor` there says whose it is and how to end it."
            )
        requests = source.bounds(REQUESTS, partition)
        manifest = fence_manifest(source.last_manifest(partition), requests.ends()[0])
        writer.begin(source.here.changelog)
        _write(writer, (encode_identity(target.here), manifest))
        writer.commit()
    return manifest.txn_seq


def activate(
    writer: ChangelogWriter, target: Side, partition: int, mark: MirrorMark,
    activated: Activated, numbers: Mapping[int, int],
) -> str:  # fmt: skip
    """Make a partition this side's own, in one transaction; how it stands, in words.

    `numbers` are the source's transactions up to which each partition was carried.
    """
    last = target.last_manifest(partition)
    if last is None and not is_added(target, partition):
        raise CannotMirror(f"partition {partition} holds no transaction: nothing was carried.")
    # An added partition without an owner in the source is empty: it begins at its first request.
    known = 0 if last is None else last.position
    position = _position(target, partition, known, mark.requests_from)
    span = position, target.bounds(REQUESTS, partition).ends()[1]
    writer.begin(target.here.changelog)
    if not activated.planned:
        position = left_out(writer, target, partition, span, numbers)
    begins = {**activated.begins, REQUESTS: position} if activated.planned else {}
    manifest = manifest_after(None, None, position, 0)
    if last is not None:
        manifest = activation_manifest(last, position)
    identity = target.here._replace(generation=mark.generation + 1)
    *former, (since, _) = mark.carried
    taken = mark._replace(
        leaving=True,
        # Who says the same again asks for it, and the last transaction is this one then.
        number=numbers.get(partition, mark.number),
        activated=activated._replace(begins=begins),
        carried=(*former, (since, target.bounds(CHANGELOG, partition).ends()[1])),
    )
    _write(writer, (encode_identity(identity), manifest))
    writer.beside(target.settings.topic(MARKS), MARK_KEY, encode_mark(taken))
    writer.commit()
    return f"{manifest.pending} schedules wait, requests are read on from offset {position}"


def _write(writer: ChangelogWriter, rows: tuple[bytes, Manifest]) -> None:
    """Write the two rows that name a partition's cluster and its state."""
    identity, manifest = rows
    writer.row(keys.IDENTITY_KEY, identity)
    writer.row(keys.manifest_key(manifest.txn_seq), encode_manifest(manifest))


def _position(target: Side, partition: int, source_position: int, since: int) -> int:
    """The offset of the target's requests that stands for one of the source's.

    Requests of this source lie from `since` on; those before may have been carried from another.
    """
    topic = target.settings.topic(REQUESTS)
    low, end = target.bounds(REQUESTS, partition).ends()
    low = max(low, since)
    properties = {
        **target.settings.kafka_properties(), **WITHOUT_GROUP, "enable.partition.eof": True,
        "isolation.level": "read_committed", "auto.offset.reset": "error",
        "fetch.wait.max.ms": 10,
    }  # fmt: skip
    with closing(librdkafka.Consumer(properties)) as consumer:

        def look(offset: int) -> int | None:
            consumer.assign([TopicPartition(topic, partition, offset)])
            deadline = machine.monotonic() + LOOK_S
            while machine.monotonic() < deadline:
                message = consumer.poll(0.5)
                if message is None:
                    continue
                if message.error() is not None:
                    if is_end(message):
                        return None
                    continue
                found = carried_from(headers_of([message])[0])
                if found is not None:
                    return found
            raise ConnectionError(f"{topic}/{partition} is not read within {LOOK_S:.0f} s")

        return translated(source_position, low, end, look)
