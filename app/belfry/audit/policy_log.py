"""Notes each change of a policy in `belfry.tenants`, whichever program wrote it.

Over HTTP the caller is known.  Only Kafka knows a producer that writes to the topic, as `belfry
tenant set` does.  So the log says which fields have changed and where the record lies, and Kafka's
own authorizer log says which principal wrote there.

    workers ── consumer group <app id>.audit ── each partition of belfry.tenants is one worker's

The group's position moves once Kafka has confirmed the events.  So a change is noted at least once:
twice where a worker ends in between, under the same offset.  A partition is read from its
beginning, because a change is the difference from the policy before; records before the position
are only remembered.  At the very first start the group has no position, and all present policies
are noted.

    belfry.tenants/0    40 shop v1    55 shop v2    61 shop, null       position 55
    40                  remembered: the policy before
    55                  policy.written: the fields in which v2 differs from v1
    61                  policy.removed
    position 62         once Kafka has confirmed both
"""

from __future__ import annotations

from typing import Any, Final

import structlog
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from belfry.audit.changes import changes_of
from belfry.audit.topic import audit_producer, key_of
from belfry.audit.trail import Trail
from belfry.client.decoding import Decoder
from belfry.client.kafka import headers_of
from belfry.host.background import Background
from belfry.settings import DeliverySettings
from belfry.tenants.policy import TenantPolicy
from belfry.wire.audit import AuditEvent, bounded, encode_audit
from belfry.wire.policies import policy_of, reason_of

READ_RECORDS: Final = 1_000
WAIT_S: Final = 0.5
REQUEST_S: Final = 10.0
CONFIRM_S: Final = 30.0

log = structlog.get_logger(__name__)


class NotConfirmed(Exception):
    """Kafka has not confirmed all events: the same changes are noted once more."""


class PolicyLog:
    """The thread that follows the topic; `start` and `stop` are called once each.

    Where Kafka does not confirm in `CONFIRM_S`, the round fails and the thread begins anew, from
    the last committed position.
    """

    def __init__(
        self, settings: DeliverySettings, decoder: Decoder, frame: bytes, trail: Trail
    ) -> None:
        """`frame` stands before each record; `trail` knows this worker's name, and counts.

        Events do not go through the trail, where they could be lost: this log has its own
        producers.
        """
        self._settings = settings
        self._decoder = decoder
        self._frame = frame
        self._trail = trail
        self._worker = trail.worker or ""
        self._policies: dict[int, dict[str, TenantPolicy | None]] = {}
        # The first offset of each partition that has not been noted.
        self._begin: dict[int, int] = {}
        self._thread = Background(
            "policy-log", self._follow, log, "changes of policies are not noted yet"
        )

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following."""
        self._thread.stop(CONFIRM_S)

    # -- the thread ------------------------------------------------------------------------------

    def _follow(self) -> None:
        consumer = self._consumer()
        try:
            consumer.subscribe(
                [self._settings.topic("tenants")],
                on_assign=self._assigned,
                on_revoke=self._revoked,
            )
            while not self._thread.stopping.is_set():
                messages = consumer.consume(READ_RECORDS, WAIT_S)
                self._note(consumer, [each for each in messages if not each.error()])
        finally:
            consumer.close()

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                **self._settings.kafka_properties(),
                "group.id": f"{self._settings.cluster.app_id}.audit",
                "client.id": f"belfry-audit-{self._worker}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
            }
        )

    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        for place in consumer.committed(places, REQUEST_S):
            self._begin[place.partition] = max(0, place.offset)
            self._policies[place.partition] = {}
        begun = [TopicPartition(each.topic, each.partition, OFFSET_BEGINNING) for each in places]
        consumer.assign(begun)

    def _revoked(self, _consumer: Consumer, places: list[TopicPartition]) -> None:
        for place in places:
            self._policies.pop(place.partition, None)
            self._begin.pop(place.partition, None)

    def _note(self, consumer: Consumer, messages: list[Any]) -> None:
        """Note new changes, and move the position once Kafka has confirmed them."""
        events: list[AuditEvent] = []
        ends: dict[int, int] = {}
        for message in messages:
            event = self._event(message)
            if event is not None:
                events.append(event)
                ends[message.partition()] = message.offset() + 1
        if not events:
            return
        self._write(events)
        topic = self._settings.topic("tenants")
        offsets = [TopicPartition(topic, each, end) for each, end in ends.items()]
        consumer.commit(offsets=offsets, asynchronous=False)
        self._begin.update(ends)
        self._trail.counted("written", len(events))

    def _event(self, message: Any) -> AuditEvent | None:
        """The event of a record of the topic; None where it has been noted before."""
        partition, offset, value = message.partition(), message.offset(), message.value()
        name = (message.key() or b"").decode(errors="replace")
        headers = headers_of(message)
        record = None if value is None else self._decoder.record(value, headers)
        after = None if record is None else policy_of(record)
        known = self._policies[partition]
        before = known.pop(name, None)
        if after is not None:
            known[name] = after
        if offset < self._begin[partition]:
            return None
        unreadable = value is not None and after is None
        return bounded(
            AuditEvent(
                at=max(0, message.timestamp()[1]),
                action="policy.removed" if value is None else "policy.written",
                result="UNKNOWN" if unreadable else "DONE",
                via="topic",
                tenant=name,
                object=name,
                code="unreadable" if unreadable else None,
                worker=self._worker,
                changes=() if unreadable else changes_of(before, after),
                source_topic=message.topic(),
                source_partition=partition,
                source_offset=offset,
                reason=reason_of(headers),
            )
        )

    def _write(self, events: list[AuditEvent]) -> None:
        """Write events, by a producer of their own: policies change seldom.

        Raises `NotConfirmed` where an event is not confirmed.
        """
        producer = audit_producer(self._settings.kafka_properties())
        failed: list[str] = []
        topic = self._settings.topic("audit")

        def told(error: Any, _message: object) -> None:
            if error is not None:
                failed.append(error.str())

        for event in events:
            value = self._frame + encode_audit(event)
            producer.produce(topic, value, key_of(event), on_delivery=told)
            producer.poll(0)
        left = producer.flush(CONFIRM_S)
        if failed or left:
            raise NotConfirmed(failed[0] if failed else f"{left} events were not confirmed in time")
