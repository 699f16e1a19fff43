"""The dispatcher: reads deliveries, has them posted, and writes what follows.

One thread talks to Kafka (`DeliveryLog`), and this is its loop; another one, or another process,
posts (`HttpSender`, `SeparateSender`).  Memory is bounded: so many deliveries and bytes are under
way at most, and so many of one host.  Where the share of a host that answers is used up, reading
waits for it; where that of one that hangs, its deliveries are postponed, each as a schedule of its
own, and the others go on.

Whatever goes wrong with Kafka ends the *term*: the group is left, and joined again from what is
committed.  What was posted meanwhile is posted again, under the same id.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

import structlog
from confluent_kafka import KafkaException, Message

from belfry.client.decoding import Decoder
from belfry.delivery.answers import Answer, Delivered, End, Failed, step_after
from belfry.delivery.delivery_log import DeliveryLog
from belfry.delivery.http_sender import Finished, WorkId
from belfry.delivery.kinds.kind import Sender
from belfry.delivery.progress import DeliveryPosition
from belfry.delivery.silent_hosts import SilentHosts
from belfry.delivery.work import (
    NotADelivery,
    Places,
    Produced,
    Work,
    dead_letter,
    follow_up,
    metered,
    work_of,
)
from belfry.host.background import Background
from belfry.host.clock import SystemClock
from belfry.host.passing import PassThrough, all_pass, at_once
from belfry.kafka.record_headers import headers_of
from belfry.settings import DeliverySettings
from belfry.telemetry.limited import LimitedLogger

BATCH: Final = 500
IDLE_S: Final = 0.1
BUSY_S: Final = 0.005
# Follow-ups are written together: a transaction for each would be most of the work, and each of
# them costs every partition of the requests one of its own.  An acknowledgement is waited for;
# a retry is not, being due in a second.
GATHER_MS: Final = 200.0
GATHER_AWAITED_MS: Final = 40.0
PAUSE_AFTER_ERROR_S: Final = 1.0
GRACE_MS: Final = 3_000.0
SHARE: Final = 8
# A batch of the largest records may come on top.
MOST_BYTES: Final = 64 * 1024 * 1024
SILENT_HOST_MS: Final = 1_000.0
POSTPONE_MS: Final = 5_000

log = structlog.get_logger(__name__)

Told = Callable[[Counter[str], Counter[str]], None]


def _untold(_outcomes: Counter[str], _tenants: Counter[str]) -> None:
    """Nobody counts."""


class Dispatcher:
    """Delivers until it is stopped; nothing that happens to it ends the process."""

    def __init__(
        self,
        settings: DeliverySettings,
        places: Places,
        sender: Callable[[Finished], Sender],
        decoder: Decoder,
        told: Told = _untold,
        through: PassThrough = at_once,
    ) -> None:
        """`sender` makes what sends to targets of all kinds.

        `told` hears of what is counted: attempts by outcome, and what arrived by tenant.  What is
        read comes `through` an agent, where the process has one.
        """
        self._through = through
        self._settings = settings
        self._places = places
        self._decoder = decoder
        self._clock = clock = SystemClock()
        self._told = told
        self._results: SimpleQueue[tuple[WorkId, Work, Answer]] = SimpleQueue()
        self._senders = sender(lambda *result: self._results.put(result))
        self._thread = Background("deliveries", self._membership, log, "deliveries stumbled")
        self._stopping = self._thread.stopping
        self._faults = LimitedLogger(log, clock=lambda: clock.monotonic_ms() / 1000)
        self._most = settings.webhook_in_flight
        self._delivery_log: DeliveryLog | None = None
        self._term = 0
        self.ready = False
        self.silent = SilentHosts(clock.monotonic_ms)
        self._progress: dict[int, DeliveryPosition] = {}
        self._ahead: deque[tuple[WorkId, Work]] = deque()
        self._under_way: dict[WorkId, str] = {}
        self._at_host: Counter[str] = Counter()
        self._heard_ms: dict[str, float] = {}
        self._moved: set[int] = set()
        self._first_ms = self._gather_ms = 0.0
        self._bytes = 0
        self._records: list[Produced] = []
        self._counts: Counter[str] = Counter()
        self._delivered: Counter[str] = Counter()

    def start(self) -> None:
        """Begin to deliver; returns at once."""
        self._senders.start()
        self._thread.start()

    def stop(self) -> None:
        """Finish what is under way, for a few seconds, and leave."""
        self._thread.stop()
        self._senders.stop()

    @property
    def alive(self) -> bool:
        """Whether it runs, or was not started yet."""
        return self._thread.alive or not self._thread.begun

    # -- the thread ------------------------------------------------------------------------------

    def _membership(self) -> None:
        """From joining the group to the first failure, or to the end."""
        delivery_log = None
        try:
            delivery_log = self._delivery_log = DeliveryLog(
                self._settings, self._assigned, self._revoked
            )
            delivery_log.open()
            while not self._stopping.is_set():
                self._turn(delivery_log)
            self._finish(delivery_log)
        except Exception as error:  # noqa: BLE001  # whatever it is, Kafka has the state
            self._faults.warning(
                "term ended", "deliveries start over from what is committed", cause=str(error)
            )
        finally:
            self.ready = False
            self._forget()
            self._close(delivery_log)
        self._stopping.wait(PAUSE_AFTER_ERROR_S)

    def _close(self, delivery_log: DeliveryLog | None) -> None:
        self._delivery_log = None
        if delivery_log is not None:
            try:
                delivery_log.close()
            except (KafkaException, RuntimeError) as error:
                self._faults.warning("close", "the group was not left in order", cause=str(error))

    def _turn(self, delivery_log: DeliveryLog) -> None:
        messages = delivery_log.read(self._room(), BUSY_S if self._under_way else IDLE_S)
        if messages and self._came_through(messages):
            self._take(messages)
        self._hand_in()
        self._collect(BUSY_S if self._under_way and not messages else 0.0)
        if self._due():
            self._write(delivery_log)

    def _came_through(self, messages: list[Message]) -> bool:
        """Whether records have come through the agent of deliveries; False if asked to stop."""
        topic = self._settings.topic("deliveries")
        return all_pass(self._through, topic, messages, self._stopping)

    def _room(self) -> int:
        """How many more records may be read now."""
        if self._ahead or self._bytes >= MOST_BYTES:
            return 0
        if any(each.full for each in self._progress.values()):
            return 0
        return min(BATCH, self._most - len(self._under_way))

    def _take(self, messages: list[Message]) -> None:
        """Turn records into work; what is none is put aside with a reason."""
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
            if self._at_host[host] >= self._most // SHARE:
                if now_ms - self._heard_ms.get(host, now_ms) < SILENT_HOST_MS:
                    break
                self._ahead.popleft()
                self._postpone(work_id, work)
                continue
            self._ahead.popleft()
            self._at_host[host] += 1
            self._heard_ms.setdefault(host, now_ms)
            self._under_way[work_id] = host
            self._bytes += len(work.value)
            pieces.append((work_id, work))
        if pieces:
            self._senders.hand_in(pieces)

    def _postpone(self, work_id: WorkId, work: Work) -> None:
        now_ms = int(self._clock.wall_ms())
        reason = f"{self._most // SHARE} deliveries wait for the host, and it does not answer"
        target = work.state.targets[0].url
        answer = Answer(End.POSTPONED, target, "host_silent", reason, now_ms + POSTPONE_MS)
        self._follow(work_id, work, answer)

    def _collect(self, timeout_s: float) -> None:
        """Take what has come to its end; wait so long for something."""
        try:
            while True:
                work_id, work, answer = self._results.get(timeout_s > 0, timeout_s or None)
                timeout_s = 0.0
                host = self._under_way.pop(work_id, None)
                if host is not None:
                    self._bytes -= len(work.value)
                    self._left(host, answer)
                    self._follow(work_id, work, answer)
        except Empty:
            return

    def _left(self, host: str, answer: Answer) -> None:
        self._at_host[host] -= 1
        if answer.heard:
            self._heard_ms[host] = self._clock.monotonic_ms()
        if not self._at_host[host]:
            del self._at_host[host]
            self._heard_ms.pop(host, None)

    def _follow(self, work_id: WorkId, work: Work, answer: Answer) -> None:
        self.silent.after(answer)
        now_ms = int(self._clock.wall_ms())
        step = step_after(work.state, work.event, answer, now_ms)
        self._ended(work_id, work, follow_up(work, step, self._places, now_ms))
        name = "DELIVERED" if isinstance(step, Delivered) else "RETRIED"
        self._counts["FAILED" if isinstance(step, Failed) else name] += 1
        if isinstance(step, Delivered):
            self._delivered[work.event.tenant] += 1

    def _ended(self, work_id: WorkId, work: Work | None, records: list[Produced]) -> None:
        if not self._moved:
            self._first_ms, self._gather_ms = self._clock.monotonic_ms(), GATHER_MS
        if work is not None and work.state.acks:
            self._gather_ms = GATHER_AWAITED_MS
        self._progress[work_id.partition].ended(work_id.offset)
        self._moved.add(work_id.partition)
        self._records += records

    def _due(self) -> bool:
        """Whether it is time to write what has gathered."""
        if not self._moved:
            return False
        waited_ms = self._clock.monotonic_ms() - self._first_ms
        much = len(self._records) >= BATCH
        return waited_ms >= self._gather_ms or not self._under_way or much

    def _write(self, delivery_log: DeliveryLog) -> None:
        progress = {partition: self._progress[partition] for partition in self._moved}
        used = metered(self._delivered, self._places, int(self._clock.wall_ms()))
        delivery_log.commit([*self._records, *used], progress)
        self._told(self._counts, self._delivered)
        self._moved.clear()
        self._counts.clear()
        self._delivered.clear()
        self._records.clear()

    def _finish(self, delivery_log: DeliveryLog) -> None:
        """Let posts that are under way come to their end, and write what they came to."""
        deadline_ms = self._clock.monotonic_ms() + GRACE_MS
        while self._under_way and self._clock.monotonic_ms() < deadline_ms:
            self._collect(BUSY_S)
        if self._moved:
            self._write(delivery_log)

    # -- the group -------------------------------------------------------------------------------

    def _assigned(self, progress: dict[int, DeliveryPosition]) -> None:
        self._forget()
        self._progress.update(progress)
        self.ready = True
        log.info("deliveries assigned", partitions=sorted(progress))

    def _revoked(self) -> None:
        if self._delivery_log is not None and (self._moved or self._under_way):
            self._finish(self._delivery_log)
        self._forget()

    def _forget(self) -> None:
        """A term is over: what is still under way belongs to whoever reads it next."""
        self._term += 1
        self._senders.drop()
        self.silent.forget()
        kept = (self._progress, self._ahead, self._under_way, self._at_host, self._heard_ms)
        for each in (*kept, self._moved, self._records, self._counts, self._delivered):
            each.clear()
        self._bytes = 0
