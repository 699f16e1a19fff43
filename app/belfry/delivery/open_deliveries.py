"""Deliveries without an end: new ones, and those that wait for another attempt.

    1  the group's committed progress    which records of the topic of deliveries are done with
    2  belfry.lifecycle                  which deliveries were told to be DELIVERED or FAILED
    3  belfry.deliveries                 all deliveries

In this order: an end is told in the transaction that moves the progress, so step 2 has the ends of
all deliveries that are done in step 1. Only tenants of level ALL are told of an arrival. So for
other tenants only deliveries show that no dispatcher has come to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from belfry.client.decoding import Decoder
from belfry.delivery.dead_letters import REACH_S, Letter, records
from belfry.delivery.progress import DeliveryPosition
from belfry.delivery.work import NotADelivery, Work, work_of
from belfry.kafka import librdkafka
from belfry.kafka.record_headers import headers_of
from belfry.registry.subjects import look_in, open_registry
from belfry.settings import SharedSettings
from belfry.tenants.deliveries import RETRIES

# By how much the clocks of workers and dispatchers may differ.
CLOCKS_MS: Final = 60_000
# Codes of open deliveries: no dispatcher has come to it, or the next attempt is a schedule.
WAITING: Final = "waiting"
RETRYING: Final = "retrying"

# Fire id and target: when a delivery to it was last told to have ended, epoch ms.
Ends = dict[tuple[str, str], int]
DeliveryEnd = tuple[tuple[str, str], int]


class DeliveryRecord(NamedTuple):
    """A record of the topic of deliveries: its work, when it was written, whether it ended."""

    work: Work
    at_ms: int
    ended: bool


def open_deliveries(settings: SharedSettings, before_ms: int) -> Iterator[Letter]:
    """Deliveries that have no end, of events that fired before an instant (epoch ms).

    Raises ConnectionError and KafkaException. All three topics are read from their beginnings, so
    it takes as long as they are; one letter of each delivery is held in memory.
    """
    progress = progress_of(settings)
    told = _ends(settings)
    latest: dict[tuple[str, int], Letter] = {}
    for seen in _seen(settings, progress):
        if seen.work.event.fired_at < before_ms:
            judge(seen, told, latest)
    yield from latest.values()


def judge(seen: DeliveryRecord, told: Ends, latest: dict[tuple[str, int], Letter]) -> None:
    """Keep the open attempt of a delivery; its attempts come in any order."""
    event, state = seen.work.event, seen.work.state
    name = (event.fire_id, state.number)
    other = latest.get(name)
    if other is not None and other.work.state.attempt > state.attempt:
        return
    if not seen.ended:
        reason = f"no dispatcher has come to attempt {state.attempt}"
        latest[name] = Letter(seen.work, seen.at_ms, WAITING, reason)
        return
    latest.pop(name, None)
    ended_ms = max((told.get((event.fire_id, each.url), 0) for each in state.targets), default=0)
    if state.tell and ended_ms < seen.at_ms - CLOCKS_MS:
        schedule = f"{event.fire_id}/{state.number}/{state.attempt + 1}"
        reason = f"attempt {state.attempt} failed; the next is schedule {schedule} of {RETRIES}"
        latest[name] = Letter(seen.work, seen.at_ms, RETRYING, reason)


def progress_of(settings: SharedSettings) -> dict[int, DeliveryPosition]:
    """The progress of the group of dispatchers, by partition; it joins no group."""
    consumer = asking_consumer(settings)
    try:
        return asked_progress(settings, consumer)
    finally:
        consumer.close()


def asking_consumer(settings: SharedSettings) -> Consumer:
    """A consumer that may ask for the dispatchers' progress; it connects when it asks."""
    group = f"{settings.cluster.app_id}.deliver"
    return librdkafka.Consumer({**settings.kafka_properties(), "group.id": group})


def asked_progress(settings: SharedSettings, consumer: Consumer) -> dict[int, DeliveryPosition]:
    """The same as `progress_of`, asked by this consumer; raises KafkaException."""
    topic = settings.topic("deliveries")
    known = consumer.list_topics(topic, REACH_S).topics.get(topic)
    there = known is not None and known.error is None
    asked = [TopicPartition(topic, partition) for partition in (known.partitions if there else ())]
    found = consumer.committed(asked, REACH_S) if asked else []
    for each in found:
        if each.error is not None:
            raise KafkaException(each.error)
    return {each.partition: DeliveryPosition(each.offset, each.metadata or "") for each in found}


def _ends(settings: SharedSettings) -> Ends:
    """When deliveries were last told to have ended."""
    decoder = Decoder("LifecycleEvent", look_in(open_registry(settings)), only=True)
    ends: Ends = {}
    for message in records(settings, settings.topic("lifecycle")):
        end = end_in(message, decoder)
        if end is not None:
            ends[end[0]] = max(end[1], ends.get(end[0], 0))
    return ends


def end_in(message: Message, decoder: Decoder) -> DeliveryEnd | None:
    """The end of a delivery that a lifecycle record tells, and when; None for another event."""
    told = decoder.record(message.value() or b"")
    if told is None or told["outcome"] not in ("DELIVERED", "FAILED"):
        return None
    return (told["fire_id"] or "", told["target"] or ""), told["at"]


def _seen(
    settings: SharedSettings, progress: dict[int, DeliveryPosition]
) -> Iterator[DeliveryRecord]:
    """All deliveries, as far as their records are kept."""
    decoder = Decoder("FiredEvent", look_in(open_registry(settings)), only=True)
    for message in records(settings, settings.topic("deliveries")):
        (headers,) = headers_of([message])
        try:
            work = work_of(message.key(), message.value(), headers or [], decoder)
        except NotADelivery:
            continue
        here = progress.get(message.partition())
        ended = here is not None and here.done_with(message.offset())
        yield DeliveryRecord(work, message.timestamp()[1], ended)
