"""`Subscriber`: a tenant's fired events to handlers, one after the other, each one once.

    subscriber = Subscriber("localhost:9092", "shop", "expiry", handlers, seen=SeenFile("seen.db"))
    with subscriber:
        subscriber.run()

    record ──► handled before? ──yes──► counts as read
                   │ no
                   ▼
               handler ──ok──► remember the fire id ──► counts as read
                   │ raises
                   ▼
               the partition pauses, and the handler gets the event again; others go on

The order of a partition is kept, and so that of each group: while an event of a partition is tried
again, the events behind it wait.  When all tries are used up, `give_up` gets the event, or, without
it, `run` raises and the event stays unread.

An event is handled once unless the process dies between the handler's end and the remembering: then
it is handled twice.  A handler that writes to a database shuts this gap by writing the fire id in
the same transaction.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from confluent_kafka import Consumer, Message, TopicPartition

from belfry.client.backoff import Backoff
from belfry.client.closing import Closing
from belfry.client.decoding import Decoder
from belfry.client.errors import HandlerFailed
from belfry.client.faults import ABSENT, permanent
from belfry.client.fired_record import FiredRecord
from belfry.client.handlers import Handler, Handlers
from belfry.client.kafka import Cluster
from belfry.client.seen import Seen, SeenInMemory
from belfry.client.tail import fired_record

# Seconds within which a stop is noticed.
POLL_S: Final = 0.5
GiveUp = Callable[[FiredRecord, Exception], object]
_Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Handling:
    """How a subscriber deals with events: its tries, and its memory of handled ones.

    `tries` counts and spaces the tries of one event; `give_up` gets an event that failed in all of
    them, with the last error, and the event counts as read then. `seen` in memory forgets with the
    process, so a restart may handle uncommitted events again; `SeenFile` does not forget.
    """

    seen: Seen = field(default_factory=SeenInMemory)
    tries: Backoff = field(default_factory=lambda: Backoff("1s", 2.0, "30s", attempts=3))
    give_up: GiveUp | None = None


@dataclass(slots=True)
class _Work:
    """One event on its way through its handler: `failed` tries, and when the next one is due."""

    message: Message
    event: FiredRecord
    handler: Handler
    failed: int = 0
    # Seconds of the monotonic clock.
    again_at: float = 0.0

    @property
    def place(self) -> _Place:
        return (self.event.topic, self.event.partition)


class Subscriber(Closing):
    """Reads the events of tenants as one consumer group; any number of processes share the work.

    `properties` are librdkafka's. `handled` and `repeated` count events. Handlers run in the thread
    that calls `run`, or on the event loop of `run_async`, one at a time. An event without a handler
    counts as read. Errors of Kafka that do not pass by themselves are raised as `Unavailable`.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        tenants: str | Sequence[str],
        group: str,
        handlers: Handlers,
        handling: Handling | None = None,
        **more: Any,
    ) -> None:
        """`more`: ``properties``, ``topic_prefix`` (``belfry.``), ``from_beginning`` (True), and
        ``shared`` (False): the tenants' policies share an output, and others' events are passed by.
        """
        properties: Mapping[str, Any] | None = more.pop("properties", None)
        prefix: str = more.pop("topic_prefix", "belfry.")
        from_beginning: bool = more.pop("from_beginning", True)
        shared: bool = more.pop("shared", False)
        if more:
            raise TypeError(f"Subscriber does not know {', '.join(sorted(more))}.")
        names = [tenants] if isinstance(tenants, str) else list(tenants)
        self.handled = self.repeated = 0
        self._handling = handling or Handling()
        self._handlers = handlers
        self._cluster = Cluster(bootstrap_servers, properties)
        self._decoder = Decoder("FiredEvent", only=False)
        self._waiting: dict[_Place, _Work] = {}
        self._stopped = False
        self._consumer = self._cluster.consumer(group, commits=True, from_beginning=from_beginning)
        self._group = group
        self._only = frozenset(names) if shared else None
        self._topics = [f"{prefix}fired"] if shared else [f"{prefix}fired.{each}" for each in names]
        self._consumer.subscribe(self._topics, on_revoke=self._forget, on_lost=self._forget)

    def close(self) -> None:
        """Commit handled events, leave the group, close the memory of seen ones."""
        self._consumer.close()
        self._handling.seen.close()

    def stop(self) -> None:
        """Let `run` end after the event that is being handled; from any thread or a signal."""
        self._stopped = True

    def run(self, idle_s: float | None = None) -> None:
        """Handle events until `stop`, or until none has come for `idle_s`."""
        last = monotonic()
        while not self._stopped and (idle_s is None or monotonic() - last < idle_s):
            work = self._next(POLL_S)
            if work is not None:
                self._handle(work)
                last = monotonic()

    async def run_async(self, idle_s: float | None = None) -> None:
        """The same on an event loop: handlers may be coroutine functions."""
        import asyncio

        last = monotonic()
        while not self._stopped and (idle_s is None or monotonic() - last < idle_s):
            work = await asyncio.to_thread(self._next, POLL_S)
            if work is not None:
                await self._handle_async(work)
                last = monotonic()

    def _handle(self, work: _Work) -> None:
        """Hand one event over, and settle it or put it off."""
        try:
            answer = work.handler(work.event)
        except Exception as error:  # noqa: BLE001  # whatever a handler raises means "not done"
            self._failed(work, error)
            return
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise TypeError("A handler is a coroutine function: read with `run_async`.")
        self.handled += 1
        self._settle(work)

    async def _handle_async(self, work: _Work) -> None:
        try:
            answer = work.handler(work.event)
            if inspect.isawaitable(answer):
                await answer
        except Exception as error:  # noqa: BLE001  # whatever a handler raises means "not done"
            self._failed(work, error)
        else:
            self.handled += 1
            self._settle(work)

    def _next(self, timeout_s: float) -> _Work | None:
        """The next event to hand over, or None if none comes in time."""
        deadline = monotonic() + timeout_s
        while (left := deadline - monotonic()) > 0:
            first = min(self._waiting.values(), key=lambda work: work.again_at, default=None)
            wait_s = left if first is None else min(left, first.again_at - monotonic())
            if first is not None and wait_s <= 0:
                return first
            message = self._consumer.poll(wait_s)
            work = None if message is None else self._taken(message)
            if work is not None:
                return work
        return None

    def _taken(self, message: Message) -> _Work | None:
        """The work on a message: None for an error that passes, or if no handler is needed."""
        error = message.error()
        if error is not None:
            # A tenant's topic appears with its first accepted schedule.
            if error.code() not in ABSENT and permanent(error, self._group):
                topic = message.topic() or self._topics[0]
                raise self._cluster.unavailable(error, topic, self._group)
            return None
        event = fired_record(message, self._decoder)
        was_handled = event.fire_id is not None and self._handling.seen.knows(event.fire_id)
        wanted = self._only is None or event.tenant in self._only
        handler = self._handlers.find(event.event_type) if wanted else None
        if was_handled or handler is None:
            self.repeated += was_handled
            self._consumer.store_offsets(message=message)
            return None
        return _Work(message, event, handler)

    def _settle(self, work: _Work) -> None:
        """An event is done: remember it, and let its partition go on."""
        if work.event.fire_id is not None:
            self._handling.seen.add(work.event.fire_id)
        self._consumer.store_offsets(message=work.message)
        if self._waiting.pop(work.place, None) is not None:
            self._consumer.resume([TopicPartition(*work.place)])

    def _failed(self, work: _Work, error: Exception) -> None:
        """Plan the next try, give the event up, or raise `HandlerFailed`."""
        work.failed += 1
        delay_ms = self._handling.tries.delay_ms(work.failed)
        if delay_ms is not None:
            work.again_at = monotonic() + delay_ms / 1000
            if work.place not in self._waiting:
                self._waiting[work.place] = work
                self._consumer.pause([TopicPartition(*work.place)])
        elif self._handling.give_up is not None:
            self._handling.give_up(work.event, error)
            self._settle(work)
        else:
            raise HandlerFailed(
                f"The handler of {work.event.schedule_id} (fire {work.event.fire_id}, type"
                f" {work.event.event_type}) failed {work.failed} times, at last with {error!r}."
                " Nothing behind it in its partition was read. Mend the handler, or give"
                " `give_up` a function that puts such events aside.",
                work.event,
            ) from error

    def _forget(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Partitions that go to another process take their events with them."""
        for place in partitions:
            self._waiting.pop((place.topic, place.partition), None)
