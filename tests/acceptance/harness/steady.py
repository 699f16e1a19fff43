"""A plain steady load: so many schedules a second, due a while ahead, each with a number.

What `load.py` does for truth, this does for time: one sort of request, at a rate that a fail-over
can be judged by, and the instant from which each event can be called late.
"""

from __future__ import annotations

import random
import time
from array import array
from collections.abc import Iterable
from threading import Event, Thread
from typing import Any, Final

from confluent_kafka import Producer

from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms

TENANTS: Final = tuple(f"t{number}" for number in range(16))
TICK_S: Final = 0.01


class SteadyLoad:
    """Sends until stopped; event number n is due at `due_ms[n]` and lives on `home[n]`."""

    def __init__(self, site: Site, per_second: int, ahead_s: tuple[float, float]) -> None:
        self._site = site
        self._per_second = per_second
        self._ahead_s = ahead_s
        self._random = random.Random(5)
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="steady", daemon=True)
        self._failure: BaseException | None = None
        self.due_ms = array("q")
        self.since_ms = array("q")
        self.home = array("b")
        self._producer = Producer(
            {
                "bootstrap.servers": site.bootstrap,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,
            }
        )

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until all of it is delivered."""
        self._stopping.set()
        self._thread.join()
        self._producer.flush(60)
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        started = time.monotonic()
        try:
            while not self._stopping.wait(TICK_S):
                wanted = int((time.monotonic() - started) * self._per_second)
                # After a stall the load does not come in one heap.
                for _ in range(min(wanted - len(self.due_ms), self._per_second // 4)):
                    self._send()
                self._producer.poll(0)
        except BaseException as error:  # noqa: BLE001  # raised by stop
            self._failure = error

    def _send(self) -> None:
        number = len(self.due_ms)
        tenant = self._random.choice(TENANTS)
        due_ms = now_ms() + int(1000 * self._random.uniform(*self._ahead_s))
        self.due_ms.append(due_ms)
        self.since_ms.append(due_ms)
        self.home.append(-1)

        def delivered(error: Any, message: Any) -> None:
            assert error is None, error
            self.since_ms[number] = max(due_ms, message.timestamp()[1])
            self.home[number] = message.partition()

        value = request(tenant, f"s{number}", at=due_ms, payload=b"%d" % number)
        self._producer.produce(
            self._site.topic("schedules"), value, key=tenant.encode(), on_delivery=delivered
        )


class Fires:
    """What came out, event by event."""

    def __init__(self, load: SteadyLoad) -> None:
        self._load = load
        self.times = array("b", bytes(len(load.due_ms)))
        self.late_ms = array("q", bytes(8 * len(load.due_ms)))

    def add(self, records: Iterable[Record]) -> None:
        """Count records of the output."""
        for record in records:
            number = int(record.value or b"")
            self.times[number] += 1
            self.late_ms[number] = record.timestamp_ms - self._load.since_ms[number]

    @property
    def lost(self) -> int:
        """Events that have not come out."""
        return sum(1 for times in self.times if not times)

    @property
    def doubled(self) -> int:
        """Events that came out more than once."""
        return sum(1 for times in self.times if times > 1)

    @property
    def early(self) -> int:
        """Events that came out before their due instant."""
        return sum(1 for late_ms in self.late_ms if late_ms < 0)

    def worst_ms(self, begin_ms: int, end_ms: int) -> dict[int, int]:
        """Largest lateness of each home among the events due in a stretch of time."""
        found: dict[int, int] = {}
        for since_ms, home, late_ms in zip(
            self._load.since_ms, self._load.home, self.late_ms, strict=True
        ):
            if begin_ms <= since_ms < end_ms:
                found[home] = max(found.get(home, 0), late_ms)
        return found
