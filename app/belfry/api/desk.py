"""Requests to Kafka and the verdicts on them, for many callers of one event loop.

    ask(fields, home) ─► belfry.schedules, partition = home ─► … ─► belfry.lifecycle ─► verdict

A write goes the way of all requests, so it is carried out by whoever owns the partition by then and
outlives the worker that took it.  One producer and one reader of the lifecycle topic's tail serve
all callers; the reader stands at the end of every partition before the first request is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, Final

import structlog
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from belfry.client.answers import VERDICTS
from belfry.client.decoding import Decoder
from belfry.client.kafka import Cluster
from belfry.client.verdict import Verdict
from belfry.engine.effects import Fired
from belfry.schedules.identity import partition_of
from belfry.settings import Settings
from belfry.wire import catalogue
from belfry.wire.claims import signature
from belfry.wire.lifecycle import asked_in
from belfry.wire.record import SIGNATURE

POLL_S: Final = 0.1
REACH_S: Final = 5.0
WRITE_S: Final = 12.0
BATCH_S: Final = 0.001
BATCH: Final = 1_000
LOOK_S: Final = 30.0
NAME: Final = "ScheduleRequest"

log = structlog.get_logger(__name__)


class NotWritten(Exception):
    """Kafka has not confirmed a request: it may have been written or not."""


class TooLarge(Exception):
    """Kafka does not take a request of this size."""


class NoVerdict(Exception):
    """A request was written and no verdict came in time."""


Frames = tuple[bytes, bytes]
# Tenant, schedule and request id, as they lie in a lifecycle event.
Asked = tuple[bytes, bytes, bytes]


class Desk:
    """Writes requests and hands out verdicts; `ask` belongs to one event loop."""

    def __init__(
        self, settings: Settings, frames: Frames, secret_of: Callable[[str], bytes]
    ) -> None:
        """`frames` are what stands before a request and before a lifecycle event.

        `secret_of` a tenant is what its requests are signed with, if they have to be.
        """
        self._secret_of = secret_of
        self._topic = settings.topic("schedules")
        self._frame, head = frames
        properties = settings.kafka_properties()
        cluster = Cluster(properties.pop("bootstrap.servers"), properties)
        self._producer = _producer(settings)
        self._verdicts = VerdictReader(cluster, settings, head)
        self._stopping = False
        self._thread = Thread(target=self._run, name="belfry-http-writer", daemon=True)

    def start(self) -> None:
        """Stand at the end of the lifecycle topic; from then on requests may be written."""
        self._verdicts.start()
        self._thread.start()

    def stop(self) -> None:
        """Give threads and connections back; who still waits gets no verdict."""
        self._stopping = True
        if self._thread.is_alive():
            self._thread.join()
        self._verdicts.stop()

    async def ask(self, fields: dict[str, Any], home: int, timeout_s: float) -> Verdict:
        """Write a request and wait for its verdict."""
        loop = asyncio.get_running_loop()
        asked = _asked(fields)
        while (other := self._verdicts.expected(asked)) is not None:
            # The same request twice at once: the second one is a DUPLICATE of the first.
            await asyncio.wait([other], timeout=timeout_s)
            await asyncio.sleep(0)
        awaited = Awaited(loop.create_future())
        self._verdicts.expect(asked, awaited)
        try:
            self._write(fields, home, _told_to(awaited, loop))
            async with asyncio.timeout(timeout_s):
                return await awaited.answer
        except TimeoutError:
            raise NoVerdict(fields["request_id"]) from None
        finally:
            self._verdicts.forget(asked)

    async def tell(self, fields: dict[str, Any], home: int, timeout_s: float) -> Verdict:
        """Write a request and wait until Kafka has it: where it lies, without an outcome."""
        loop = asyncio.get_running_loop()
        place: asyncio.Future[Verdict] = loop.create_future()
        sent = Verdict(fields["tenant"], fields["schedule_id"], None, fields["request_id"])
        self._write(fields, home, _placed(place, loop, sent))
        try:
            async with asyncio.timeout(timeout_s):
                return await place
        except TimeoutError:
            raise NotWritten("no answer in time") from None

    def copy(self, fired: Fired, mark: tuple[str, bytes]) -> Message:
        """Write a fired record with one more header, and wait for it; blocks, so not in a loop."""
        topic, key, group, value, headers = fired
        where: dict[str, Any] = {}
        told: SimpleQueue[tuple[KafkaError | None, Message]] = SimpleQueue()
        try:
            if group is not None:
                found = self._producer.list_topics(topic, timeout=REACH_S).topics[topic]
                where["partition"] = partition_of(group, max(1, len(found.partitions)))
            self._producer.produce(
                topic,
                value,
                key,
                headers=[*headers, mark],
                on_delivery=lambda error, message: told.put((error, message)),
                **where,
            )
            error, message = told.get(timeout=WRITE_S)
        except (KafkaException, BufferError, Empty) as failure:
            raise NotWritten(str(failure)) from None
        if error is not None:
            raise NotWritten(error.str())
        return message

    def _write(self, fields: dict[str, Any], home: int, on_delivery: Any) -> None:
        value = self._frame + catalogue.encode(NAME, fields)
        tenant = str(fields["tenant"])
        key = tenant.encode()
        more: dict[str, Any] = {}
        if secret := self._secret_of(tenant):
            more["headers"] = [(SIGNATURE, signature(secret, tenant, key, value, None))]
        try:
            self._producer.produce(
                self._topic, value, key, partition=home, on_delivery=on_delivery, **more
            )
        except (KafkaException, BufferError) as error:
            raise _meaning(error.args[0]) from None

    def _run(self) -> None:
        while not self._stopping:
            self._producer.poll(POLL_S)
        self._producer.flush(1)


def _producer(settings: Settings) -> Producer:
    return Producer(
        {
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 1,
            "partitioner": "murmur2_random",
            "message.timeout.ms": 10_000,
            **settings.kafka_properties(),
            "client.id": f"{settings.cluster.app_id}-http",
        }
    )


def _meaning(error: Any) -> Exception:
    if isinstance(error, KafkaError):
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return TooLarge(error.str())
        return NotWritten(error.str())
    return NotWritten(str(error))


def _asked(fields: dict[str, Any]) -> Asked:
    tenant, schedule_id, request_id = (
        str(fields[name]).encode() for name in ("tenant", "schedule_id", "request_id")
    )
    return tenant, schedule_id, request_id


NO_SOURCE: Final = (None, None)

Delivered = Callable[[KafkaError | None, Message], None]


class Awaited:
    """A verdict that is awaited: the one on the request that lies where ours was written.

    The same request may have been answered a moment ago, to another worker: that verdict has
    another source.  A DUPLICATE names none, and says the same of any.  Belongs to one event loop.
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
            _settle(self.answer, verdict)


def _told_to(awaited: Awaited, loop: asyncio.AbstractEventLoop) -> Delivered:
    """A callback that says where a request was written, or that it was not."""

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            loop.call_soon_threadsafe(_fail, awaited.answer, _meaning(error))
        else:
            loop.call_soon_threadsafe(awaited.written, message.partition(), message.offset())

    return delivered


def _placed(
    place: asyncio.Future[Verdict], loop: asyncio.AbstractEventLoop, sent: Verdict
) -> Delivered:
    """A callback that tells where a request lies."""

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            loop.call_soon_threadsafe(_fail, place, _meaning(error))
            return
        lies = replace(
            sent,
            source_topic=message.topic(),
            source_partition=message.partition(),
            source_offset=message.offset(),
        )
        loop.call_soon_threadsafe(_settle, place, lies)

    return delivered


def _fail(future: asyncio.Future[Verdict], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _settle(future: asyncio.Future[Verdict], verdict: Verdict) -> None:
    if not future.done():
        future.set_result(verdict)


class VerdictReader:
    """Reads the tail of the lifecycle topic in a thread; settles the futures of a loop."""

    def __init__(self, cluster: Cluster, settings: Settings, head: bytes) -> None:
        self._cluster = cluster
        self._topic = settings.topic("lifecycle")
        self._head = head
        self._group = f"{settings.cluster.app_id}-http"
        self._decoder = Decoder("LifecycleEvent", only=True)
        self._waiting: dict[Asked, Awaited] = {}
        self._read: set[int] = set()
        self._stopping = False
        self._consumer: Consumer | None = None
        self._thread = Thread(target=self._run, name="belfry-http-verdicts", daemon=True)

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
        self._stopping = True
        if self._thread.is_alive():
            self._thread.join()
        if self._consumer is not None:
            self._consumer.close()

    def expected(self, asked: Asked) -> asyncio.Future[Verdict] | None:
        """The future that waits for this verdict already."""
        awaited = self._waiting.get(asked)
        return None if awaited is None else awaited.answer

    def expect(self, asked: Asked, awaited: Awaited) -> None:
        """From here on verdicts on this request are told."""
        self._waiting[asked] = awaited

    def forget(self, asked: Asked) -> None:
        """Nobody waits for this verdict any more."""
        del self._waiting[asked]

    def _run(self) -> None:
        assert self._consumer is not None
        looked = monotonic()
        while not self._stopping:
            first = self._consumer.poll(POLL_S)
            if first is not None:
                self._take([first, *self._consumer.consume(BATCH, BATCH_S)])
            if monotonic() - looked > LOOK_S:
                looked = monotonic()
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
        found = [settled for message in messages for settled in self._answered(message)]
        if found:
            found[0][0].answer.get_loop().call_soon_threadsafe(_tell_all, found)

    def _answered(self, message: Message) -> Iterator[tuple[Awaited, Verdict]]:
        value = message.value()
        if message.error() is not None or value is None or not self._may_be_awaited(value):
            return
        record = self._decoder.record(value)
        if record is None or record["outcome"] not in VERDICTS or record["request_id"] is None:
            return
        awaited = self._waiting.get(_asked(record))
        if awaited is not None:
            yield awaited, Verdict.from_record(record)

    def _may_be_awaited(self, value: bytes) -> bool:
        """Whether a record is worth decoding; most belong to others."""
        if not value.startswith(self._head):
            return True
        try:
            return asked_in(value, len(self._head)) in self._waiting
        except IndexError:
            return False


def _tell_all(found: list[tuple[Awaited, Verdict]]) -> None:
    for awaited, verdict in found:
        awaited.heard(verdict)
