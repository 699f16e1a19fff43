"""The changelog's records that a worker wrote, told from those of strangers.

What lies in the changelog is state.  A record that somebody else has written there is skipped,
counted, and told of: it neither becomes state nor stops the partition.  What may be a row is never
skipped for a guess:

    signed, and true          a row; of a later release, replay stops for what it cannot read
    signed, and not true      a stranger's
    not signed                a row, unless `BELFRY_CHANGELOG=required`
    no release writes such    a stranger's, signed or not (`may_be_a_row`)

A worker without a secret can judge no signature, so it stops at a signed row and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import structlog
from confluent_kafka import Message

from belfry.store import keys
from belfry.store.records import UnknownFormat
from belfry.store.signatures import (
    SIGNATURE,
    RowKeys,
    Verifier,
    is_signed,
    may_be_a_row,
    row_of,
)
from belfry.telemetry.limited import LimitedLogger
from belfry.worker.record_headers import headers_of

log = structlog.get_logger(__name__)
_told: Final = LimitedLogger(log)

Change = tuple[bytes, bytes | None]
Changes = tuple[list[Change], list[int]]
Counted = Callable[[str, int], None]


def uncounted(_topic: str, _records: int) -> None:
    """Nobody counts what is skipped."""


class Sieve:
    """Lets a worker's records of one partition through; batches come in the order of offsets."""

    def __init__(
        self,
        believed: Sequence[RowKeys] = (),
        *,
        required: bool = False,
        counted: Counted = uncounted,
    ) -> None:
        self._verifier = Verifier(believed) if believed else None
        self._required = required
        self._counted = counted

    def restart(self) -> None:
        """Records come from another offset on."""
        if self._verifier is not None:
            self._verifier.manifest_at = -1

    def ours(self, messages: Sequence[Message]) -> Changes:
        """The rows among records, and their offsets; what is no worker's is reported."""
        changes: list[Change] = []
        offsets: list[int] = []
        skipped: list[Message] = []
        for message in messages:
            key, value, offset = message.key() or b"", message.value(), message.offset()
            assert offset is not None, "a record that was read has an offset"
            if value is None or is_signed(value):
                known, value = self._judge(message, key, value, offset)
            else:
                known = not self._required and may_be_a_row(key, value)
            if not known:
                skipped.append(message)
                continue
            changes.append((key, value))
            offsets.append(offset)
            if self._verifier is not None and key.startswith(keys.MANIFEST_PREFIX):
                self._verifier.manifest_at = offset
        if skipped:
            self._report(skipped)
        return changes, offsets

    def _judge(
        self, message: Message, key: bytes, value: bytes | None, offset: int
    ) -> tuple[bool, bytes | None]:
        """Whether a tombstone or a signed record is a worker's, and its row."""
        if not may_be_a_row(key, value):
            return False, None
        if self._verifier is None:
            if value is None:
                return True, None
            raise UnknownFormat(
                f"The record at offset {offset} of the changelog is signed, and this worker has no"
                " secret to judge it by: give it the BELFRY_HTTP_WORKER_SECRET of the others."
            )
        if value is not None:
            row = row_of(value)
            return self._verifier.holds(offset, key, value, row), row
        proof = _proof(message)
        if proof is None:
            return not self._required, None
        return self._verifier.holds(offset, key, proof, None), None

    def _report(self, skipped: Sequence[Message]) -> None:
        first = skipped[0]
        topic = first.topic() or ""
        self._counted(topic, len(skipped))
        _told.warning(
            f"{topic}/{first.partition()}",
            "records that no worker wrote are skipped",
            topic=topic,
            partition=first.partition(),
            offset=first.offset(),
            records=len(skipped),
            to_do="find out who else may write to this topic, and take the right away",
        )


def _proof(message: Message) -> bytes | None:
    """What a tombstone says to prove that it is a worker's."""
    headers = headers_of([message])[0] or ()
    return next((value or b"" for name, value in headers if name == SIGNATURE), None)
