"""Writes events to topics that are targets, at least once, with an idempotent producer.

    work ─► allowed? ─► topic there? ─► produce ─► acknowledged by all replicas in sync  DELIVERED
              │ no        │ no             │ too large                                   FAILED
              ▼           ▼                │ not authorised, no answer in time           retried
            FAILED      FAILED             ▼

The producer has no transaction: one record that a topic refuses must not undo the others.  A crash
between the acknowledgement and the outcome therefore writes the record again, with the same
`belfry-fire-id`.  A record travels in a batch of its own, so that an answer is about it alone:
brokers judge the size of whole batches.

A topic is looked up before it is written to, by a question that makes no topic.  Producers ask in a
way that does, where brokers are set to make topics on demand.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from queue import Empty
from typing import Any, Final

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection

from belfry.client.faults import ABSENT
from belfry.delivery.answers import Answer, End, Sent
from belfry.delivery.figures import TARGETS, ClientTold, silent_clients
from belfry.delivery.work import Finished, Work, WorkId
from belfry.host import machine
from belfry.host.background import Background
from belfry.host.clock import SystemClock
from belfry.kafka import librdkafka
from belfry.schedules.instants import format_instant
from belfry.schedules.target_kinds import is_allowed
from belfry.schedules.target_kinds.kafka import topic_of
from belfry.settings import DeliverySettings
from belfry.tenants.topic_names import TopicNames
from belfry.wire.headers import EVENT_TYPE, GROUP, TENANT, VERSION
from belfry.wire.record import Headers

# Seconds for which the thread waits for work: without work under way, and with some.
WAIT_S: Final = 0.5
POLL_S: Final = 0.005
# Seconds for the brokers to say whether a topic is there.
ASK_S: Final = 5.0
# For so long a topic that was there is taken to be there.
KNOWN_S: Final = 10.0
STOP_S: Final = 5.0
MESSAGE_TIMEOUT_MS: Final = 10_000
# Bytes of a record that the client takes; brokers judge by their own limits.
MOST_BYTES: Final = 4_000_000
_DENIED: Final = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}

log = structlog.get_logger(__name__)


class KafkaSender:
    """Writes events to topics, in a thread of its own.

    `finished` is called from that thread, once for each piece. Records under way are not waited
    for: their answers come within `MESSAGE_TIMEOUT_MS`.
    """

    def __init__(
        self, settings: DeliverySettings, finished: Finished, clients: ClientTold = silent_clients
    ) -> None:
        """Clients are made when the first work comes: most belfries have no such targets."""
        self._properties = settings.kafka_properties()
        self._clients = clients
        self._names = TopicNames(settings.cluster.topic_prefix)
        self._finished = finished
        self._clock = SystemClock()
        self._queue: machine.SimpleQueue[tuple[int, WorkId, Work] | None] = machine.SimpleQueue()
        self._term = 0
        self._known_until_s: dict[str, float] = {}
        self._producer: Any = None
        self._admin: Any = None
        self._thread = Background("kafka-targets", self._turn, log, "events not written to targets")

    def start(self) -> None:
        """Begin to wait for work."""
        self._thread.start()

    def hand_in(self, pieces: list[tuple[WorkId, Work]]) -> None:
        """Work to be done, in its order; returns at once."""
        for work_id, work in pieces:
            self._queue.put((self._term, work_id, work))

    def drop(self) -> None:
        """Write no more of the given work; records on their way arrive all the same."""
        self._term += 1

    def stop(self) -> None:
        """Give up the work under way, and end."""
        self._thread.stopping.set()
        self._queue.put(None)  # Wakes it.
        self._thread.stop(STOP_S)

    # -- the thread ------------------------------------------------------------------------------

    def _turn(self) -> None:
        """One turn of the thread: a piece of work, if there is one, and answers that have come."""
        busy = self._producer is not None and len(self._producer) > 0
        try:
            handed = self._queue.get(timeout=POLL_S if busy else WAIT_S)
        except Empty:
            handed = None
        if handed and handed[0] == self._term:
            self._send(*handed[1:])
        if self._producer is not None:
            self._producer.poll(0)

    def _send(self, work_id: WorkId, work: Work) -> None:
        """Write one record, or answer why not."""
        url = work.state.targets[0].url
        topic = topic_of(url)
        try:
            answer = self._refusal(work, topic) or self._absence(url, topic)
            if answer is None:
                self._produce(topic, work_id, work)
        except KafkaException as error:
            answer = self._failed(url, topic, error.args[0])
        except Exception as error:  # any error: the delivery has to go on
            log.exception("an attempt ended in an error", fire_id=work.event.fire_id)
            answer = Answer(End.AGAIN, url, "internal", str(error)[:300])
        if answer is not None:
            self._finished(work_id, work, answer)

    def _refusal(self, work: Work, topic: str) -> Answer | None:
        """Why this tenant's events must not go there, or None.

        Its policy was looked at when the event was asked for; a record that comes here by another
        way must not reach a reserved topic either.
        """
        target = work.state.targets[0]
        why = self._names.target_problem(work.event.tenant, topic)
        if why is None and not is_allowed(target, work.state.hosts):
            why = f"{target.url} is not among the allowed_hosts of the tenant's policy"
        return None if why is None else Answer(End.FINAL, target.url, "target_not_allowed", why)

    def _absence(self, url: str, topic: str) -> Answer | None:
        """The answer where the topic is not there, or None.  Raises KafkaException."""
        if self._known_until_s.get(topic, 0.0) > machine.monotonic():
            return None
        if self._admin is None:
            self._admin = librdkafka.AdminClient(self._properties)
        asked = self._admin.describe_topics(TopicCollection([topic]), request_timeout=ASK_S)
        try:
            asked[topic].result(ASK_S)
        except KafkaException as error:
            return self._failed(url, topic, error.args[0])
        self._known_until_s[topic] = machine.monotonic() + KNOWN_S
        return None

    def _produce(self, topic: str, work_id: WorkId, work: Work) -> None:
        """Raises KafkaException, and BufferError where too much is on its way."""
        if self._producer is None:
            told = self._clients(TARGETS)
            self._producer = librdkafka.Producer(_producer_properties({**self._properties, **told}))
        self._producer.produce(
            topic,
            work.event.payload,
            work.fired_key,
            headers=headers_of(work),
            on_delivery=partial(self._acknowledged, work_id, work, self._clock.wall_ms()),
        )

    def _acknowledged(
        self, work_id: WorkId, work: Work, began_ms: float, error: KafkaError | None, _: Any
    ) -> None:
        """Give a record's answer back; librdkafka calls it within `poll`."""
        url = work.state.targets[0].url
        if error is None:
            answer = Answer(End.DELIVERED, url)
        else:
            answer = self._failed(url, topic_of(url), error)
        sent = Sent(url, began_ms, self._clock.wall_ms(), answer.end, 0, answer.code)
        self._finished(work_id, work, replace(answer, sent=(sent,)))

    def _failed(self, url: str, topic: str, error: KafkaError) -> Answer:
        """The answer for an error of Kafka; it also looks anew at the topic."""
        self._known_until_s.pop(topic, None)
        if error.fatal():
            self._producer = None
        return answer_to(error, url, self._properties)


def answer_to(error: KafkaError, url: str, properties: dict[str, Any]) -> Answer:
    """The answer for an error of Kafka in a delivery to this address."""
    topic, code = topic_of(url), error.code()
    if code == KafkaError.MSG_SIZE_TOO_LARGE:
        reason = f"topic {topic} takes no record of this size: raise its max.message.bytes"
        return Answer(End.FINAL, url, "too_large", reason)
    if code in ABSENT:
        reason = f"topic {topic} does not exist, and belfry makes no topics of targets: create it"
        return Answer(End.FINAL, url, "topic_missing", reason)
    if code in _DENIED:
        user = properties.get("sasl.username")
        who = f"principal User:{user}" if user else "the principal of the process that delivers"
        reason = f"{who} may not write to topic {topic}: grant it WRITE and DESCRIBE"
        return Answer(End.AGAIN, url, "not_authorized", reason)
    return Answer(End.AGAIN, url, "kafka", f"topic {topic}: {error.str()[:300]}", heard=False)


def headers_of(work: Work) -> Headers:
    """The event's own headers, then those that belfry gives to every fired record."""
    event = work.event
    headers: Headers = [
        *work.headers,
        ("belfry-fire-id", event.fire_id.encode()),
        ("belfry-schedule-id", event.schedule_id.encode()),
        ("belfry-scheduled-at", format_instant(event.scheduled_at).encode()),
        ("belfry-occurrence", str(event.occurrence).encode()),
        (TENANT, event.tenant.encode()),
        (VERSION, str(event.version).encode()),
    ]
    named = ((GROUP, event.group), (EVENT_TYPE, event.event_type))
    headers += [(name, text.encode()) for name, text in named if text]
    missed: Headers = [("belfry-missed", str(event.missed).encode())] if event.missed else []
    attempt = str(work.state.attempt).encode()
    return [
        *headers,
        *missed,
        ("belfry-tenant", event.tenant.encode()),
        ("belfry-attempt", attempt),
    ]


def _producer_properties(given: dict[str, Any]) -> dict[str, Any]:
    return {
        **given,
        "enable.idempotence": True,
        "acks": "all",
        "batch.num.messages": 1,
        "message.timeout.ms": MESSAGE_TIMEOUT_MS,
        "message.max.bytes": MOST_BYTES,
        "partitioner": "murmur2_random",
    }
