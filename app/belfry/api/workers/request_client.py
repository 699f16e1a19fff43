"""Requests to Kafka and the verdicts on them, for many callers of one event loop.

    ask(fields, home) ─► belfry.schedules, partition = home ─► … ─► belfry.lifecycle ─► verdict

A write goes the way of all requests, so it is carried out by the owner that the partition has by
then and outlives the worker that took it.  One producer and one reader of verdicts serve all
callers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Final

import structlog
from confluent_kafka import (
    KafkaError,
    KafkaException,
    Message,
    Producer,
)

from belfry.api.workers.acknowledgements import (
    NotWritten,
    VerdictTimeout,
    meaning,
    placed,
    told_to,
)
from belfry.api.workers.verdicts import AwaitedVerdict, VerdictReader, asked_in_fields
from belfry.client.verdict import Verdict
from belfry.engine.effects import Fired, Rerouted
from belfry.host.background import Background
from belfry.schedules.identity import partition_of
from belfry.settings import SharedSettings
from belfry.telemetry.tracing import CURRENT
from belfry.wire import catalogue
from belfry.wire.accepted import Told
from belfry.wire.claims import signature
from belfry.wire.record import SIGNATURE

# Seconds of one turn, for a question to Kafka, and for a record to be acknowledged.
POLL_S: Final = 0.1
REACH_S: Final = 5.0
WRITE_S: Final = 12.0
# The schema that requests are encoded by.
NAME: Final = "ScheduleRequest"

log = structlog.get_logger(__name__)

Frames = tuple[bytes, bytes]


class RequestClient:
    """Writes requests and hands out verdicts; `ask` belongs to one event loop.

        12:00:00.000  ask: the verdict is expected, then the request is produced
        12:00:00.004  `belfry-http-writer` hears where it lies: partition 2, offset 70
        12:00:00.009  the owner, in this very process, commits and says so: `committed`
        12:00:00.009  the verdict on 2/70 settles the future in the loop of the caller
                      (an owner in another process is heard through the lifecycle topic instead)

    A verdict that comes before it is known where the request lies waits for that.
    """

    def __init__(
        self, settings: SharedSettings, frames: Frames, secret_of: Callable[[str], bytes]
    ) -> None:
        """`frames` are the first bytes of a request and of a lifecycle event.

        `secret_of` gives the secret that signs a tenant's requests, if they have to be signed.
        """
        self._secret_of = secret_of
        self._topic = settings.topic("schedules")
        self._frame, head = frames
        self._settings = settings
        self._lock = Lock()
        self._made: Producer | None = None
        self._verdicts = VerdictReader(settings, head)
        self._thread = Background("http-writer", self._turn, log, "requests not confirmed")

    def start(self) -> None:
        """Stand at the end of the lifecycle topic; from then on requests may be written."""
        self._verdicts.start()

    def stop(self) -> None:
        """Give threads and connections back; a caller that still waits gets no verdict."""
        self._thread.stop()
        self._verdicts.stop()

    async def ask(self, fields: dict[str, Any], home: int, timeout_s: float) -> Verdict:
        """Write a request and wait for its verdict.

        `home` is the partition that it is written to, `timeout_s` in seconds. Raises `TooLarge`;
        `NotWritten`, also if Kafka has not answered by then; and `VerdictTimeout` if it has: the
        request stands, and is carried out when its owner takes it in. A request of the same id that
        is under way here is waited for first.
        """
        loop = asyncio.get_running_loop()
        asked = asked_in_fields(fields)
        while (other := self._verdicts.expected(asked)) is not None:
            # The same request twice at once: the second one is a DUPLICATE of the first.
            await asyncio.wait([other], timeout=timeout_s)
            await asyncio.sleep(0)
        awaited = AwaitedVerdict(loop.create_future())
        self._verdicts.expect(asked, awaited)
        try:
            self._write(fields, home, told_to(awaited, loop))
            async with asyncio.timeout(timeout_s):
                return await awaited.answer
        except TimeoutError:
            if not awaited.is_written:
                raise NotWritten("no answer in time") from None
            raise VerdictTimeout(fields["request_id"]) from None
        finally:
            self._verdicts.forget(asked)

    def committed(self, events: Sequence[Told]) -> None:
        """Take verdicts that this worker has just committed; from any thread."""
        self._verdicts.committed(events)

    async def tell(self, fields: dict[str, Any], home: int, timeout_s: float) -> Verdict:
        """Write a request and wait until Kafka has it: where it lies, without an outcome.

        Raises `NotWritten` and `TooLarge`. `timeout_s` is in seconds.
        """
        loop = asyncio.get_running_loop()
        place: asyncio.Future[Verdict] = loop.create_future()
        sent = Verdict(fields["tenant"], fields["schedule_id"], None, fields["request_id"])
        self._write(fields, home, placed(place, loop, sent))
        try:
            async with asyncio.timeout(timeout_s):
                return await place
        except TimeoutError:
            raise NotWritten("no answer in time") from None

    async def put(self, record: Rerouted, timeout_s: float) -> int:
        """Write a record of belfry's own to the topic of requests; the offset at which it lies.

        Raises `NotWritten` where Kafka does not confirm it in so many seconds.
        """
        loop = asyncio.get_running_loop()
        place: asyncio.Future[Verdict] = loop.create_future()
        self._produce(record, placed(place, loop, Verdict("", "", None, None)))
        try:
            async with asyncio.timeout(timeout_s):
                return (await place).source_offset or 0
        except TimeoutError:
            raise NotWritten("no answer in time") from None

    def copy(self, fired: Fired, mark: tuple[str, bytes]) -> Message:
        """Write a fired record with one more header, and wait for it; blocks, so not in a loop.

        A record with a group goes to the group's partition, as the event itself would. Any thread
        may call it. Raises `NotWritten` where Kafka does not confirm it within `WRITE_S` seconds.
        """
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

    @property
    def _producer(self) -> Producer:
        """Made with the first record: it has threads of its own, and many workers are asked nothing
        by HTTP.
        """
        with self._lock:
            if self._made is None:
                self._made = _producer_of(self._settings)
                self._thread.last = partial(self._made.flush, 1)
                self._thread.start()
            return self._made

    def _write(self, fields: dict[str, Any], home: int, on_delivery: Any) -> None:
        """Hand a signed request to the producer; raises `NotWritten` where its queue is full."""
        value = self._frame + catalogue.encode(NAME, fields)
        tenant = str(fields["tenant"])
        key = tenant.encode()
        context = CURRENT.get()
        headers = [] if context is None else context.headers()
        if secret := self._secret_of(tenant):
            headers.append((SIGNATURE, signature(secret, tenant, key, value, headers)))
        self._produce(Rerouted(home, key, value, headers), on_delivery)

    def _produce(self, record: Rerouted, on_delivery: Any) -> None:
        """Hand a record to the producer; raises `NotWritten` where its queue is full."""
        partition, key, value, headers = record
        more: dict[str, Any] = {"headers": headers} if headers else {}
        try:
            self._producer.produce(
                self._topic, value, key, partition=partition, on_delivery=on_delivery, **more
            )
        except (KafkaException, BufferError) as error:
            raise meaning(error.args[0]) from None

    def _turn(self) -> None:
        """One turn of `belfry-http-writer`: callbacks of delivered requests run here."""
        self._producer.poll(POLL_S)


def _producer_of(settings: SharedSettings) -> Producer:
    """A producer that leaves its records at once, acknowledged by all replicas."""
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
