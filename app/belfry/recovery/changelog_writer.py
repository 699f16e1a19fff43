"""Transactions into one partition's changelog without an owner: of a recovery, or a mirror.

Taking the transactional ids of the partition fences its owner, and a worker that takes it over
meanwhile fences this writer. So at any time one of owner, recovery and mirror can commit, and Kafka
decides which.

Signed rows say where they lie. The first record of a transaction is one that says nothing, and its
acknowledgement tells the offset; the following rows are signed for the offsets behind it. Where the
last row lies elsewhere somebody has written in between, and all of it is rolled back.

    filler   acknowledged at 119      rows come to lie at 120, 121, …
    rows     signed for 120 and 121   the last one is acknowledged at 121: committed
                                      or at 122: rolled back
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message

from belfry.kafka import librdkafka
from belfry.kafka.client_properties import transactional_ids
from belfry.kafka.giving_up import give_up
from belfry.recovery.partition_evidence import CannotRecover
from belfry.settings import SharedSettings
from belfry.store.signatures import FILLER, PLACE, SIGNATURE, RowKeys
from belfry.wire.record import Headers
from belfry.wire.worker_keys import Purpose, first

# Seconds for an answer of the coordinator, and for a record to be acknowledged.
ANSWER_S: Final = 60.0
# Seconds for all records of a transaction, and how much of the broker's own patience that may take:
# behind its end the broker has rolled the transaction back.
COMMIT_S: Final = 300.0
SHARE: Final = 0.9


class ChangelogWriter:
    """Writes one partition; fences on entry, which raises KafkaException where it is refused.

    It is for one thread. `begin`, `row`, `beside` and `commit` raise KafkaException, BufferError
    where records are not taken in time, and CannotRecover where rows cannot be signed.
    """

    def __init__(self, settings: SharedSettings, partition: int, transaction_ms: int) -> None:
        """The broker ends a transaction that stays open for `transaction_ms`."""
        self._settings = settings
        self._topic = settings.topic("changelog")
        self._partition = partition
        self._commit_s = min(COMMIT_S, SHARE * transaction_ms / 1000)
        self._signs: RowKeys | None = None
        # Where the next row comes to lie, and where the last one that was acknowledged lies.
        self._next = 0
        self._lies_at = -1
        properties = {
            "linger.ms": 100,
            "compression.type": "lz4",
            **settings.kafka_properties(),
            "transactional.id": f"{settings.cluster.app_id}.{partition}",
            "transaction.timeout.ms": transaction_ms,
            "message.max.bytes": 100_000_000,
        }
        # The first of them writes.
        self.producers = [
            librdkafka.Producer({**properties, "transactional.id": name})
            for name in transactional_ids(properties)
        ]
        self._producer = self.producers[0]
        try:
            for producer in self.producers:
                producer.init_transactions(ANSWER_S)
        except BaseException:
            self.close()
            raise

    def begin(self, topic_id: str) -> None:
        """Begin a transaction into the changelog with this id, for which rows are signed."""
        self._producer.begin_transaction()
        self._signs = self._signing(topic_id)
        if self._signs is not None:
            self._find_place()

    def row(self, key: bytes, value: bytes | None) -> None:
        """Write a row, signed for the offset at which it will lie, where rows are signed."""
        headers: Headers = []
        if self._signs is not None:
            proof = PLACE + self._signs.token(self._next)
            self._next += 1
            if value is None:
                headers = [(SIGNATURE, proof)]
            else:
                value = proof + value
        self._send(self._topic, value, key, headers=headers, on_delivery=self._told)

    def beside(self, topic: str, key: bytes | None, value: bytes | None, **more: Any) -> None:
        """Write a record of the same transaction to the same partition of another topic."""
        self._send(topic, value, key, **more)

    def commit(self) -> None:
        """Commit the written rows; CannotRecover where they do not lie as they were signed."""
        self.see_place()
        with _amid_callbacks():
            self._producer.commit_transaction(self._commit_s)

    def see_place(self) -> None:
        """See that signed rows lie where they are believed, which the last one tells."""
        if self._signs is None:
            return
        with _amid_callbacks():
            self._producer.flush(self._commit_s)
        if self._lies_at == self._next - 1:
            return
        self.abort()
        raise CannotRecover(
            f"nothing was committed: the last row lies at offset {self._lies_at} of partition"
            f" {self._partition} of {self._topic}, and was signed for {self._next - 1}; somebody"
            " else writes there: take the right away, then try again"
        )

    def abort(self) -> None:
        """Roll back the written rows, as far as that can be done."""
        with suppress(KafkaException):
            self._producer.abort_transaction(ANSWER_S)

    def abort_what_is_torn(self) -> None:
        """End transactions that the partition's own producers left open, where the marker is gone.

        A marker of the same producer, of a later epoch, ends any transaction that it has open in
        the changelog. So this one has to be an abort: a commit would make half a transaction true.
        """
        for producer in self.producers:
            producer.begin_transaction()
            producer.produce(self._topic, None, b"\0", partition=self._partition)
            producer.flush(ANSWER_S)
            producer.abort_transaction(ANSWER_S)

    def close(self) -> None:
        """Give the producers up."""
        for producer in self.producers:
            give_up(producer)

    def _signing(self, topic_id: str) -> RowKeys | None:
        """The signer of the rows."""
        if self._settings.changelog == "trusted":
            return None
        key = first(self._settings.worker_keys(Purpose.CHANGELOG))
        if not key:
            raise CannotRecover(
                "rows have to be signed (BELFRY_CHANGELOG), and BELFRY_HTTP_WORKER_SECRET is not"
                " set: give the one that the workers have."
            )
        return RowKeys(key, topic_id, self._partition)

    def _find_place(self) -> None:
        """Learn where rows come to lie: behind a record that says nothing."""
        self._lies_at = -1
        self._send(self._topic, None, FILLER, headers=[], on_delivery=self._told)
        with _amid_callbacks():
            self._producer.flush(ANSWER_S)
        if self._lies_at < 0:
            raise BufferError("the first record was not acknowledged in time")
        self._next = self._lies_at + 1

    def _send(self, topic: str, value: bytes | None, key: bytes | None, **more: Any) -> None:
        """Hand a record over, and wait while the producer's queue is full."""
        while True:
            try:
                self._producer.produce(topic, value, key, partition=self._partition, **more)
            except BufferError:
                with _amid_callbacks():
                    self._producer.poll(0.1)
            else:
                return

    def _told(self, error: KafkaError | None, message: Message) -> None:
        """Note where a record lies; librdkafka calls it within `poll` and `flush`."""
        offset = message.offset()
        if error is None and offset is not None:
            self._lies_at = offset


@contextmanager
def _amid_callbacks() -> Iterator[None]:
    """Within it, an error that the client raises while it tells the fate of records is that error.

    confluent-kafka leaves it pending in the callback, which is a SystemError for Python.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from None
        raise BufferError("the fate of records was not told") from error
