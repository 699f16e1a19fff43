"""A load of recurring schedules, of every kind, that runs beside the load of single events.

Each schedule is one `Rhythm`: its rule, and what else was asked of it (paused and resumed,
triggered, cancelled, its payload replaced).  Bounds keep each short, so that a run can be waited
for to its end.  Each tenant stands for one way of living: its policy, and the topic that its
requests are sent to.  `rhythm_audit.py` judges what came out.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, Final, Protocol

from confluent_kafka import Producer

from tests.acceptance.harness.requests import policy, request
from tests.acceptance.harness.site import Site, now_ms

PLAIN: Final = "pulse"
ENVELOPED: Final = "pulse-enveloped"
SPREAD: Final = "pulse-spread"
LOOSE: Final = "pulse-once-or-more"
OWN_TOPIC: Final = "pulse-own"
RATED: Final = "pulse-rated"
AWAITED: Final = "pulse-awaited"
HOOKED: Final = "pulse-hooked"
PULSES: Final = (PLAIN, ENVELOPED, SPREAD, LOOSE, OWN_TOPIC, RATED, AWAITED, HOOKED)

TICK_S: Final = 0.02
# Zero seconds of a day are a multiple of each of these, so their instants need no calendar.
CRON_SECONDS: Final = (1, 2, 5)
# A run waits for the end of the last one, so that one every five seconds fires eight times at most.
LONGEST_MS: Final = 40_000


@dataclass(frozen=True)
class Asked:
    """A later request about a rhythm, as it lies in the log."""

    request_id: str
    action: str
    appended_ms: int


class Table(Protocol):
    """A rule by the clock on the wall, whose instants an oracle knows."""

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of its request."""

    def instants(self, accepted_ms: int, until_ms: int) -> list[int]:
        """Its instants behind the acceptance, up to one (inclusive)."""


@dataclass
class Rhythm:
    """One recurring schedule as it was asked for; instants in epoch ms.

    Nominal instants are `start_ms` + k times `interval_ms`; without `start_ms` they count from the
    append of the request (EVERY), or are the multiples of the interval after it (CRON).  A table
    says its own ones.
    """

    request_id: str
    tenant: str
    schedule_id: str
    kind: str
    interval_ms: int
    misfire: str
    limit_ms: int
    start_ms: int | None = None
    end_ms: int | None = None
    max_fires: int | None = None
    jitter_ms: int = 0
    group: str = ""
    serial: bool = False
    overlap: str = ""
    ack_timeout_ms: int = 0
    appended_ms: int = 0
    table: Table | None = None
    later: list[Asked] = field(default_factory=list)

    def fields(self) -> dict[str, Any]:
        """The request's fields; what is not asked for is left out."""
        given: dict[str, Any] = {
            "kind": self.kind,
            "misfire": self.misfire,
            "max_lateness_ms": self.limit_ms,
            "start_at": self.start_ms,
            "end_at": self.end_ms,
            "max_fires": self.max_fires,
            "jitter_ms": self.jitter_ms or None,
            "group": self.group or None,
            "overlap": self.overlap or None,
            "serial": self.serial or None,
            "ack_timeout_ms": self.ack_timeout_ms or None,
        }
        if self.table is not None:
            given |= self.table.fields
        elif self.kind == "CRON":
            given["cron"] = f"*/{self.interval_ms // 1000} * * * * *"
        else:
            given["interval_ms"] = self.interval_ms
        return {name: value for name, value in given.items() if value is not None}


@dataclass
class RhythmLoad:
    """Sends until stopped; `rhythms` are those whose request was delivered."""

    site: Site
    per_second: float = 2.0
    seed: int = 1
    hook: str = ""
    rhythms: list[Rhythm] = field(default_factory=list)
    acks: dict[str, Asked] = field(default_factory=dict)
    last_ms: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="rhythms", daemon=True)
        self._agenda: list[tuple[float, Callable[[], None]]] = []
        # Where a tenant's requests came first: more partitions change no schedule's route.
        self._homes: dict[str, int] = {}
        self._number = 0
        self.failure: BaseException | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": self.site.bootstrap,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,
            }
        )

    def prepare(self) -> None:
        """Topics and policies, before the first worker starts."""
        site = self.site
        site.create_topics([site.topic("tenants")], {"cleanup.policy": "compact"})
        site.create_topics(
            [site.topic(f"schedules.{OWN_TOPIC}")], {"message.timestamp.type": "LogAppendTime"}
        )
        site.fired_topics(PULSES)
        for tenant, fields in self._policies().items():
            body = policy(tenant, lifecycle="ALL", **fields)
            site.producer.produce(site.topic("tenants"), body, tenant.encode())
        assert site.producer.flush(20) == 0

    def _policies(self) -> dict[str, dict[str, Any]]:
        target = {"url": self.hook, "timeout_ms": 5_000}
        hooked = {"http_targets": [target], "allowed_hosts": ["127.0.0.1"]} if self.hook else {}
        return {
            PLAIN: {},
            ENVELOPED: {"delivery": "ENVELOPE"},
            SPREAD: {"spread": 4},
            LOOSE: {"guarantee": "AT_LEAST_ONCE"},
            OWN_TOPIC: {},
            RATED: {"max_fires_per_second": 40.0},
            AWAITED: {},
            HOOKED: hooked,
        }

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Send nothing new, finish what has begun, and wait until all of it is delivered."""
        self._stopping.set()
        self._thread.join()
        self._producer.flush(60)
        if self.failure is not None:
            raise self.failure

    def acknowledge(self, tenant: str, schedule_id: str, fire_id: str) -> None:
        """Send an ACK after a while, or never: one in six waits for its time-out."""
        if fire_id in self.acks or self._random.random() < 1 / 6:
            return
        self.acks[fire_id] = Asked("", "ACK", 0)
        wait_s = self._random.choice((0.0, 0.3, 1.5))
        self._agenda.append(
            (time.monotonic() + wait_s, lambda: self._ack(tenant, schedule_id, fire_id))
        )

    # -- in the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        started, count = time.monotonic(), 0
        try:
            while not self._stopping.is_set() or self._agenda:
                time.sleep(TICK_S)
                wanted = int((time.monotonic() - started) * self.per_second)
                if count < wanted and not self._stopping.is_set():
                    self._new()
                    count += 1
                self._do_what_is_due()
                self._producer.poll(0)
        except BaseException as error:  # noqa: BLE001  # raised by stop
            self.failure = error

    def _do_what_is_due(self) -> None:
        now = time.monotonic()
        due = [each for each in self._agenda if each[0] <= now]
        self._agenda = [each for each in self._agenda if each[0] > now]
        for _, act in due:
            act()

    def _new(self) -> None:
        rhythm = self._made(self._random.choice(PULSES))

        def delivered(appended_ms: int) -> None:
            rhythm.appended_ms = appended_ms
            self.rhythms.append(rhythm)

        self._send(rhythm, rhythm.request_id, delivered, payload=b"0", **rhythm.fields())
        self._plan_later(rhythm)
        length_ms = (rhythm.max_fires or 0) * rhythm.interval_ms
        self.last_ms = max(self.last_ms, rhythm.end_ms or now_ms() + 3_000 + length_ms)

    def _made(self, tenant: str) -> Rhythm:
        draw = self._random
        number = self._next_id()
        kind = "CRON" if draw.random() < 0.3 else "EVERY"
        interval_ms = (
            1_000 * draw.choice(CRON_SECONDS) if kind == "CRON" else draw.choice((250, 400, 900))
        )
        count = draw.randrange(8, 40)
        rhythm = Rhythm(
            number, tenant, f"beat/{number}", kind, interval_ms,
            draw.choice(("FIRE_ONCE", "FIRE_ALL", "SKIP")), draw.choice((500, 2_000, 20_000)),
        )  # fmt: skip
        if kind == "EVERY" and draw.random() < 0.5:
            rhythm.start_ms = now_ms() + draw.randrange(200, 3_000)
        if draw.random() < 0.5:
            rhythm.end_ms = now_ms() + 3_000 + count * min(interval_ms, 1_000)
        else:
            rhythm.max_fires = min(count, LONGEST_MS // interval_ms)
        if draw.random() < 0.25:
            rhythm.jitter_ms = draw.choice((interval_ms // 2, interval_ms * 2))
        self._group_or_await(rhythm)
        return rhythm

    def _group_or_await(self, rhythm: Rhythm) -> None:
        draw = self._random
        if rhythm.tenant == AWAITED:
            rhythm.ack_timeout_ms = draw.choice((1_500, 4_000))
            if draw.random() < 0.3:
                # Alone in its group: what waits for whom is then known from the records alone.
                rhythm.group, rhythm.serial = rhythm.request_id, True
            else:
                rhythm.overlap = draw.choice(("SKIP", "QUEUE_ONE"))
        elif rhythm.tenant not in (SPREAD, HOOKED) and draw.random() < 0.3:
            rhythm.group = f"g{draw.randrange(3)}"

    def _plan_later(self, rhythm: Rhythm) -> None:
        draw, now = self._random, time.monotonic()
        sort = draw.random()
        if sort < 0.15:
            pause_s = draw.uniform(2, 6)
            self._agenda.append((now + pause_s, lambda: self._ask(rhythm, "PAUSE")))
            resume_s = pause_s + draw.uniform(0.5, 6)
            self._agenda.append((now + resume_s, lambda: self._ask(rhythm, "RESUME")))
        elif sort < 0.3:
            self._agenda.append((now + draw.uniform(2, 12), lambda: self._ask(rhythm, "CANCEL")))
        elif sort < 0.4:
            self._agenda.append((now + draw.uniform(1, 5), lambda: self._ask(rhythm, "TRIGGER")))
        elif sort < 0.5:
            again = {**rhythm.fields(), "payload": b"1"}
            self._agenda.append(
                (now + draw.uniform(1, 5), lambda: self._ask(rhythm, "UPSERT", **again))
            )

    def _ask(self, rhythm: Rhythm, action: str, **fields: Any) -> None:
        request_id = self._next_id()

        def delivered(appended_ms: int) -> None:
            rhythm.later.append(Asked(request_id, action, appended_ms))

        self._send(rhythm, request_id, delivered, action=action, **fields)

    def _ack(self, tenant: str, schedule_id: str, fire_id: str) -> None:
        request_id = self._next_id()

        def delivered(appended_ms: int) -> None:
            self.acks[fire_id] = Asked(request_id, "ACK", appended_ms)

        body = request(tenant, schedule_id, action="ACK", fire_id=fire_id, request_id=request_id)
        self._produce(tenant, body, delivered)

    def _send(
        self, rhythm: Rhythm, request_id: str, delivered: Callable[[int], None], **fields: Any
    ) -> None:
        body = request(rhythm.tenant, rhythm.schedule_id, request_id=request_id, **fields)
        self._produce(rhythm.tenant, body, delivered)

    def _produce(self, tenant: str, body: bytes, delivered: Callable[[int], None]) -> None:
        def told(error: Any, message: Any) -> None:
            assert error is None, error
            self._homes.setdefault(tenant, message.partition())
            delivered(message.timestamp()[1])

        name = f"schedules.{tenant}" if tenant == OWN_TOPIC else "schedules"
        home = self._homes.get(tenant)
        where: dict[str, Any] = {} if home is None else {"partition": home}
        self._producer.produce(
            self.site.topic(name), body, tenant.encode(), on_delivery=told, **where
        )

    def _next_id(self) -> str:
        self._number += 1
        return f"p{self._number}"
