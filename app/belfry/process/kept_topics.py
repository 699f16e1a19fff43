"""Reads belfry.rejected, belfry.undelivered and belfry.deliveries for HTTP.

Each look goes back from the end of a topic in stretches, each twice as long as the one before,
until it has found enough or has read a bounded number of offsets. The next look goes on where it
ended.

    offsets of a partition   …  9 100 ──────── 9 900 ─── 9 975 ── 10 000 (its end)
    stretches                    … 200 │ 100 │   50    │    25
    ends after                   50 finds, 5 000 offsets, or the begin of the topic

So the newest records come first and a look costs a bounded time, however long the topic is.
`shown_requests.py` decides which parts of a request may be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from confluent_kafka import Message

from belfry.api.workers.kept import (
    MOST_USAGE_RECORDS,
    Before,
    KeptDelivery,
    KeptPage,
    ReadableValue,
    RedriveWork,
    RejectedRequest,
)
from belfry.client.errors import MissingTopic, Unavailable
from belfry.client.kafka import Cluster
from belfry.client.redrive_source import RedriveCount
from belfry.client.usage import UsageLimits, UsageSpan, read_usage
from belfry.delivery.dead_letters import Letter
from belfry.delivery.kept import LatestDeliveries
from belfry.kafka.tail_readers import TailReaders
from belfry.kafka.topic_tail import TopicTail
from belfry.process.readable import avro_in, request_in
from belfry.process.redriving import RedriveSlices
from belfry.process.shown_requests import RejectedReader, shown_fields
from belfry.registry.subjects import ask_in, look_in, open_registry
from belfry.schedules.masking import masked_url
from belfry.settings import SharedSettings
from belfry.tenants.policy import TenantPolicy
from belfry.wire.metering import Usage

T = TypeVar("T")

# Finds after which a look ends.
ENOUGH: Final = 50
# Offsets that one look goes back through, of all partitions together.
MOST_OFFSETS: Final = 5_000
# Offsets of the first stretch; each further one is twice as long, up to the longest.
FIRST_STRETCH: Final = 25
LONGEST_STRETCH: Final = 1_600
# Seconds for a read of usage; after that it is refused as too much.
USAGE_S: Final = 10.0


class ReadKeptTopics:
    """Reads what topics keep, for HTTP; blocks, and any thread may call it.

    Each call takes a consumer without a group, which stays connected for the next one. Methods
    raise ConnectionError if brokers do not answer; those that need a schema raise
    `RegistryUnreachableError` if the registry does not answer. Refused requests are shown without
    the registry as well, as far as they can be read. `now_ms` is the clock, in epoch ms.
    """

    def __init__(self, settings: SharedSettings, now_ms: Callable[[], float]) -> None:
        """`settings` lead to Kafka and the registry."""
        self._settings = settings
        registry = open_registry(settings)
        self._look, self._ask = look_in(registry), ask_in(registry)
        self._readers = TailReaders(settings.kafka_properties())
        self._redrives = RedriveSlices(settings)
        self._deliveries = LatestDeliveries(settings, now_ms, self._readers)

    def rejected(self, tenant: str | None, before: Before | None) -> KeptPage[RejectedRequest]:
        """Refused requests of a tenant; None: of all, also those without a known tenant.

        `before` is where an earlier look ended, None for the end of the topic. The newest come
        first.
        """
        read = RejectedReader(self._look)

        def short(message: Message) -> RejectedRequest | None:
            return read.of(message, tenant)

        page = self._page("rejected", before, short)
        return KeptPage(sorted(page.found, key=_when, reverse=True), page.examined, page.rest)

    def dead_letters(self, tenant: str, before: Before | None) -> KeptPage[KeptDelivery]:
        """A tenant's deliveries that were given up."""
        read = self._deliveries.reader()

        def short(message: Message) -> KeptDelivery | None:
            placed = read(message)
            if placed is None or placed.letter.work.event.tenant != tenant:
                return None
            partition, offset, letter = placed
            return _delivery(letter, "given_up", (partition, offset))

        page = self._page("undelivered", before, short)
        return KeptPage(sorted(page.found, key=_when, reverse=True), page.examined, page.rest)

    def open_deliveries(self, tenant: str) -> KeptPage[KeptDelivery]:
        """A tenant's deliveries without an end, among the latest ones; the newest first, at most
        200.
        """
        found, examined = self._deliveries.without_end(tenant)
        shown = [_delivery(letter, letter.code, None) for letter in found]
        return KeptPage(sorted(shown, key=_when, reverse=True)[: 4 * ENOUGH], examined, None)

    def usage(self, asked: UsageSpan) -> list[Usage]:
        """A tenant's usage, by period, as the metering topic has it."""
        properties = self._settings.kafka_properties()
        cluster = Cluster(properties.pop("bootstrap.servers"), properties)
        limits = UsageLimits(MOST_USAGE_RECORDS, USAGE_S)
        try:
            return read_usage(cluster, self._settings.topic("metering"), asked, limits)
        except MissingTopic:
            raise
        except Unavailable as error:
            raise ConnectionError(str(error)) from error

    def request(
        self, tenant: str, topic: str | None, place: tuple[int, int]
    ) -> Mapping[str, Any] | None:
        """The fields of a tenant's request that may be shown, at a place of the request topic."""
        name = self._settings.topic("schedules")
        if topic not in (None, name):
            return None
        message = self._readers.record_at(name, place)
        found = None if message is None else request_in(message, self._ask)
        return shown_fields(found) if found is not None and found["tenant"] == tenant else None

    def avro(self, value: bytes) -> ReadableValue:
        """The value in these bytes, by the Avro schema that they name; raises `UnreadableValue`."""
        return avro_in(value, self._ask)

    def redrive(
        self, work: RedriveWork, policies: Mapping[str, TenantPolicy]
    ) -> tuple[RedriveCount, int]:
        """The number of records to send again, and how many were sent (`redriving.py`)."""
        return self._redrives.redriven(work, policies)

    def stop(self) -> None:
        """End redrives that are under way; they take longer than all other calls."""
        self._redrives.stop()

    def replay(self, tenant: str, place: tuple[int, int]) -> bool:
        """Repeat the delivery that was given up at this place (partition, offset); returns whether
        there is one.
        """
        return self._deliveries.replay(tenant, *place)

    def _page(
        self, topic: str, before: Before | None, short: Callable[[Message], T | None]
    ) -> KeptPage[T]:
        """Look back until enough is found; `short` makes the shown value of a record, or None."""

        def work(tail: TopicTail) -> KeptPage[T]:
            found: list[T] = []
            examined, offsets = 0, FIRST_STRETCH
            while not tail.is_over and len(found) < ENOUGH and examined < MOST_OFFSETS:
                read = tail.stretch(offsets, short)
                # Markers of transactions count as well, so that a look ends whatever lies there.
                examined += max(len(read), offsets)
                found += [each for each in read if each is not None]
                offsets = min(2 * offsets, LONGEST_STRETCH)
            return KeptPage(found, examined, None if tail.is_over else dict(tail.rest))

        return self._readers.look(self._settings.topic(topic), work, before)


def _delivery(letter: Letter, state: str, place: tuple[int, int] | None) -> KeptDelivery:
    """A delivery as it is shown; `place` is its place for a replay, None if it has none."""
    event, delivery = letter.work.event, letter.work.state
    return KeptDelivery(
        tenant=event.tenant,
        schedule_id=event.schedule_id,
        fire_id=event.fire_id,
        at_ms=letter.at_ms,
        fired_ms=event.fired_at,
        state=state,
        code=letter.code,
        reason=letter.reason,
        attempt=delivery.attempt,
        attempts=delivery.attempts,
        targets=tuple(masked_url(each.url) for each in delivery.targets),
        place=place,
    )


def _when(each: RejectedRequest | KeptDelivery) -> int:
    return each.at_ms
