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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from confluent_kafka import KafkaError, KafkaException, Producer

from belfry.client.acknowledged import HandedOver, Place
from belfry.client.errors import BelfryError, Rejected, Unavailable
from belfry.client.faults import FAILED_FOR_GOOD
from belfry.client.kafka import Cluster
from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import Outcome
from belfry.wire import framing
from belfry.wire.claims import signature
from belfry.wire.quick_writing import NAME, Ready, encode_request
from belfry.wire.record import SIGNATURE

if TYPE_CHECKING:
    from belfry.client.schemas import RegisteredSchemas

# Longer than the producer's own limit, so that the producer reports the result of a record first.
# Seconds until a record that nothing is heard of counts as not written.
WRITE_S: Final = 12.0
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

    def write_all(
        self, requests: Sequence[tuple[dict[str, Any] | Ready, Verdict]]
    ) -> list[Verdict]:
        """Write some requests, in their order; returns where they lie.

        Raises for the first that was not written; others of them may have been.
        """
        if not requests:
            return []
        handed = self.hand_over(requests)
        self._wait(handed, handed.flushed)
        return list(self.placed(handed))

    def hand_over(self, requests: Sequence[tuple[dict[str, Any] | Ready, Verdict]]) -> HandedOver:
        """Begin to write some requests, in their order, without a wait for Kafka.

        There has to be one. Raises for the first that the producer does not take; it has those
        before.
        """
        sent = [each for _, each in requests]
        producer, frame = self._open({self._topic_of(each) for each in sent})
        handed = HandedOver(producer, sent)
        for number, (fields, each) in enumerate(requests):
            value, tenant = frame + _encoded(fields, each), each.tenant
            handed.sizes.append(len(value))
            topic, key = self._topic_of(each), tenant.encode()
            signed = self._signed(tenant, key, value) if self._secrets else {}
            told = handed.callback(number)
            try:
                producer.produce(topic, value, key, on_delivery=told, **signed)
            except (KafkaException, BufferError) as error:
                raise self._failure(self._cause(error.args[0]), each, len(value)) from None
        return handed

    def hear(self, handed: HandedOver) -> None:
        """Wait until Kafka has told of all of them, or `WRITE_S` seconds; raises `Unavailable`.

        It sends nothing sooner, so the caller may hand over the next ones before.
        """
        self._wait(handed, handed.heard)

    def placed(self, handed: HandedOver) -> Iterator[Verdict]:
        """Where requests lie that were heard of; raises at the first that was not written."""
        return map(self._placed, handed.sent, handed.sizes, handed.places)

    def _wait(self, handed: HandedOver, wait: Callable[[Cluster, float], None]) -> None:
        """Wait for results; a producer that cannot write any more is given up."""
        try:
            wait(self._cluster, WRITE_S)
        except KafkaException as error:
            with self._lock:
                self._made = None
            raise self._failure(error.args[0], handed.sent[0], handed.sizes[0]) from None

    def _cause(self, error: Any) -> Any:
        """Why a record was not written; a producer that has failed for good is given up."""
        if not isinstance(error, KafkaError) or error.code() != FAILED_FOR_GOOD:
            return error
        with self._lock:
            self._made = None
        return self._cluster.cause(error)

    def _placed(self, sent: Verdict, size: int, place: Place | None) -> Verdict:
        """The verdict with the place of its record in the log."""
        error = KafkaError(KafkaError._TIMED_OUT) if place is None else place.error
        if place is None or error is not None:
            raise self._failure(self._cause(error), sent, size)
        return Verdict.made(
            tenant=sent.tenant, schedule_id=sent.schedule_id, outcome=None,
            request_id=sent.request_id, source_topic=place.topic,
            source_partition=place.partition, source_offset=place.offset,
        )  # fmt: skip

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


def _encoded(request: dict[str, Any] | Ready, sent: Verdict) -> bytes:
    """A request as Avro without a prefix; raises `Rejected` where it cannot be."""
    if not isinstance(request, dict):
        return request.body(sent.request_id or "")
    try:
        return encode_request(request)
    except (ValueError, OverflowError) as error:
        # Half a character, or a number of more than 64 bits.
        reason = f"A field cannot be written as Avro: {error}."
        refused = replace(sent, outcome=Outcome.REJECTED, code="bad_fields", reason=reason)
        raise Rejected(f"REJECTED (bad_fields) {sent.name!a}: {reason}", refused) from None
