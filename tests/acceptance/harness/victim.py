"""The tenant beside attacks: a steady stream of schedules, and what became of each.

Each schedule is due `AHEAD_MS` after it is asked for, so a hold-up of requests counts as much as
one of fires: an event's lateness is the broker's append time of its fired record, less its due
instant.  Where the broker appended its request only after that instant, lateness counts from there:
a broker checks each compressed batch while it holds its partition, 1.6 s for gzip of 900 MB.  At
`PER_SECOND` a window of five seconds holds 200 events, and its p99 is the second largest of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any, Final

from tests.acceptance.harness.hardened import VICTIM, Hardened, signed_request
from tests.acceptance.harness.reading import Reader
from tests.acceptance.harness.site import now_ms, wait_for

PER_SECOND: Final = 40
AHEAD_MS: Final = 1_000
OUT_S: Final = 60.0


@dataclass(frozen=True)
class Found:
    """What became of the events that were due in a stretch of time."""

    events: int
    p50_ms: int
    p99_ms: int
    worst_ms: int
    early: int
    lost: int
    doubled: int


class Victim:
    """Asks until stopped; event number n is due at `due_ms[n]`."""

    def __init__(self, hardened: Hardened) -> None:
        self._hardened = hardened
        self._producer = hardened.producer(VICTIM)
        self._reader = Reader(hardened.site.bootstrap)
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="victim", daemon=True)
        self.due_ms: list[int] = []
        self.fired: dict[int, list[int]] = {}
        self._appended_ms: dict[int, int] = {}
        self._failures: list[object] = []

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for the thread."""
        self._stopping.set()
        self._thread.join()
        self._producer.flush(20)
        self._reader.close()
        assert not self._failures, self._failures[:3]

    def between(self, begin_ms: int, end_ms: int) -> Found:
        """What became of the events due in this time, once all have come out or cannot any more."""
        numbers = [n for n, due_ms in enumerate(self.due_ms) if begin_ms <= due_ms < end_ms]
        wait_until_ms(end_ms)
        try:
            wait_for("the victim's events", lambda: self._all_out(numbers), OUT_S)
        except AssertionError:
            self._read()
        times = [self.fired.get(number, []) for number in numbers]
        late_ms = sorted(
            each[0] - max(self.due_ms[number], self._appended_ms.get(number, 0))
            for number, each in zip(numbers, times, strict=True)
            if each
        )
        return Found(
            events=len(numbers),
            p50_ms=quantile(late_ms, 0.5),
            p99_ms=quantile(late_ms, 0.99),
            worst_ms=late_ms[-1] if late_ms else 0,
            early=sum(late < 0 for late in late_ms),
            lost=sum(not each for each in times),
            doubled=sum(len(each) > 1 for each in times),
        )

    def _all_out(self, numbers: list[int]) -> bool:
        self._read()
        return all(number in self.fired for number in numbers)

    def _read(self) -> None:
        for record in self._reader.read([self._hardened.site.topic(f"fired.{VICTIM}")]):
            self.fired.setdefault(int(record.value or b""), []).append(record.timestamp_ms)

    def _run(self) -> None:
        began = monotonic()
        while not self._stopping.wait(0.005):
            wanted = int((monotonic() - began) * PER_SECOND)
            for number in range(len(self.due_ms), wanted):
                self._ask(number)
            self._producer.poll(0)

    def _ask(self, number: int) -> None:
        due_ms = now_ms() + AHEAD_MS
        self.due_ms.append(due_ms)
        key, value, headers = signed_request(
            VICTIM, f"v{number}", at=due_ms, payload=b"%d" % number
        )

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                self._failures.append(error)
            else:
                self._appended_ms[number] = message.timestamp()[1]

        self._producer.produce(
            self._hardened.topic,
            value,
            key,
            partition=self._hardened.home,
            headers=headers,
            on_delivery=delivered,
        )


def wait_until_ms(instant_ms: int) -> None:
    """Sleep until an instant has passed."""
    sleep(max(0, instant_ms - now_ms()) / 1000)


def quantile(ordered: list[int], share: float) -> int:
    """The value that this share of an ordered list is not larger than."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0
