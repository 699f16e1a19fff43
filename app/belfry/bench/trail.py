"""The trail of manifests in a changelog: what each transaction did, and when it was appended.

A run is timed by what lies in the log afterwards, not by the processes that wrote it: the broker's
clock is one clock, whatever the workers' clocks say, and a transaction that was rolled back counts
for nothing.

    started        claim          taking in         taking in        fired
    ───┼─────────────┼───────────────┼─────────────────┼───────────────┼──►  append time
       └ `since`: what lies before is of workers that ran earlier
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

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


def trails(
    properties: dict[str, Any], topic: str, partitions: int, from_ms: int = 0
) -> list[Trail]:
    """The transactions of each partition that were appended at this instant or later, in order.

    With the instant at which workers were started, the first of each is its owner's claim.
    """
    found = [_read(properties, topic, number) for number in range(partitions)]
    return [[step for step in trail if step.appended_ms >= from_ms] for trail in found]


def taking_in(trail: Trail) -> Trail:
    """The transactions that took requests in: those that moved the position."""
    return [b for a, b in pairwise(trail) if b.manifest.position > a.manifest.position]


def _read(properties: dict[str, Any], topic: str, partition: int) -> Trail:
    log = PartitionLog(properties, topic, partition)
    try:
        low, high = log.ends()
        log.seek(low)
        return [
            LoggedTransaction(_manifest(message.value() or b""), message.timestamp()[1])
            for messages in log.read_until(high, 50_000)
            for message in messages
            if (message.key() or b"").startswith(MANIFEST_PREFIX)
        ]
    finally:
        log.close()


def _manifest(value: bytes) -> Manifest:
    return decode_manifest(row_of(value) if is_signed(value) else value)
