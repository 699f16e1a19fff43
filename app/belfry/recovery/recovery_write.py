"""A recovery as one transaction, under the transactional id of the partition.

Taking that id fences whoever owns the partition, and whoever takes it over meanwhile fences the
recovery. A commit has three ends: done, nothing committed for certain, and not known.

    recovery                                     a worker
    12:00:00  InitProducerId: epoch 8            its next commit (epoch 7) is refused
    12:00:00  reads again what nobody changes
    12:00:01  rows, tombstones, identity
    12:00:05  manifest                           12:00:05  may take over: epoch 9
    12:00:06  EndTxn                             then this is refused: look again

The rows of a whole partition (`recovered_rows.py`) go in one transaction, so its timeout is the
largest that brokers allow.

Signed rows say where they lie. The first record is one that says nothing, and its acknowledgement
tells the offset; the following rows are signed for the offsets behind it. Where the last row lies
elsewhere somebody has written in between, and all of it is rolled back.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message

from belfry.kafka import librdkafka
from belfry.kafka.client_properties import transactional_ids
from belfry.kafka.giving_up import give_up
from belfry.recovery.partition_evidence import CannotRecover, PartitionEvidence
from belfry.recovery.recovered_rows import changed_rows, manifest_of
from belfry.recovery.recovery_plan import RecoveryPlan
from belfry.settings import SharedSettings
from belfry.store.identity import encode_identity
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, encode_manifest
from belfry.store.layout.pending_bytes import is_pending
from belfry.store.signatures import FILLER, PLACE, SIGNATURE, RowKeys
from belfry.wire.record import Headers
from belfry.wire.worker_keys import Purpose, first

# Seconds for an answer of the coordinator, and for a record to be acknowledged.
ANSWER_S: Final = 60.0
# Seconds for all rows of a partition.
COMMIT_S: Final = 300.0
# As long as brokers allow by default: all rows of a partition go in one transaction.
TRANSACTION_MS: Final = 900_000


class RecoveryWriter:
    """Writes recoveries of one partition; fences on entry.

    It runs in the thread of the command. Raises CannotRecover where the partition cannot be fenced.
    """

    def __init__(self, settings: SharedSettings, partition: int) -> None:
        self._settings = settings
        self._topic = settings.topic("changelog")
        self._partition = partition
        self._failed = ""
        self._signs: RowKeys | None = None
        # Where the next row comes to lie, and where the last one that was acknowledged lies.
        self._next = 0
        self._lies_at = -1
        properties = {
            "linger.ms": 100,
            "compression.type": "lz4",
            **settings.kafka_properties(),
            "transactional.id": f"{settings.cluster.app_id}.{partition}",
            "transaction.timeout.ms": TRANSACTION_MS,
            "message.max.bytes": 100_000_000,
        }
        # The first of them writes.
        self._producers = [
            librdkafka.Producer({**properties, "transactional.id": name})
            for name in transactional_ids(properties)
        ]
        self._producer = self._producers[0]
        try:
            for producer in self._producers:
                producer.init_transactions(ANSWER_S)
        except KafkaException as error:
            raise CannotRecover(f"the partition cannot be fenced: {error.args[0].str()}") from error

    def abort_what_is_torn(self) -> None:
        """End what the partition's own producers have left open, where the marker is gone.

        A marker of the same producer, of a later epoch, ends whatever it has open in the changelog.
        So this one has to be an abort: a commit would make half a transaction true.
        """
        try:
            for producer in self._producers:
                producer.begin_transaction()
                producer.produce(self._topic, None, b"\0", partition=self._partition)
                producer.flush(ANSWER_S)
                producer.abort_transaction(ANSWER_S)
        except KafkaException as error:
            raise CannotRecover(f"nothing was changed: {error.args[0].str()}") from error

    def write(self, found: PartitionEvidence, plan: RecoveryPlan) -> Manifest:
        """Commit what the plan says; the manifest of the transaction.

        CannotRecover says whether nothing was committed, or whether that is not known.
        """
        try:
            self._producer.begin_transaction()
            self._signs = self._signing(found)
            if self._signs is not None:
                self._find_place()
            pending = 0
            settings = self._settings.cluster_fingerprint()
            for key, row in changed_rows(found, plan, settings):
                pending += row is not None and key[:1] != b"\0" and is_pending(row)
                self._produce(key, row)
            manifest = manifest_of(found, plan, pending)
            self._produce(keys.IDENTITY_KEY, encode_identity(plan.identity))
            self._produce(keys.manifest_key(manifest.txn_seq), encode_manifest(manifest))
            if self._signs is not None:
                self._see_place()
        except (KafkaException, BufferError) as error:
            raise _nothing_committed(error) from error
        self._commit()
        return manifest

    def _commit(self) -> None:
        """Commit; CannotRecover says whether nothing was committed, or whether that is not
        known.
        """
        try:
            self._producer.commit_transaction(COMMIT_S)
        except KafkaException as error:
            cause = error.args[0]
            if cause.txn_requires_abort() and not cause.fatal():
                raise _nothing_committed(error) from error
            # No answer in time, or a fence, which also meets a commit that is sent once more after
            # the answer to the first was lost.
            raise CannotRecover(
                f"it is not known whether the recovery was committed ({cause.str()}); look again"
                " with `belfry recover` before anything else is done about this partition"
            ) from error

    def close(self) -> None:
        """Give the producers up."""
        for producer in self._producers:
            give_up(producer)

    def _signing(self, found: PartitionEvidence) -> RowKeys | None:
        """What signs the rows."""
        if self._settings.changelog == "trusted":
            return None
        key = first(self._settings.worker_keys(Purpose.CHANGELOG))
        if not key:
            raise CannotRecover(
                "rows have to be signed (BELFRY_CHANGELOG), and BELFRY_HTTP_WORKER_SECRET is not"
                " set: give the one that the workers have."
            )
        return RowKeys(key, found.here.changelog, self._partition)

    def _find_place(self) -> None:
        """Learn where rows come to lie: behind a record that says nothing."""
        self._send(FILLER, None, [])
        self._producer.flush(ANSWER_S)
        if self._lies_at < 0:
            raise BufferError("the first record was not acknowledged in time")
        self._next = self._lies_at + 1

    def _see_place(self) -> None:
        """See that all rows lie where they are believed, which the last one tells."""
        self._producer.flush(COMMIT_S)
        if self._lies_at == self._next - 1:
            return
        with suppress(KafkaException):
            self._producer.abort_transaction(ANSWER_S)
        raise CannotRecover(
            f"nothing was committed: the last row lies at offset {self._lies_at} of partition"
            f" {self._partition} of {self._topic}, and was signed for {self._next - 1}; somebody"
            " else writes there: take the right away, then try again"
        )

    def _produce(self, key: bytes, value: bytes | None) -> None:
        """Write a row, signed for the offset at which it will lie, where rows are signed."""
        headers: Headers = []
        if self._signs is not None:
            proof = PLACE + self._signs.token(self._next)
            self._next += 1
            if value is None:
                headers = [(SIGNATURE, proof)]
            else:
                value = proof + value
        self._send(key, value, headers)

    def _send(self, key: bytes, value: bytes | None, headers: Headers) -> None:
        """Hand a record over, and wait while the producer's queue is full."""
        given: Any = {"partition": self._partition, "headers": headers}
        while True:
            try:
                self._producer.produce(self._topic, value, key, on_delivery=self._told, **given)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _told(self, error: KafkaError | None, message: Message) -> None:
        """Note where a record lies; librdkafka calls it within `poll` and `flush`."""
        offset = message.offset()
        if error is None and offset is not None:
            self._lies_at = offset


def _nothing_committed(error: KafkaException | BufferError) -> CannotRecover:
    """The error for a transaction that was certainly not committed."""
    told = error.args[0].str() if isinstance(error, KafkaException) else str(error)
    return CannotRecover(
        f"nothing was committed ({told}): a worker may have taken the partition over meanwhile;"
        " look again"
    )
