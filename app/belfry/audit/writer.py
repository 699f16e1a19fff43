"""Writes the audit log: by one thread and one producer of a worker, which serve nothing else.

Kafka may be away for a while: events wait in the producer, and behind it in the trail, until they
are written or there is no room.  An event that Kafka has not confirmed in `CONFIRM_MS` is lost, and
reported.

    trail ─► take 500 ─► producer's buffer ─► Kafka ─► confirmed: "written" is counted
                │ buffer full                    └ not in two minutes: "lost", with its names
                └ kept, tried again

Each event is counted once, as written or as lost, also at the end of the process: events that are
left then are reported as lost, because their result is not known.

`AuditLog` joins these parts for one worker.  Its trail is made before HTTP starts, so a refusal in
the first second is kept; waiting events are written once `start` has made the writer.  A process
that only delivers writes its own events, and leaves the topic of policies to the workers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import structlog
from confluent_kafka import KafkaError

from belfry.audit.policy_log import PolicyLog
from belfry.audit.topic import audit_producer, key_of
from belfry.audit.trail import Trail
from belfry.client.decoding import Decoder
from belfry.host.background import Background
from belfry.registry.client import Registry
from belfry.registry.subjects import look_in
from belfry.settings import DeliverySettings
from belfry.wire.audit import AuditEvent, encode_audit

TAKE: Final = 500
TURN_S: Final = 0.1
STOP_S: Final = 5.0
IDLE_MS: Final = 10_000.0

log = structlog.get_logger(__name__)


class AuditWriter:
    """Takes events from the trail and writes them; `start` and `stop` are called once each."""

    def __init__(
        self,
        trail: Trail,
        place: tuple[str, bytes],
        producer: Callable[[], Any],
        now_ms: Callable[[], float],
    ) -> None:
        """`place` is the topic, and the frame before each record.

        `producer` makes a producer, in the thread, when there is an event to write. A producer
        without work for `IDLE_MS` is dropped, because it has threads of its own.
        """
        self._trail = trail
        self._topic, self._frame = place
        self._make = producer
        self._now_ms = now_ms
        self._unsent: list[AuditEvent] = []
        self._under_way: dict[int, AuditEvent] = {}
        self._number = 0
        self._needed_ms = 0.0
        self._producer: Any = None
        self._thread = Background("audit", self._round, log, "the audit log stumbled", again_s=0)
        self._thread.last = self._end

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write waiting events, for a few seconds; the rest is reported as lost."""
        self._thread.stopping.set()
        self._trail.arrived.set()
        self._thread.stop(STOP_S + 2)

    # -- the thread ------------------------------------------------------------------------------

    def _round(self) -> None:
        self._trail.arrived.wait(TURN_S)
        self._trail.arrived.clear()
        self._turn()

    def _turn(self, *, ending: bool = False) -> bool:
        """Hand events to the producer; returns whether some may be left.

        An event that the producer has no room for stays first in line, so the order is kept.
        """
        now_ms = self._now_ms()
        if self._producer is not None:
            self._producer.poll(0)
        events = self._unsent = self._unsent or self._trail.take(TAKE, int(now_ms), ending=ending)
        if events or self._under_way:
            self._needed_ms = now_ms
        elif now_ms - self._needed_ms > IDLE_MS:
            self._producer = None
        if not events:
            return False
        # Events stay until there is a producer: making one may fail, because a file is missing for
        # example.
        producer = self._producer = self._producer or self._make()
        self._unsent = []
        for place, event in enumerate(events):
            if not self._sent(producer, event):
                self._unsent = events[place:]
                producer.poll(TURN_S)
                return True
        if len(events) == TAKE:
            self._trail.arrived.set()
        return True

    def _sent(self, producer: Any, event: AuditEvent) -> bool:
        """Whether the producer took the event; an event that cannot be written is lost as well."""
        self._number += 1
        number = self._number
        try:
            value = self._frame + encode_audit(event)
            self._under_way[number] = event
            producer.produce(
                self._topic, value, key_of(event), on_delivery=partial(self._told, number)
            )
        except BufferError:
            del self._under_way[number]
            return False
        except Exception as error:  # noqa: BLE001  # an event that cannot be written stops no other
            self._under_way.pop(number, None)
            self._trail.lost(event, str(error))
        return True

    def _told(self, number: int, error: KafkaError | None, _message: object) -> None:
        event = self._under_way.pop(number)
        if error is None:
            self._trail.counted("written", 1)
        else:
            self._trail.lost(event, error.str())

    def _end(self) -> None:
        deadline_ms = self._now_ms() + STOP_S * 1000
        try:
            while self._turn(ending=True) and self._now_ms() < deadline_ms:
                pass
            if self._producer is not None:
                self._producer.flush(max(0.0, (deadline_ms - self._now_ms()) / 1000))
        except Exception as error:  # noqa: BLE001  # the rest is reported all the same
            log.warning("the audit log stumbled", reason=str(error))
        events = [*self._under_way.values(), *self._unsent]
        events += self._trail.take(1_000_000, int(self._now_ms()), ending=True)
        for event in events:
            self._trail.lost(event, "the worker stopped before Kafka confirmed it")


class AuditLog:
    """The trail and its writers; `start` and `stop` are called once each, in that order."""

    def __init__(
        self,
        settings: DeliverySettings,
        worker: str,
        counted: Callable[[str, int], None],
        now_ms: Callable[[], float],
    ) -> None:
        """`counted` is called with ``written`` or ``lost``, and the number of such events.

        `now_ms` gives epoch milliseconds.
        """
        self.trail = Trail(settings.audit)
        self.trail.worker, self.trail.counted = worker, counted
        self._settings = settings
        self._now_ms = now_ms
        self._writer: AuditWriter | None = None
        self._policies: PolicyLog | None = None

    def start(self, frame: bytes, registry: Registry | None) -> None:
        """Begin to write; `frame` stands before each record."""
        settings = self._settings
        if settings.audit == "none":
            return
        properties = settings.kafka_properties()
        self._writer = AuditWriter(
            self.trail,
            (settings.topic("audit"), frame),
            lambda: audit_producer(properties),
            self._now_ms,
        )
        self._writer.start()
        if settings.role != "deliver":
            decoder = Decoder("TenantPolicy", look_in(registry), only=True)
            self._policies = PolicyLog(settings, decoder, frame, self.trail)
            self._policies.start()

    def stop(self) -> None:
        """Write the waiting events, and end."""
        for part in (self._policies, self._writer):
            if part is not None:
                part.stop()
