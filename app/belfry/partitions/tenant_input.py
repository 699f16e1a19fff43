"""Reading tenants' own input topics: one thread beside the loop of the partition they live at.

open (fence) ─ ask for the committed positions ─ read ─► one transaction: requests handed over, and
                                                         the positions behind them

The positions are offsets of a consumer group without members, committed by the same transaction, as
those of added partitions are.  Whoever owns the partition owns its inlets; the fence is a
transactional id of its own.  After a failure the owner first proves that it still is the owner, by
a commit, and then `begin`s anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, Final

import structlog
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from belfry.engine.effects import STEP_BYTES, Effects
from belfry.engine.handing_over import Inlet, hand_over
from belfry.host.clock import SystemClock
from belfry.kafka.caution import Caution
from belfry.kafka.detour import BOUNDED, Detours, needs_detour
from belfry.kafka.record_headers import headers_of
from belfry.partitions.forwarding import RENEW_MS, IngressProducer
from belfry.partitions.gauges import Gauges
from belfry.partitions.tenant_topics import TenantTopics
from belfry.telemetry.limited import LimitedLogger
from belfry.tenants.directory import Tenants

READ_RECORDS: Final = 2_000
WAIT_S: Final = 0.2
MORE_S: Final = 0.002
SIP_S: Final = 0.02
SIP_RECORDS: Final = 500
ASK_S: Final = 10.0
AGAIN_MS: Final = 1_000.0

log = structlog.get_logger(__name__)

Where = tuple[str, int]


class InletProducer(IngressProducer):
    """Commits the positions of many topics with what is handed over."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.positions: dict[Where, int] = {}

    def _record(self, _effects: Effects) -> float:
        behind = [TopicPartition(*where, offset) for where, offset in self.positions.items()]
        self._producer.send_offsets_to_transaction(behind, self._member.consumer_group_metadata())
        return self._clock.wall_ms()


@dataclass(frozen=True, slots=True)
class TenantInputDependencies:
    """What a home's inlets need of their worker."""

    topics: TenantTopics
    tenants: Tenants
    producer: Callable[[], InletProducer]
    consumer_properties: dict[str, Any]
    clock: SystemClock
    metrics: Gauges
    step_bytes: int = STEP_BYTES


class Inlets:
    """Hands requests over from the topics of the tenants that live at one partition."""

    def __init__(
        self, home: int, means: TenantInputDependencies, woken: Callable[[], None]
    ) -> None:
        self._home = home
        self._means = means
        self._woken = woken
        self._log = LimitedLogger(
            log.bind(partition=home), clock=lambda: means.clock.monotonic_ms() / 1000
        )
        self._stopping = Event()
        self._thread: Thread | None = None
        self._ended_ms = 0.0
        self._read_once = False

    @property
    def caught_up(self) -> bool:
        """Whether each topic has been read to where it ended when reading began."""
        return self._read_once or not self._means.topics.of(self._home)

    @property
    def wanted(self) -> bool:
        """Whether there is something to read and nobody reads it: `begin` after a commit."""
        if self._stopping.is_set() or (self._thread is not None and self._thread.is_alive()):
            return False
        now_ms = self._means.clock.monotonic_ms()
        rested = self._thread is None or now_ms - self._ended_ms >= AGAIN_MS
        return rested and bool(self._means.topics.of(self._home))

    def begin(self) -> None:
        """Read; called when a commit has just shown that the partition is owned here."""
        if self.wanted:
            self._thread = Thread(target=self._run, name=f"belfry-inlets-{self._home}", daemon=True)
            self._thread.start()

    def ask_to_stop(self) -> None:
        """Read no more, soon."""
        self._stopping.set()

    def close(self) -> None:
        """Finish the transaction under way and read no more."""
        self.ask_to_stop()
        if self._thread is not None:
            self._thread.join()

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        reading = None
        try:
            reading = TenantInputReading(self._home, self._means, self._log)
            reading.open()
            while not self._stopping.is_set():
                reading.turn(self._stopping)
                if not self._read_once and reading.at_ends:
                    self._read_once = True
                    self._woken()
        except Exception as error:  # noqa: BLE001  # the owner begins anew, if it still is the owner
            self._log.warning("inlets", "tenants' topics not read", cause=str(error))
        finally:
            self._ended_ms = self._means.clock.monotonic_ms()
            if reading is not None:
                reading.close()


class TenantInputReading:
    """One go at reading, from the fence to the first failure."""

    def __init__(self, home: int, means: TenantInputDependencies, said: LimitedLogger) -> None:
        self._home = home
        self._means = means
        self._log = said
        self._producer = means.producer()
        self._consumer = Consumer(
            {
                **means.consumer_properties,
                **BOUNDED,
                "group.id": self._producer.group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
            }
        )
        self._inlets: dict[Where, Inlet] = {}
        self._positions: dict[Where, int] = {}
        self._ended: set[Where] = set()
        self._lost: set[Where] = set()
        self._caution = Caution()
        self._detours = Detours(means.consumer_properties)
        self._followed: frozenset[Inlet] = frozenset()
        self._renewed_ms = means.clock.monotonic_ms()

    @property
    def at_ends(self) -> bool:
        """Whether the end of each topic has been met since it was found."""
        return self._inlets.keys() <= self._ended | self._lost

    def open(self) -> None:
        """Fence the former owner: the positions that are read then are settled."""
        self._producer.open()
        self._follow()

    def close(self) -> None:
        """Close the connections."""
        self._producer.close()
        self._consumer.close()

    def turn(self, stopping: Event) -> None:
        """Hand over what has come, in one transaction."""
        if self._means.topics.of(self._home) != self._followed:
            self._follow()
        messages, effects = self._hand_over_some()
        records = [message for message in messages if message.error() is None]
        ended = self._detours.ended()
        behind = {**self._behind(records), **ended}
        now_ms = self._means.clock.monotonic_ms()
        if now_ms - self._renewed_ms >= RENEW_MS:
            self._renewed_ms = now_ms
            behind = {**self._positions, **behind}
        if behind:
            self._commit(effects, behind)
            self._positions.update(behind)
            if len(records) < SIP_RECORDS:
                stopping.wait(SIP_S)
        if ended:
            self._assign()
        for message in messages:
            self._pass(message)

    def _hand_over_some(self) -> tuple[list[Message], Effects]:
        """What has come, some at a time, until one transaction has enough."""
        effects = Effects(room=self._means.step_bytes)
        found = self._detours.take(READ_RECORDS - 1)
        self._add(found, effects)
        wait_s, at_most = (0.0 if found else WAIT_S), 1
        while effects.room > 0 and len(found) < READ_RECORDS:
            some = self._consumer.consume(self._caution.at_most(at_most), wait_s)
            before = effects.room
            self._add([message for message in some if message.error() is None], effects)
            self._caution.took(before - effects.room)
            found += some
            if not some:
                break
            wait_s, at_most = MORE_S, READ_RECORDS - len(found)
        return found, effects

    def _follow(self) -> None:
        """Read the topics that there are now, each from where its last reader left off."""
        self._followed = self._means.topics.of(self._home)
        self._inlets = {(each.place.topic, each.place.partition): each for each in self._followed}
        self._positions = {w: at for w, at in self._positions.items() if w in self._inlets}
        fresh = [where for where in self._inlets if where not in self._positions]
        asked = [TopicPartition(*where) for where in fresh]
        for found in self._consumer.committed(asked, ASK_S) if asked else ():
            if found.error is not None:
                raise KafkaException(found.error)
            if found.offset >= 0:
                self._positions[found.topic, found.partition] = found.offset
        self._ended -= set(fresh)
        self._detours.clear()
        self._assign()

    def _assign(self) -> None:
        """Let the consumer read on behind what was committed, but for what is read on a detour."""
        self._consumer.assign(
            [
                TopicPartition(*where, self._positions.get(where, OFFSET_BEGINNING))
                for where in self._inlets
                if where not in self._lost and where not in self._detours
            ]
        )

    def _detour(self, where: Where, offset: int) -> None:
        """Read a batch that the consumer cannot unpack."""
        self._detours.begin(where, max(offset, self._positions.get(where, 0)))
        self._assign()

    def _behind(self, records: list[Message]) -> dict[Where, int]:
        """The position behind the last record of each topic."""
        return {_where(message): (message.offset() or 0) + 1 for message in records}

    def _add(self, records: list[Message], effects: Effects) -> None:
        """Hand these records over with a step's effects."""
        now_ms = int(self._means.clock.wall_ms())
        for message, headers in zip(records, headers_of(records), strict=True):
            given: Any = message
            kind, timestamp_ms = given.timestamp()
            # Where the topic lets its tenant say when, that is when a worker has seen it.
            came_ms = timestamp_ms if kind == TIMESTAMP_LOG_APPEND_TIME else now_ms
            record = (given.offset(), came_ms, given.key(), given.value(), headers)
            inlet = self._inlets[_where(message)]
            secret = self._means.tenants.secret_of(inlet.tenant)
            hand_over([record], inlet._replace(secret=secret), now_ms, effects)

    def _commit(self, effects: Effects, behind: dict[Where, int]) -> None:
        """Hand over; one that is rolled back is read again, like one whose end is unknown."""
        clock = self._means.clock
        started_ms = clock.monotonic_ms()
        self._producer.positions = behind
        self._producer.commit(effects)
        self._means.metrics.committed(effects, (clock.monotonic_ms() - started_ms) / 1000)

    def _pass(self, message: Message) -> None:
        """Note an end that was met; say what cannot be read."""
        error = message.error()
        if error is None:
            return
        where = _where(message)
        if error.code() == KafkaError._PARTITION_EOF:
            self._ended.add(where)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._lost.add(where)
            self._log.error(
                f"lost {where}",
                "requests are gone before they were read: this topic is read no further; set the"
                " group's offset to where to go on, and restart the worker",
                topic=where[0], of=where[1], position=self._positions.get(where),
                group=self._producer.group, cause=error.str(),
            )  # fmt: skip
        elif needs_detour(error):
            self._detour(where, message.offset() or 0)
        elif error.fatal():
            raise KafkaException(error)
        else:
            self._log.warning(f"error {where}", "topic not read", topic=where[0], cause=error.str())


def _where(message: Message) -> Where:
    return message.topic() or "", message.partition() or 0
