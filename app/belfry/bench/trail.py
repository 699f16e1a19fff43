"""The trail of manifests in a changelog: what each transaction did, and when it was appended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from belfry.kafka.partition_log import PartitionLog
from belfry.store.layout.keys import MANIFEST_PREFIX
from belfry.store.layout.records import Manifest, decode_manifest
from belfry.store.signatures import is_signed, row_of


@dataclass(frozen=True, slots=True)
class LoggedTransaction:
    """One transaction: its manifest and the broker's append time, epoch ms."""

    manifest: Manifest
    appended_ms: int


def read_trail(properties: dict[str, Any], topic: str, partition: int) -> list[LoggedTransaction]:
    """All transactions of one partition, in order."""
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
