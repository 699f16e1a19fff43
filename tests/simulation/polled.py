"""What stands in for a producer without transactions whose user polls: each record goes by itself.

    ok        it lies there soon, and is acknowledged
    lost      it never comes to a broker, and is given up when its time is over
    unheard   it lies there, and no acknowledgement comes: it is given up, too
    late      it comes much later, perhaps when its user has been told that it was given up

The last three look alike to its user: nobody knows whether the record lies there.  Records that are
well come to a partition in the order in which they were sent, as an idempotent producer's do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty
from typing import Any, Final, Protocol

from confluent_kafka import KafkaError

from tests.simulation.broker import Entry, Headers, Log
from tests.simulation.clients import SimMessage
from tests.simulation.machine import Machine, machine
from tests.simulation.murmur import partition_of
from tests.simulation.primitives import SimSimpleQueue
from tests.simulation.stage import here

# `message.timeout.ms` of those that write in this way.
GIVEN_UP_MS: Final = 10_000.0
# A late record comes within so long.
LATE_MS: Final = 14_000.0
# While the network is cut, a client tries again.
AGAIN_MS: Final = 100.0
Report = Callable[[Any, Any], None]
# What keeps a list of what is written: machine, topic, value, key and headers.
Watched = Callable[[Machine, str, Any, Any, Headers | None], "Watcher"]


class Watcher(Protocol):
    """Whoever keeps a list of what is written in this way."""

    def lies(self, log: Log, entry: Entry) -> None:
        """A record of the producer's was appended."""

    def heard(self, error: KafkaError | None) -> None:
        """The user of the producer is told what became of it."""


@dataclass(eq=False, slots=True)
class Travelling:
    """A record between a client and its log."""

    log: Log
    key: bytes | None
    value: bytes | None
    headers: Headers | None
    report: Report | None
    watcher: Watcher
    fate: str
    reported: bool = False


class PolledProducer:
    """`Producer` without a transaction; what it writes is told to what `watched` makes for it."""

    def __init__(
        self, watched: Callable[[Machine, str, Any, Any, Headers | None], Watcher]
    ) -> None:
        self._machine = machine()
        self._broker = self._machine.broker
        self._watched = watched
        self._reports = SimSimpleQueue()
        self._left = 0
        # When the last record that is well comes to a partition.
        self._last_ms: dict[tuple[str, int], float] = {}

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = -1,
        on_delivery: Report | None = None,
        headers: Any = None,
        **_: Any,
    ) -> None:
        """Send a record; returns at once."""
        stage, weather = here(), self._machine.weather
        stage.check()
        logs = self._broker.topics.get(topic) or [Log(topic, 0)]
        if partition < 0:
            drawn = stage.random.randrange(len(logs))
            partition = drawn if key is None else partition_of(key, len(logs))
        listed = list(headers.items()) if isinstance(headers, dict) else list(headers or ())
        watcher = self._watched(self._machine, topic, value, key, listed)
        fate = weather.record_fate()
        sent = Travelling(logs[partition], key, value, listed, on_delivery, watcher, fate)
        if fate != "ok":
            self._machine.struck.append(f"record {fate}")
        self._left += 1
        stage.later(GIVEN_UP_MS, lambda: self._give_up(sent))
        if fate == "lost":
            return
        at_ms = stage.now_ms + weather.latency_ms()
        if fate == "late":
            at_ms += stage.random.random() * LATE_MS
        else:
            place = (topic, partition)
            at_ms = self._last_ms[place] = max(at_ms, self._last_ms.get(place, 0.0))
        stage.later(at_ms - stage.now_ms, lambda: self._arrive(sent))

    def _arrive(self, sent: Travelling) -> None:
        """Append a record; later, where there is no way to the broker."""
        log = sent.log
        if self._machine.cut and sent.fate != "late":
            if not (sent.reported or self._machine.dead):
                here().later(AGAIN_MS, lambda: self._arrive(sent))
            return
        if log.topic in self._broker.refused:
            self._report(sent, KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "refused"), None)
            return
        entry = self._broker.append(log, (sent.key, sent.value, sent.headers))
        sent.watcher.lies(log, entry)
        if sent.fate != "unheard":
            latency_ms = self._machine.weather.latency_ms()
            here().later(latency_ms, lambda: self._report(sent, None, entry))

    def _give_up(self, sent: Travelling) -> None:
        self._report(sent, KafkaError(KafkaError._MSG_TIMED_OUT, "timed out"), None)

    def _report(self, sent: Travelling, error: KafkaError | None, entry: Entry | None) -> None:
        """Have a user told when it polls, once."""
        if sent.reported:
            return
        sent.reported = True
        offset = -1 if entry is None else entry.offset
        self._reports.put((sent, error, SimMessage(sent.log, entry, error, offset)))

    def poll(self, timeout: float = -1) -> int:
        """Serve reports that are there; wait so long for the first."""
        here().check()
        served, wait_s = 0, None if timeout < 0 else timeout
        while True:
            try:
                sent, error, message = self._reports.get(timeout != 0 and not served, wait_s)
            except Empty:
                return served
            served += 1
            self._left -= 1
            sent.watcher.heard(error)
            if sent.report is not None:
                sent.report(error, message)

    def flush(self, timeout: float = -1) -> int:
        """Poll until all is reported, or the time is over; how much is left."""
        until_ms = here().now_ms + (timeout * 1000 if timeout >= 0 else GIVEN_UP_MS)
        while self._left and here().now_ms < until_ms:
            self.poll(min(0.1, (until_ms - here().now_ms) / 1000))
        return self._left

    def __len__(self) -> int:
        return self._left
