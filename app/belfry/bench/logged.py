"""The content of topics after a run: the trail of manifests in a changelog, and bytes.

A run is timed by the records in the log afterwards, not by the processes that wrote them: the
broker's clock is a single clock, unlike those of workers, and a transaction that was rolled back
does not count.

    started        claim          taking in         taking in        fired
    ───┼─────────────┼───────────────┼─────────────────┼───────────────┼──►  append time
       └ `from_ms`: records before it are of workers that ran earlier

Bytes are counted as clients gave them, before any compression: the size of a record on disk depends
on the topic, and differs from load to load.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from confluent_kafka import Message
from confluent_kafka.admin import AdminClient

from belfry.kafka.partition_log import PartitionLog
from belfry.store.layout.keys import MANIFEST_PREFIX
from belfry.store.layout.manifests import Manifest, decode_manifest
from belfry.store.signatures import is_signed, row_of


@dataclass(frozen=True, slots=True)
class LoggedTransaction:
    """One transaction: its manifest and the broker's append time, epoch ms."""

    manifest: Manifest
    appended_ms: int


Trail = list[LoggedTransaction]
# Seconds that a broker has to name a topic's partitions.
ASK_S: Final = 10
# Seconds that a broker has to write the last transaction's markers, and between two looks.
MARKERS_S: Final = 60.0
AGAIN_S: Final = 1.0
_CHUNK: Final = 50_000


def trails(
    properties: dict[str, Any], topic: str, partitions: int, from_ms: int = 0
) -> list[Trail]:
    """The transactions of each partition that were appended at this instant or later, in order.

    If that is the instant at which workers were started, the first transaction of each is its
    owner's claim.
    """
    found = [_read(properties, topic, number) for number in range(partitions)]
    return [[step for step in trail if step.appended_ms >= from_ms] for trail in found]


def taking_in(trail: Trail) -> Trail:
    """The transactions that took requests in: those that moved the position."""
    return [b for a, b in pairwise(trail) if b.manifest.position > a.manifest.position]


def fired_by(read: Callable[[], list[Trail]], events: int) -> Trail:
    """The transactions that fired so many events in all, as soon as they can be read.

    Workers count an event when the end of its transaction is acknowledged.  Then the broker begins
    to write markers, and with thousands of partitions the changelog's marker comes seconds later.
    """
    deadline = time.monotonic() + MARKERS_S
    while True:
        steps = [step for trail in read() for step in trail if step.manifest.fired]
        if sum(step.manifest.fired for step in steps) >= events or time.monotonic() > deadline:
            return steps
        time.sleep(AGAIN_S)


def topic_bytes(properties: dict[str, Any], topic: str) -> tuple[int, int]:
    """Records of a topic, and the bytes of their keys, values and headers, uncompressed.

    Tombstones are in the bytes and not in the count. It reads the whole topic.
    """
    count = found = 0
    for partition in AdminClient(properties).list_topics(topic, ASK_S).topics[topic].partitions:
        for message in _messages(properties, topic, partition):
            count += message.value() is not None
            found += _record_bytes(message)
    return count, found


def _messages(properties: dict[str, Any], topic: str, partition: int) -> Iterator[Message]:
    """All records that are in a partition now."""
    log = PartitionLog(properties, topic, partition)
    try:
        low, high = log.ends()
        log.seek(low)
        for messages in log.read_until(high, _CHUNK):
            yield from messages
    finally:
        log.close()


def _read(properties: dict[str, Any], topic: str, partition: int) -> Trail:
    return [
        LoggedTransaction(_manifest(message.value() or b""), message.timestamp()[1])
        for message in _messages(properties, topic, partition)
        if (message.key() or b"").startswith(MANIFEST_PREFIX)
    ]


def _manifest(value: bytes) -> Manifest:
    return decode_manifest(row_of(value) if is_signed(value) else value)


def _record_bytes(message: Message) -> int:
    """Bytes of one record as its client gave them."""
    headers: Any = message.headers() or ()
    own = len(message.key() or b"") + len(message.value() or b"")
    return own + sum(len(name) + len(value or b"") for name, value in headers)
