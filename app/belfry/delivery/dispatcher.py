"""The dispatcher: reads deliveries, has them posted, and writes the follow-up records.

One thread talks to Kafka (`DeliveryLog`), and this is its loop; another one, or another process,
posts (`HttpSender`, `SeparateSender`):

    read ─► work ─► room for its host? (`under_way.py`) ─► handed in ─► posted elsewhere
                                                                            │
    written in one transaction ◄─ gathered (`gathering.py`) ◄─ follow-ups ◄─ an answer

Any error of Kafka ends the *term*: the dispatcher leaves the group, and joins it again at the
committed positions. Posts made meanwhile are made again, under the same id.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import Empty
from typing import Final

import structlog

from belfry.client.decoding import Decoder
from belfry.delivery.answers import Answer, step_after
from belfry.delivery.delivery_log import DeliveryLog
from belfry.delivery.figures import DELIVERIES, UNCOUNTED, DeliveryFigures
from belfry.delivery.follow_ups import Places, Produced, dead_letter, follow_up
from belfry.delivery.gathering import Gathered
from belfry.delivery.kinds.kind import Sender
from belfry.delivery.progress import DeliveryPosition
from belfry.delivery.silent_hosts import SilentHosts
from belfry.delivery.under_way import HostRoom, UnderWay
from belfry.delivery.work import Finished, NotADelivery, Work, WorkId, work_of
from belfry.host import machine
from belfry.host.background import FAILURES, Background
from belfry.host.clock import SystemClock
from belfry.host.passing import PassThrough, all_pass, at_once
from belfry.kafka import librdkafka
from belfry.kafka.record_headers import headers_of
from belfry.settings import DeliverySettings
from belfry.telemetry.limited import LimitedLogger

# Records that are read at a time.
BATCH: Final = 500
# Seconds that a turn waits for records: without work under way, and with some.
IDLE_S: Final = 0.1
BUSY_S: Final = 0.005
PAUSE_AFTER_ERROR_S: Final = 1.0
# When partitions go, work under way has so long to end.
GRACE_MS: Final = 3_000.0

log = structlog.get_logger(__name__)


class Dispatcher:
    """Delivers until it is stopped; no error of it ends the process."""

    def __init__(
        self,
        settings: DeliverySettings,
        places: Places,
        sender: Callable[[Finished], Sender],
        decoder: Decoder,
        figures: DeliveryFigures = UNCOUNTED,
        through: PassThrough = at_once,
    ) -> None:
        """`sender` makes the sender for targets of all kinds, `figures` get the counts.

        Records come `through` an agent, if the process has one.
        """
        self._through = through
        self._settings = settings
        self._figures = figures
        self._places = places
        self._topic = settings.topic("deliveries")
        self._decoder = decoder
        self._clock = clock = SystemClock()
        self._results: machine.SimpleQueue[tuple[WorkId, Work, Answer]] = machine.SimpleQueue()
        self._senders = sender(lambda *result: self._results.put(result))
        self._thread = Background("deliveries", self._membership, log, "deliveries stumbled")
        self._faults = LimitedLogger(log, clock=lambda: clock.monotonic_ms() / 1000)
        self._delivery_log: DeliveryLog | None = None
        self._term = 0
        self.ready = False
        self.silent = SilentHosts(clock.monotonic_ms, clock.wall_ms)
        self._progress: dict[int, DeliveryPosition] = {}
        self._ahead: deque[tuple[WorkId, Work]] = deque()
        self._under_way = UnderWay(settings.webhook_in_flight)
        self._gathered = Gathered(places, figures.delivered)

    def start(self) -> None:
        """Begin to deliver; returns at once."""
        self._senders.start()
        self._thread.start()

    def stop(self) -> None:
        """Finish the work under way, for a few seconds, and leave."""
        self._thread.stop()
        self._senders.stop()

    @property
    def alive(self) -> bool:
        """Whether it runs, or was not started yet."""
        return self._thread.alive or not self._thread.begun

    def _membership(self) -> None:
        """From joining the group to the first failure, or to the end."""
        try:
            given = self._figures.clients(DELIVERIES), self._assigned, self._revoked
            delivery_log = self._delivery_log = DeliveryLog(self._settings, *given)
            delivery_log.open(self._thread.stopping)
            while not self._thread.stopping.is_set():
                self._turn(delivery_log)
            self._finish(delivery_log)
        except FAILURES as error:  # any error: Kafka has the state
            self._faults.warning(
                "term ended", "deliveries start over from what is committed", cause=str(error)
            )
        finally:
            self.ready = False
            self._forget()
            self._close()
        self._thread.stopping.wait(PAUSE_AFTER_ERROR_S)

    def _close(self) -> None:
        delivery_log, self._delivery_log = self._delivery_log, None
        if delivery_log is not None:
            try:
                delivery_log.close()
            except FAILURES as error:
                self._faults.warning("close", "the group was not left in order", cause=str(error))

    def _turn(self, delivery_log: DeliveryLog) -> None:
        full = self._ahead or any(each.full for each in self._progress.values())
        room = 0 if full else min(BATCH, self._under_way.room)
        messages = delivery_log.read(room, BUSY_S if self._under_way else IDLE_S)
        # Through the agent of deliveries; not where the process is asked to stop meanwhile.
        if all_pass(self._through, self._topic, messages, self._thread.stopping):
            self._take(messages)
            self._gathered.pass_over(delivery_log.ends, self._progress, self._clock.monotonic_ms())
        self._hand_in()
        self._collect(BUSY_S if self._under_way and not messages else 0.0)
        if self._gathered.due(self._clock.monotonic_ms(), waits=bool(self._under_way)):
            self._write(delivery_log)

    def _take(self, messages: list[librdkafka.Message]) -> None:
        """Turn records into work; a record that is not a delivery is put aside with a reason."""
        for message, headers in zip(messages, headers_of(messages), strict=True):
            partition, offset = message.partition() or 0, message.offset() or 0
            if not self._progress[partition].fresh(offset):
                continue
            work_id = WorkId(self._term, partition, offset)
            key, value = message.key(), message.value()
            try:
                work = work_of(key, value, headers or [], self._decoder)
            except NotADelivery as error:
                letter = Produced(self._places.undelivered, key, value, headers or [])
                self._ended(work_id, None, [dead_letter(letter, ("not_a_delivery", str(error)))])
                self._faults.warning("no delivery", "a record is no delivery", problem=str(error))
            else:
                self._ahead.append((work_id, work))

    def _hand_in(self) -> None:
        """Have work posted, in its order, as far as its hosts have room."""
        pieces: list[tuple[WorkId, Work]] = []
        now_ms = self._clock.monotonic_ms()
        while self._ahead:
            work_id, work = self._ahead[0]
            host = work.hosts[0]
            room = self._under_way.room_at(host, now_ms)
            if room is HostRoom.WAIT:
                break
            self._ahead.popleft()
            if room is HostRoom.SILENT:
                wall_ms = int(self._clock.wall_ms())
                self._follow(work_id, work, self._under_way.postponed(work, wall_ms))
                continue
            self._under_way.begin(work_id, host, len(work.value), now_ms)
            pieces.append((work_id, work))
        if pieces:
            self._senders.hand_in(pieces)

    def _collect(self, timeout_s: float) -> None:
        """Take ended work; wait so long for some."""
        try:
            while True:
                work_id, work, answer = self._results.get(timeout_s > 0, timeout_s or None)
                timeout_s = 0.0
                heard_ms = self._clock.monotonic_ms() if answer.heard else None
                if self._under_way.end(work_id, len(work.value), heard_ms):
                    self._follow(work_id, work, answer)
        except Empty:
            return

    def _follow(self, work_id: WorkId, work: Work, answer: Answer) -> None:
        self.silent.after(answer)
        self._figures.sent(answer.sent)
        now_ms = int(self._clock.wall_ms())
        step = step_after(work.state, work.event, answer, now_ms)
        self._gathered.count(work, step)
        self._ended(work_id, work, follow_up(work, step, self._places, now_ms))

    def _ended(self, work_id: WorkId, work: Work | None, records: list[Produced]) -> None:
        self._progress[work_id.partition].ended(work_id.offset)
        acks = work is not None and work.state.acks
        self._gathered.add(work_id.partition, records, self._clock.monotonic_ms(), awaited=acks)

    def _write(self, delivery_log: DeliveryLog) -> None:
        progress = {partition: self._progress[partition] for partition in self._gathered.moved}
        delivery_log.commit(self._gathered.to_write(int(self._clock.wall_ms())), progress)
        self._figures.removed(DELIVERIES, sum(each.told() for each in progress.values()))
        self._gathered.written()

    def _finish(self, delivery_log: DeliveryLog) -> None:
        """Let posts under way come to their end, and write their results."""
        deadline_ms = self._clock.monotonic_ms() + GRACE_MS
        while self._under_way and self._clock.monotonic_ms() < deadline_ms:
            self._collect(BUSY_S)
        if self._gathered.moved:
            self._write(delivery_log)

    def _assigned(self, progress: dict[int, DeliveryPosition]) -> None:
        self._forget()
        self._progress.update(progress)
        self._gathered.begin(progress, self._clock.monotonic_ms())
        self.ready = True
        log.info("deliveries assigned", partitions=sorted(progress))

    def _revoked(self) -> None:
        if self._delivery_log is not None and (self._gathered.moved or self._under_way):
            self._finish(self._delivery_log)
        self._forget()

    def _forget(self) -> None:
        """A term is over: work still under way belongs to the dispatcher that reads it next."""
        self._term += 1
        self._senders.drop()
        self.silent.forget()
        for each in (self._progress, self._ahead, self._under_way, self._gathered):
            each.clear()
