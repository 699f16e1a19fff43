"""Given-up deliveries, read from their topic, and sent on their way once more.

A delivery that is given up lies in `belfry.undelivered` as it lay in the topic of deliveries, with
two headers behind its own: a code and a sentence. So it can be made work again, and a replay is the
request for its first attempt:

    belfry.undelivered ─► Letter ─► request of belfry-deliveries, due now ─► fires ─► dispatcher

The request has one id for each delivery, so a second replay while the first one waits is the same
schedule. Event and fire id stay the same.

This module reads whole topics and is for the command line. `kept.py` looks at their ends, for HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from belfry.client.decoding import Decoder
from belfry.delivery.answers import Again
from belfry.delivery.follow_ups import Places, retry
from belfry.delivery.work import NotADelivery, Work, work_of
from belfry.kafka.partition_log import PartitionLog
from belfry.kafka.record_headers import headers_of
from belfry.registry.subjects import look_in, open_registry
from belfry.settings import SharedSettings
from belfry.wire import framing
from belfry.wire.record import Headers
from belfry.wire.worker_keys import Purpose, first

# Records that are read at once; the others are seconds, for the list of topics and for all requests
# of a replay to be acknowledged.
BATCH: Final = 1_000
REACH_S: Final = 10.0
FLUSH_S: Final = 30.0


class Letter(NamedTuple):
    """One delivery that was given up, when (epoch ms), and why."""

    work: Work
    at_ms: int
    code: str
    reason: str


def dead_letters(settings: SharedSettings) -> Iterator[Letter]:
    """All records in the topic of given-up deliveries, partition by partition.

    Records that never were deliveries are left out.  Raises ConnectionError and KafkaException.
    """
    decoder = Decoder("FiredEvent", look_in(open_registry(settings)), only=True)
    for message in records(settings, settings.topic("undelivered")):
        letter = letter_of(message, decoder)
        if letter is not None:
            yield letter


def letter_of(message: Message, decoder: Decoder) -> Letter | None:
    """The delivery in a record of that topic; None if the record is not a delivery.

    `code` and `reason` are empty where the record has no such headers.
    """
    (headers,) = headers_of([message])
    given: Headers = headers or []
    try:
        work = work_of(message.key(), message.value(), given, decoder)
    except NotADelivery:
        return None
    said = {name: (value or b"").decode(errors="replace") for name, value in given}
    code, reason = said.get("belfry-error-code", ""), said.get("belfry-error-reason", "")
    return Letter(work, message.timestamp()[1], code, reason)


def records(settings: SharedSettings, topic: str) -> Iterator[Any]:
    """All committed records of a topic, partition by partition; none where it is not there.

    Each partition is read to the end that it has when its turn comes.
    """
    for partition in partitions(settings, topic):
        log = PartitionLog(settings.kafka_properties(), topic, partition)
        try:
            low, high = log.ends()
            log.seek(low)
            for messages in log.read_until(high, BATCH):
                yield from messages
        finally:
            log.close()


def partitions(settings: SharedSettings, topic: str) -> list[int]:
    """The partitions of a topic; none where it is not there."""
    admin = AdminClient(settings.kafka_properties())
    known = admin.list_topics(timeout=REACH_S).topics.get(topic)
    return [] if known is None else sorted(known.partitions)


def replay(settings: SharedSettings, given: Iterable[Letter], now_ms: int) -> int:
    """Have these delivered again, from their first attempt on; how many.

    Each is a request like that of a retry, so it may be asked for as often as one likes.  Raises
    KafkaException where Kafka does not take them.
    """
    head = framing.single_object("ScheduleRequest")
    key = first(settings.worker_keys(Purpose.DELIVERIES))
    places = Places(settings.topic("schedules"), "", "", head, b"", retry_key=key)
    producer = Producer(
        {
            **settings.kafka_properties(),
            "partitioner": "murmur2_random",
            "message.max.bytes": 4_000_000,
        }
    )
    refused: list[Exception] = []
    number = 0
    for letter in given:
        again = Again(now_ms, replace(letter.work.state, attempt=1))
        record = retry(letter.work, again, places)
        if record is None:
            continue
        carried: Any = record.headers
        producer.produce(
            record.topic,
            record.value,
            record.key,
            headers=carried,
            on_delivery=lambda error, _: refused.append(KafkaException(error)) if error else None,
        )
        producer.poll(0)
        number += 1
    left = producer.flush(FLUSH_S)
    if refused:
        raise refused[0]
    if left:
        raise ConnectionError(f"{left} of {number} requests were not acknowledged in {FLUSH_S} s")
    return number
