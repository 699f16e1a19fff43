"""Requests to ``belfry.schedules``, or to their tenants' own topics behind that name.

The key is the tenant, and all replicas acknowledge. So requests of one tenant lie in one partition
in the order in which they were written.

A record's fate is told to a callback, which librdkafka calls from `flush`. Several callers share a
producer, so each record has a callback of its own and a caller waits for its own records alone. A
write that was not acknowledged may lie in the log all the same; to write it again with the same
request id is safe.

A producer that has failed for good can write nothing more. It is given up, and the next call makes
another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from belfry.client.errors import BelfryError, Rejected, Unavailable
from belfry.client.faults import FAILED_FOR_GOOD
from belfry.client.kafka import Cluster, flush
from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import Outcome
from belfry.wire import catalogue, framing
from belfry.wire.claims import signature
from belfry.wire.record import SIGNATURE

if TYPE_CHECKING:
    from belfry.client.schemas import RegisteredSchemas

# Longer than the producer's own limit, so that the producer reports the result of a record first.
# Seconds until a record that nothing is heard of counts as not written.
WRITE_S: Final = 12.0
NAME: Final = "ScheduleRequest"
_MAY_NOT_WRITE: Final = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)


class How(TypedDict, total=False):
    """How requests are written."""

    own_topics: bool
    """Each goes to its tenant's own topic, ``belfry.schedules.<tenant>`` (else the shared one)."""
    secrets: Mapping[str, str | bytes]
    """By tenant, the secret that signs its requests."""


class _Delivery:
    """The result of one record; librdkafka calls it from `flush`."""

    def __init__(self) -> None:
        self._done = Event()
        self._error: KafkaError | None = None
        self._message: Message | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        self._error, self._message = error, message
        self._done.set()

    def message(self) -> Message:
        """The record with its place in the log; raises KafkaException if it has none.

        It blocks for `WRITE_S` seconds at most.
        """
        if not self._done.wait(WRITE_S):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if self._error is not None:
            raise KafkaException(self._error)
        assert self._message is not None
        return self._message


class RequestWriter:
    """Writes requests; made when first used, so that a client that only reads has no producer.

    Any number of threads may write at the same time.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        schemas: RegisteredSchemas | None,
        **how: Unpack[How],
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._schemas = schemas
        self._own_topics = how.get("own_topics", False)
        self._secrets = {
            tenant: secret.encode() if isinstance(secret, str) else secret
            for tenant, secret in how.get("secrets", {}).items()
        }
        self._found: set[str] = set()
        self._made: tuple[Producer, bytes] | None = None
        self._lock = Lock()

    def write(self, fields: dict[str, Any], sent: Verdict) -> Verdict:
        """Write a request; the verdict that is returned has the place where it lies, and no
        outcome.

        Raises `Rejected` for one that is too large or cannot be Avro, `MissingTopic` and
        `Unavailable`.
        """
        return self.write_all([(fields, sent)])[0]

    def write_all(self, requests: Sequence[tuple[dict[str, Any], Verdict]]) -> list[Verdict]:
        """Write some requests, in their order; returns where they lie.

        Raises for the first that was not written; others of them may have been.
        """
        if not requests:
            return []
        producer, frame = self._open({self._topic_of(sent) for _, sent in requests})
        under_way = []
        for fields, sent in requests:
            value, delivery = frame + _encoded(fields, sent), _Delivery()
            under_way.append((sent, len(value), delivery))
            topic, key = self._topic_of(sent), sent.tenant.encode()
            signed = self._signed(sent.tenant, key, value)
            try:
                producer.produce(topic, value, key, on_delivery=delivery, **signed)
            except (KafkaException, BufferError) as error:
                raise self._failure(self._cause(error.args[0]), sent, len(value)) from None
        self._flush(producer, under_way)
        return [self._placed(*each) for each in under_way]

    def _flush(self, producer: Producer, under_way: list[tuple[Verdict, int, _Delivery]]) -> None:
        """Wait for the result of each record; a producer that cannot write any more is given up."""
        try:
            flush(self._cluster, producer, WRITE_S)
        except KafkaException as error:
            with self._lock:
                self._made = None
            sent, size, _ = under_way[0]
            raise self._failure(error.args[0], sent, size) from None

    def _cause(self, error: Any) -> Any:
        """Why a record was not written; a producer that has failed for good is given up."""
        if not isinstance(error, KafkaError) or error.code() != FAILED_FOR_GOOD:
            return error
        with self._lock:
            self._made = None
        return self._cluster.cause(error)

    def _placed(self, sent: Verdict, size: int, delivery: _Delivery) -> Verdict:
        """The verdict with the place of its record in the log."""
        try:
            message = delivery.message()
        except KafkaException as error:
            raise self._failure(self._cause(error.args[0]), sent, size) from None
        return replace(
            sent,
            source_topic=message.topic(),
            source_partition=message.partition(),
            source_offset=message.offset(),
        )

    def _signed(self, tenant: str, key: bytes, value: bytes) -> dict[str, Any]:
        """The headers of a request, where its tenant signs."""
        secret = self._secrets.get(tenant)
        if secret is None:
            return {}
        return {"headers": [(SIGNATURE, signature(secret, tenant, key, value, None))]}

    def _topic_of(self, sent: Verdict) -> str:
        """The topic of a request: the shared one, or its tenant's own."""
        return f"{self._topic}.{sent.tenant}" if self._own_topics else self._topic

    def _open(self, topics: set[str]) -> tuple[Producer, bytes]:
        """The producer and the first bytes of records; each topic is looked for once."""
        with self._lock:
            producer = self._cluster.producer() if self._made is None else self._made[0]
            for topic in topics - self._found:
                self._cluster.partitions(producer, topic)
            self._found |= topics
            if self._made is None:
                self._made = (producer, self._frame())
            return self._made

    def _frame(self) -> bytes:
        """The first bytes of a request: Confluent's prefix, or that of Avro's single-object
        encoding.
        """
        if self._schemas is None:
            return framing.single_object(NAME)
        return self._schemas.prefix(self._topic, NAME)

    def _failure(self, error: Any, sent: Verdict, size: int) -> BelfryError:
        """Why a record was not written, in words."""
        if isinstance(error, KafkaError) and error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            code = "request_too_large"
            reason = (
                f"{size} bytes are more than topic {self._topic_of(sent)} or the producer take"
                " (message.max.bytes). Store the content elsewhere and schedule its address."
            )
            refused = replace(sent, outcome=Outcome.REJECTED, code=code, reason=reason)
            return Rejected(f"REJECTED ({code}) {sent.name}: {reason}", refused)
        if isinstance(error, KafkaError) and error.code() in _MAY_NOT_WRITE:
            return self._cluster.unavailable(error, self._topic_of(sent), operation="Write")
        why = error.str() if isinstance(error, KafkaError) else str(error)
        cause = f"; {self._cluster.faults.last}" if self._cluster.faults.last else ""
        return Unavailable(
            f"Kafka at {self._cluster.servers} has not confirmed the request on {sent.name}"
            f" ({why}{cause}). It may have been written or not: ask again with request id"
            f" {sent.request_id}, which is carried out once at most."
        )


def _encoded(fields: dict[str, Any], sent: Verdict) -> bytes:
    """A request as Avro without a prefix; raises `Rejected` where it cannot be."""
    try:
        return catalogue.encode(NAME, fields)
    except (ValueError, OverflowError) as error:
        # Half a character, or a number of more than 64 bits.
        reason = f"A field cannot be written as Avro: {error}."
        refused = replace(sent, outcome=Outcome.REJECTED, code="bad_fields", reason=reason)
        raise Rejected(f"REJECTED (bad_fields) {sent.name!a}: {reason}", refused) from None
