"""Ten outages of a belfry of two workers: how each is planted, what has to tell of it, its end.

An outage is a context: inside it something is wrong, and after it it is mended.  The first worker
is the one that is asked; what happens to a worker happens to the second one.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Final, NamedTuple

from belfry.devstack import Apicurio, Kafka
from tests.acceptance.harness.receiver import Receiver
from tests.acceptance.harness.requests import policy
from tests.acceptance.harness.site import Site, now_ms
from tests.chaos.clock import MovedClock
from tests.chaos.faults.disks import filled
from tests.outages.signs import Signs

RESERVE_MB: Final = 32
AHEAD_MS: Final = 2_000
HOUR_MS: Final = 3_600_000
UNKNOWN_SCHEMA: Final = b"\x00\x00\x00\x27\x0f" + b"no known schema"


@dataclass
class Scene:
    """What outages happen to."""

    kafka: Kafka
    registry: Apicurio
    site: Site
    clock: MovedClock
    hook: Receiver

    def policy(self, tenant: str, **fields: object) -> None:
        """Write a policy, as an operator would."""
        topic, value = self.site.topic("tenants"), policy(tenant, **fields)
        self.site.producer.produce(topic, value, tenant.encode())
        self.site.producer.flush(10)


Plant = Callable[[Scene], AbstractContextManager[object]]


class Outage(NamedTuple):
    """What goes wrong, what has to tell of it, and how."""

    name: str
    plant: Plant
    signs: Signs


@contextmanager
def broker_away(scene: Scene) -> Iterator[None]:
    """The only broker is killed."""
    scene.kafka.kill()
    yield
    scene.kafka.start().wait_ready(120)


@contextmanager
def no_topic(scene: Scene) -> Iterator[None]:
    """A tenant's events are due, and its topic is not there."""
    scene.site.ask("homeless", "one", at=now_ms(), payload=b"x")
    yield
    scene.site.fired_topics(["homeless"])


@contextmanager
def no_standby(scene: Scene) -> Iterator[None]:
    """One of two workers ends, as by a crash."""
    other = scene.site.workers[1]
    other.kill()
    yield
    other.start().wait_ready(120)


@contextmanager
def clock_off(scene: Scene) -> Iterator[None]:
    """The wall clock of a worker jumps ahead."""
    scene.clock.put(AHEAD_MS)
    yield
    scene.clock.put(0)


@contextmanager
def disk_full(scene: Scene) -> Iterator[None]:
    """The disk under a worker's state has half of the reserve left."""
    with filled(scene.site.workers[1].data_dir, RESERVE_MB // 2):
        yield


@contextmanager
def registry_away(scene: Scene) -> Iterator[None]:
    """The registry is killed, and requests come whose schema nobody knows."""
    scene.registry.kill()
    ended = Event()

    def send() -> None:
        while not ended.wait(1):
            scene.site.send(UNKNOWN_SCHEMA, key=b"shop")

    sending = Thread(target=send)
    sending.start()
    yield
    ended.set()
    sending.join()
    scene.registry.start().wait_ready(120)


@contextmanager
def host_hangs(scene: Scene) -> Iterator[None]:
    """The host of a tenant's webhooks takes posts, and answers none."""
    target = {"url": f"http://127.0.0.1:{scene.hook.port}/hang", "timeout_ms": 1_000}
    for number in range(20):
        scene.site.ask("hooked", f"h/{number}", at=now_ms(), http_targets=[target])
    yield
    scene.hook.released.set()


@contextmanager
def never_acknowledged(scene: Scene) -> Iterator[None]:
    """A serial event left; nobody acknowledges it, and the next one has been due for an hour."""
    due_ms = now_ms() - HOUR_MS - 60_000
    lock = {"group": "invoices", "serial": True}
    scene.site.ask("acking", "first", at=due_ms - 1, payload=b"x", **lock)
    scene.site.ask("acking", "second", at=due_ms, payload=b"y", **lock)
    yield
    for name in ("first", "second"):
        scene.site.ask("acking", name, action="CANCEL")


@contextmanager
def flood(scene: Scene) -> Iterator[None]:
    """A tenant that may fire five events a second has three thousand due."""
    scene.policy("flooding", max_fires_per_second=5)
    time.sleep(1)
    for number in range(3_000):
        scene.site.ask_soon("flooding", f"f/{number}", at=now_ms(), payload=b"x")
    scene.site.producer.flush(20)
    yield
    scene.policy("flooding")


@contextmanager
def hangs(scene: Scene) -> Iterator[None]:
    """A worker's process stands still, as in a machine that swaps or is paused."""
    other = scene.site.workers[1]
    other.signal(signal.SIGSTOP)
    yield
    other.signal(signal.SIGCONT)


OUTAGES: Final = (
    Outage(
        "tenant without a topic",
        no_topic,
        Signs(
            "TenantBlocked", "homeless waits .output_topic", "homeless", "homeless waits",
            "(?=.*tenant held)(?=.*homeless)",
        ),
    ),
    Outage(
        "ack lock never acknowledged",
        never_acknowledged,
        Signs("AckLockHolds", "acking waits .ack_lock", "acking", "acking waits", ""),
    ),
    Outage(
        "flood of one tenant",
        flood,
        Signs("TenantBehind", "flooding waits .rate", "flooding", "flooding waits", ""),
    ),
    Outage(
        "webhook host hangs",
        host_hangs,
        Signs(
            "WebhookHostSilent", "webhook hosts do not answer: 127", "webhook hosts do not answer",
            "webhook hosts do not answer", "a webhook host does not answer",
        ),
    ),
    Outage(
        "registry away",
        registry_away,
        Signs(
            "RegistrySilent", "schema registry does not answer", "schema registry does not answer",
            "registry: .*does not answer", "schema registry does not answer",
        ),
    ),
    Outage(
        "clock off by 2 s",
        clock_off,
        Signs("FiringPaused", "firing is paused", "clock cannot be trusted", "clock", "clock"),
    ),
    Outage(
        "disk nearly full",
        disk_full,
        Signs("DiskNearlyFull", "the disk of .* has", "the disk of", "the disk of", "the disk of"),
    ),
    Outage(
        "no standby (the second worker is gone)",
        no_standby,
        Signs("WorkerGone", "", "nobody stands by", "There is one worker", "taken over"),
    ),
    Outage(
        "worker hangs",
        hangs,
        Signs(
            "WorkerGone", "", "does not answer|nobody stands by",
            "does not answer|There is one worker", "the owner is silent|taking over|taken over",
        ),
    ),
    Outage(
        "broker away",
        broker_away,
        Signs(
            "NotReady", "503: .*(broker|Kafka|transport|refused)", "does not fire|Kafka",
            "No Kafka broker", "(broker|transport|refused)",
        ),
    ),
)  # fmt: skip
