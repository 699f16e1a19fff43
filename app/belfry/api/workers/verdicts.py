"""Verdicts that are awaited: from the tail of the lifecycle topic, or from this worker itself.

The reader stands at the end of every partition before the first request is written.  What this
worker commits it says at once: readers see a record in Kafka only when all transactions that began
before it in the same partition have ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final

import structlog
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from belfry.client.answers import VERDICTS
from belfry.client.decoding import Decoder
from belfry.client.kafka import Cluster, headers_of
from belfry.client.verdict import Verdict
from belfry.host.background import Background
from belfry.settings import SharedSettings
from belfry.wire.lifecycle import LifecycleEvent, asked_in, generation_in, record_of

# Seconds for a first record, and for those that have come with it.
POLL_S: Final = 0.1
BATCH_S: Final = 0.001
BATCH: Final = 1_000
# Seconds between two looks for partitions that were added to the topic.
LOOK_S: Final = 30.0
# The source of a verdict that names none.
NO_SOURCE: Final = (None, None)
# Tenant, schedule and request id, as they lie in a lifecycle event.
Asked = tuple[bytes, bytes, bytes]

log = structlog.get_logger(__name__)


class AwaitedVerdict:
    """A verdict that is awaited: the one on the request that lies where ours was written.

    The same request may have been answered a moment ago, to another worker: that verdict has
    another source.  A DUPLICATE of an older release names none, and says the same of any.  Belongs
    to one event loop.
    """

    def __init__(self, answer: asyncio.Future[Verdict]) -> None:
        self.answer = answer
        self._source: tuple[int | None, int | None] | None = None
        self._early: list[Verdict] = []

    def written(self, partition: int | None, offset: int | None) -> None:
        """Kafka has the request, there."""
        self._source = partition, offset
        for verdict in self._early:
            self.heard(verdict)

    def heard(self, verdict: Verdict) -> None:
        """A verdict on a request of this id."""
        if self._source is None:
            self._early.append(verdict)
        elif (verdict.source_partition, verdict.source_offset) in (self._source, NO_SOURCE):
            settle(self.answer, verdict)


class VerdictReader:
    """Reads the tail of the lifecycle topic in a thread; settles the futures of a loop.

    `expect` and `forget` are called in the loop, `committed` by the threads of partitions. `head`
    is what stands before a lifecycle event of this release; records that begin otherwise are
    decoded.
    """

    def __init__(self, cluster: Cluster, settings: SharedSettings, head: bytes) -> None:
        self._cluster = cluster
        self._topic = settings.topic("lifecycle")
        self._head = head
        self._group = f"{settings.cluster.app_id}-http"
        self._decoder = Decoder("LifecycleEvent", only=True)
        self._waiting: dict[Asked, AwaitedVerdict] = {}
        self._read: set[int] = set()
        self._consumer: Consumer | None = None
        self._looked = monotonic()
        self._thread = Background("http-verdicts", self._turn, log, "verdicts not read")

    def start(self) -> None:
        """Stand at the end of every partition, and begin to read."""
        if self._consumer is None:
            self._consumer = self._cluster.consumer(self._group)
        ends = self._cluster.ends(self._consumer, self._topic)
        self._read = {end.partition for end in ends}
        self._consumer.assign(ends)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and the consumer."""
        self._thread.stop()
        if self._consumer is not None:
            self._consumer.close()

    def expected(self, asked: Asked) -> asyncio.Future[Verdict] | None:
        """The future that waits for this verdict already."""
        awaited = self._waiting.get(asked)
        return None if awaited is None else awaited.answer

    def expect(self, asked: Asked, awaited: AwaitedVerdict) -> None:
        """From here on verdicts on this request are told."""
        self._waiting[asked] = awaited

    def forget(self, asked: Asked) -> None:
        """Nobody waits for this verdict any more."""
        del self._waiting[asked]

    def committed(self, events: Sequence[LifecycleEvent]) -> None:
        """Verdicts before they can be read; from any thread."""
        if self._waiting:
            _tell([heard for event in events for heard in self._meant(event)])

    def _meant(self, event: LifecycleEvent) -> Iterator[tuple[AwaitedVerdict, Verdict]]:
        """A verdict of this worker's own, for those who wait for it."""
        if event.request_id is None or event.outcome not in VERDICTS:
            return
        awaited = self._waiting.get(_named(event.tenant, event.schedule_id, event.request_id))
        if awaited is not None:
            yield awaited, Verdict.from_record(record_of(event), event.generation)

    def _turn(self) -> None:
        assert self._consumer is not None
        first = self._consumer.poll(POLL_S)
        if first is not None:
            self._take([first, *self._consumer.consume(BATCH, BATCH_S)])
        if monotonic() - self._looked > LOOK_S:
            self._looked = monotonic()
            self._look_for_more(self._consumer)

    def _look_for_more(self, consumer: Consumer) -> None:
        """Read partitions that were added to the topic, from their beginning."""
        try:
            added = set(self._cluster.partitions(consumer, self._topic)) - self._read
        except Exception as error:  # noqa: BLE001  # the cluster is away: the next look tells
            log.debug("the lifecycle topic was not looked at", reason=str(error))
            return
        if added:
            places = [TopicPartition(self._topic, p, OFFSET_BEGINNING) for p in sorted(added)]
            consumer.incremental_assign(places)
            self._read |= added

    def _take(self, messages: list[Message]) -> None:
        if not self._waiting:
            return
        _tell([settled for message in messages for settled in self._answered(message)])

    def _answered(self, message: Message) -> Iterator[tuple[AwaitedVerdict, Verdict]]:
        """A verdict in a record, for those who wait for it."""
        value = message.value()
        if message.error() is not None or value is None or not self._may_be_awaited(value):
            return
        record = self._decoder.record(value)
        if record is None or record["outcome"] not in VERDICTS or record["request_id"] is None:
            return
        awaited = self._waiting.get(asked_in_fields(record))
        if awaited is not None:
            yield awaited, Verdict.from_record(record, generation_in(headers_of(message)))

    def _may_be_awaited(self, value: bytes) -> bool:
        """Whether a record is worth decoding; most belong to others."""
        if not value.startswith(self._head):
            return True
        try:
            return asked_in(value, len(self._head)) in self._waiting
        except IndexError:
            return False


def _tell(found: list[tuple[AwaitedVerdict, Verdict]]) -> None:
    """Have verdicts heard in the loop in which they are awaited."""
    if found:
        # A loop that has ended has nobody who waits.
        with suppress(RuntimeError):
            found[0][0].answer.get_loop().call_soon_threadsafe(_tell_all, found)


def _tell_all(found: list[tuple[AwaitedVerdict, Verdict]]) -> None:
    for awaited, verdict in found:
        awaited.heard(verdict)


def asked_in_fields(fields: dict[str, Any]) -> Asked:
    """Which request a request's or an event's fields are about."""
    return _named(fields["tenant"], fields["schedule_id"], fields["request_id"])


def _named(tenant: str, schedule_id: str, request_id: str) -> Asked:
    """Whatever lies in a request; what is no text has been replaced where it was written."""
    return (
        tenant.encode(errors="replace"),
        schedule_id.encode(errors="replace"),
        request_id.encode(errors="replace"),
    )


def settle(future: asyncio.Future[Verdict], verdict: Verdict) -> None:
    """Answer whoever still waits."""
    if not future.done():
        future.set_result(verdict)
