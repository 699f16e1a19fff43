"""The thread that writes the audit log, with a producer that fails as Kafka's does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

import pytest
from confluent_kafka import KafkaError

from belfry.audit.trail import Trail
from belfry.audit.writer import IDLE_MS, AuditWriter
from belfry.wire.audit import AuditEvent, decode_audit

FRAME = b"frame"


class FakeProducer:
    """Confirms when it is polled, unless it is told to be full, silent or to refuse."""

    def __init__(self) -> None:
        self.written: list[AuditEvent] = []
        self.keys: list[bytes | None] = []
        self.full = 0
        self.silent = False
        self.error: KafkaError | None = None
        self._told: list[Callable[..., None]] = []

    def produce(self, topic: str, value: bytes, key: bytes | None, *, on_delivery: Any) -> None:
        assert topic == "audit"
        if self.full:
            self.full -= 1
            raise BufferError
        self.written.append(decode_audit(value.removeprefix(FRAME)))
        self.keys.append(key)
        self._told.append(on_delivery)

    def poll(self, _timeout: float) -> None:
        if not self.silent:
            told, self._told = self._told, []
            for each in told:
                each(self.error, None)

    def flush(self, _timeout: float) -> None:
        self.poll(0)


class Log:
    """A trail and its writer, and what was counted."""

    def __init__(self) -> None:
        self.trail, self.producer = Trail(), FakeProducer()
        self.counted = Counter[str]()
        self.trail.counted = lambda outcome, count: self.counted.update({outcome: count})
        self.made, self.later_ms = list[FakeProducer](), 0.0
        self.writer = AuditWriter(self.trail, ("audit", FRAME), self._make, self.now_ms)

    def _make(self) -> FakeProducer:
        self.made.append(self.producer)
        return self.producer

    def now_ms(self) -> float:
        return monotonic() * 1000 + self.later_ms

    def note(self, *names: str) -> None:
        for name in names:
            self.trail.note(AuditEvent(at=1, action="schedule.put", tenant="demo", object=name))

    def wait(self, outcome: str, count: int) -> None:
        deadline = monotonic() + 10
        while self.counted[outcome] < count:
            assert monotonic() < deadline, self.counted
            sleep(0.01)


@pytest.fixture
def log() -> Log:
    return Log()


def test_events_are_written_under_their_tenant(log: Log) -> None:
    log.writer.start()
    log.note("a", "b")
    log.wait("written", 2)
    log.writer.stop()
    assert [each.object for each in log.producer.written] == ["a", "b"]
    assert log.producer.keys == [b"demo", b"demo"]


def test_a_full_producer_is_waited_for_and_order_stays(log: Log) -> None:
    log.producer.full = 3
    log.note("a", "b", "c")
    log.writer.start()
    log.wait("written", 3)
    log.writer.stop()
    assert [each.object for each in log.producer.written] == ["a", "b", "c"]
    assert log.counted["lost"] == 0


def test_what_kafka_does_not_take_is_lost_aloud(log: Log) -> None:
    log.producer.error = KafkaError(KafkaError._MSG_TIMED_OUT)
    log.writer.start()
    log.note("a")
    log.wait("lost", 1)
    log.writer.stop()
    assert log.counted == {"lost": 1}


def test_a_stop_writes_what_is_there_and_sums_of_refusals(log: Log) -> None:
    for _ in range(10):
        log.trail.refused(AuditEvent(at=1, action="read", status=401, source_address="192.0.2.1"))
    log.note("a")
    log.writer.start()
    log.writer.stop()
    assert sum(each.count for each in log.producer.written) == 11
    assert log.counted["lost"] == 0


def test_what_is_not_confirmed_at_the_stop_is_lost_aloud(log: Log) -> None:
    log.producer.silent = True
    log.note("a", "b")
    log.writer.start()
    log.writer.stop()
    assert log.counted == {"lost": 2}


def is_idle(writer: Any) -> bool:
    """Whether a writer has no producer."""
    return writer._producer is None


def test_a_producer_is_there_while_there_is_something_to_write(log: Log) -> None:
    writer: Any = log.writer
    writer._turn()
    assert not log.made
    log.producer.silent = True
    log.note("a")
    writer._turn()
    log.later_ms = 2 * IDLE_MS
    writer._turn()
    assert len(log.made) == 1
    # What is under way is waited for, however long it takes.
    assert not is_idle(writer)
    log.producer.silent = False
    for turns in (3, 5):
        log.later_ms = turns * IDLE_MS
        writer._turn()
    assert is_idle(writer)
    log.note("b")
    writer._turn()
    assert len(log.made) == 2
    assert [each.object for each in log.producer.written] == ["a", "b"]


@pytest.mark.parametrize("again", [True, False])
def test_no_event_goes_silently_with_a_producer_that_cannot_be_made(
    log: Log, monkeypatch: pytest.MonkeyPatch, *, again: bool
) -> None:
    """A certificate's file is missing for a moment while it is being replaced."""

    def fail() -> FakeProducer:
        raise OSError("no such file")

    with monkeypatch.context() as patched:
        patched.setattr(log.writer, "_make", fail)
        log.note("a", "b")
        with pytest.raises(OSError, match="no such file"):
            log.writer._turn()
        if not again:
            log.writer._end()
    if again:
        log.writer._end()
    assert [each.object for each in log.producer.written] == (["a", "b"] if again else [])
    assert log.counted == ({"written": 2} if again else {"lost": 2})
