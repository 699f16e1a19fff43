"""A load that runs on, whatever happens to the workers, and knows what it sent.

A seeded mixture: new schedules due seconds ahead, updates, cancels, triggers, late ones, delays,
header-protocol requests, strays (on a partition that is not their tenant's home), groups with ties,
and poison.  Each schedule keeps to one route, so that the log says in which order its requests
came.  Updates and cancels come either well before the due instant or around it: the latter may end
either way, and the audit asks only that the end agrees with the verdict.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, Final

from confluent_kafka import Producer

from tests.acceptance.harness.auditor import MARGIN_MS
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.sent import CANCEL, POISON, TRIGGER, UPSERT, Sent
from tests.acceptance.harness.site import Site, now_ms

TENANTS: Final = ("alpha", "beta", "gamma.one", "delta-2", "echo_3", "foxtrot")
GROUPED: Final = ("alpha", "beta", "gamma.one")
TICK_S: Final = 0.01
KEPT: Final = 4_000
PARTITIONS: Final = 4
# Part of every payload and of many headers: whoever finds it in a log has found a leak.
CANARY: Final = b"only-for-the-reader"


@dataclass(frozen=True)
class Shape:
    """How much of what: events per second, and how far ahead they are due."""

    per_second: int = 400
    ahead_s: tuple[float, float] = (1.0, 20.0)
    seed: int = 1


@dataclass
class Load:
    """Sends until stopped; `sent` are the delivered requests."""

    site: Site
    shape: Shape = field(default_factory=Shape)
    sent: list[Sent] = field(default_factory=list)
    last_due_ms: int = 0
    tenants: tuple[str, ...] = TENANTS
    # Of the topic of requests; may be set anew once the producer knows of more.
    partitions: int = PARTITIONS

    def __post_init__(self) -> None:
        self._random = random.Random(self.shape.seed)
        self._recent: deque[Sent] = deque(maxlen=KEPT)
        self._number = 0
        self._stopping = Event()
        self._crowds: SimpleQueue[tuple[int, int]] = SimpleQueue()
        self._homes: dict[str, int] = {}
        self._thread = Thread(target=self._run, name="load", daemon=True)
        self.failure: BaseException | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": self.site.bootstrap,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,
                "topic.metadata.refresh.interval.ms": 1_000,
            }
        )
        self._kinds: list[tuple[float, Callable[[], None]]] = [
            (0.66, self._new),
            (0.06, self._in_headers),
            (0.05, self._after),
            (0.04, self._stray),
            (0.04, self._late),
            (0.06, self._replace),
            (0.06, self._cancel),
            (0.02, self._trigger),
            (0.01, self._poison),
        ]

    def start(self) -> None:
        """Begin to send."""
        for tenant in self.tenants:
            asked = self.site.send(b"which partition?", key=tenant.encode())
            self._homes[tenant] = asked.partition()
        self._thread.start()

    def crowd(self, count: int, due_ms: int) -> None:
        """Send so many more, all due at the same instant."""
        self._crowds.put((count, due_ms))

    def stop(self) -> list[Sent]:
        """Stop, and wait until all of it is delivered."""
        self._stopping.set()
        self._thread.join()
        self._producer.flush(60)
        if self.failure is not None:
            raise self.failure
        return self.sent

    def _run(self) -> None:
        started, count = time.monotonic(), 0
        weights = [weight for weight, _ in self._kinds]
        makers = [make for _, make in self._kinds]
        try:
            while not self._stopping.wait(TICK_S):
                wanted = int((time.monotonic() - started) * self.shape.per_second)
                for make in self._random.choices(makers, weights, k=max(0, wanted - count)):
                    make()
                count = max(count, wanted)
                self._send_crowd()
                self._producer.poll(0)
        except BaseException as error:  # noqa: BLE001  # raised by stop
            self.failure = error

    def _send_crowd(self) -> None:
        try:
            count, due_ms = self._crowds.get_nowait()
        except Empty:
            return
        for _ in range(count):
            self._upsert(self._random.choice(self.tenants), f"crowd/{self._number}", due_ms)
            self._producer.poll(0)

    # -- the kinds of requests -------------------------------------------------------------------

    def _new(self) -> None:
        tenant = self._random.choice(self.tenants)
        self._upsert(tenant, f"s/{self._number}", self._instant())

    def _late(self) -> None:
        late_ms = self._random.randrange(1, 5_000)
        self._upsert(self._random.choice(self.tenants), f"late-{self._number}", now_ms() - late_ms)

    def _stray(self) -> None:
        tenant = self._random.choice(self.tenants)
        away = (self._homes[tenant] + self._random.randrange(1, count := self.partitions)) % count
        one = self._upsert_of(tenant, f"stray-{self._number}", self._instant())
        one.stray = True
        # Two hops take longer than one, so it has no neighbours to be in order with.
        one.group, one.key = "", one.schedule_id.encode()
        self._produce(one, self._avro(one), partition=away, key=b"any")

    def _replace(self) -> None:
        old = self._pick()
        if old is not None:
            self._upsert(old.tenant, old.schedule_id, self._instant(), old.group)

    def _cancel(self) -> None:
        old = self._pick()
        if old is None:
            return
        one = Sent(self._next_id(), CANCEL, old.tenant, old.schedule_id)
        self._produce(one, self._avro(one))

    def _trigger(self) -> None:
        old = self._pick()
        if old is None:
            return
        one = Sent(self._next_id(), TRIGGER, old.tenant, old.schedule_id)
        self._produce(one, self._avro(one))

    def _after(self) -> None:
        """Due a delay after its append instant, which only the delivery report tells."""
        one = self._upsert_of(self._random.choice(self.tenants), f"after-{self._number}", 0)
        low, high = self.shape.ahead_s
        delay_ms = self._random.randrange(int(low * 1000), int(high * 1000))
        one.group, one.key = "", one.schedule_id.encode()
        value = self._avro(one, kind="AFTER", at=None, delay_ms=delay_ms)
        self._produce(one, value, delay_ms=delay_ms)

    def _in_headers(self) -> None:
        one = self._upsert_of(
            self._random.choice(self.tenants), f"h-{self._number}", self._instant()
        )
        one.group, one.key = "", one.tenant.encode()
        protocol: list[tuple[str, bytes | None]] = [
            ("belfry-tenant", one.tenant.encode()),
            ("belfry-id", one.schedule_id.encode()),
            ("belfry-at", b"%d" % one.due_ms),
            ("belfry-request-id", one.request_id.encode()),
        ]
        self._produce(one, one.payload, headers=protocol + one.headers)

    def _poison(self) -> None:
        one = Sent(self._next_id(), POISON, "", "")
        size = self._random.choice((0, 1, 7, 200, 5_000))
        value = self._random.choice((b"", b"\0", b"\xc3\x01")) + self._random.randbytes(size)
        partition = self._random.randrange(self.partitions)
        self._produce(one, value, partition=partition, key=self._random.randbytes(4))

    # -- making and sending ----------------------------------------------------------------------

    def _upsert(self, tenant: str, schedule_id: str, due_ms: int, group: str | None = None) -> None:
        one = self._upsert_of(tenant, schedule_id, due_ms, group)
        self._produce(one, self._avro(one))
        if self._random.random() < 0.3:
            self._recent.append(one)

    def _upsert_of(
        self, tenant: str, schedule_id: str, due_ms: int, group: str | None = None
    ) -> Sent:
        request_id = self._next_id()
        if group is None and tenant in GROUPED and self._random.random() < 0.4:
            group = f"g{self._random.randrange(3)}"
        filler = CANARY + self._random.randbytes(self._random.choice((0, 20, 300)))
        key = (group or schedule_id).encode()
        headers: list[tuple[str, bytes | None]] = []
        if self._random.random() < 0.3:
            headers = [("content-type", b"x/y"), ("twice", None), ("twice", filler[:25])]
        payload = request_id.encode() + b" " + filler
        return Sent(
            request_id, UPSERT, tenant, schedule_id, due_ms, group or "", key, payload, headers
        )

    def _avro(self, one: Sent, **more: Any) -> bytes:
        fields: dict[str, Any] = {"action": one.action, "request_id": one.request_id}
        if one.action == UPSERT:
            fields |= {
                "at": one.due_ms,
                "group": one.group or None,
                "payload": one.payload,
                "headers": [{"name": name, "value": value} for name, value in one.headers],
            }
        return request(one.tenant, one.schedule_id, **{**fields, **more})

    def _produce(self, one: Sent, value: bytes | None, delay_ms: int = 0, **more: Any) -> None:
        def delivered(error: Any, message: Any) -> None:
            assert error is None, error
            one.partition, one.offset = message.partition(), message.offset()
            one.appended_ms = message.timestamp()[1]
            if delay_ms:
                one.due_ms = one.appended_ms + delay_ms
            self.last_due_ms = max(self.last_due_ms, one.due_ms)
            self.sent.append(one)

        # Where the key leads at first: more partitions change no schedule's route.
        home = self._homes.get(one.tenant)
        where = {} if home is None else {"partition": home}
        given: dict[str, Any] = {"key": one.tenant.encode(), **where, **more}
        self._producer.produce(self.site.topic("schedules"), value, on_delivery=delivered, **given)

    def _pick(self) -> Sent | None:
        """A schedule to change: one in two with plenty of time left, one in two with none."""
        spare_ms = (MARGIN_MS + 1_000) if self._random.random() < 0.5 else -1_000
        for _ in range(len(self._recent)):
            old = self._recent.popleft()
            if old.due_ms - now_ms() > spare_ms:
                return old
            if self._random.random() < 0.05:
                return old
        return None

    def _instant(self) -> int:
        low, high = self.shape.ahead_s
        due_ms = now_ms() + int(1000 * self._random.uniform(low, high))
        # Ties are worth having: one in ten is due at a full second.
        return due_ms if self._random.random() < 0.9 else due_ms // 1000 * 1000

    def _next_id(self) -> str:
        self._number += 1
        return f"r{self._number}"
