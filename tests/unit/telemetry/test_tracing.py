"""Spans on their way to a collector: what they say, and that nobody waits for them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from belfry.engine.effects import TracedFire, TracedRequest
from belfry.schedules.outcomes import Outcome
from belfry.settings import Settings
from belfry.telemetry.otlp import OtlpSender
from belfry.telemetry.spans import Span, SpanKind
from belfry.telemetry.tracing import NoOpenTelemetry, Tracing, sending, tracing_of
from belfry.wire.record import Origin
from belfry.wire.trace_context import TraceContext
from tests.acceptance.harness.collector import Collector

CONTEXT = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", True, "v=1")
FIRE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
T0 = 1_800_000_000_000
DAY = 86_400_000
CLIENT, SERVER, INTERNAL, PRODUCER, CONSUMER = 3, 2, 1, 4, 5


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


def requested(outcome: Outcome = Outcome.ACCEPTED, code: str | None = None) -> TracedRequest:
    origin = Origin("belfry.schedules", 2, 41, T0, rerouted=False)
    why = None if code is None else f"because of {code}"
    return TracedRequest(CONTEXT, "shop", "a", "UPSERT", origin, outcome, code, why)


def fired(accepted_ms: int | None = T0, occurrence: int = 0) -> TracedFire:
    due_ms = T0 + 3 * DAY
    instants = accepted_ms, due_ms, due_ms + 4
    return TracedFire(CONTEXT, "shop", "a", FIRE_ID, "belfry.fired.shop", occurrence, *instants)


class Kept:
    """Keeps what it is given, once it may."""

    def __init__(self, *, open_: bool = True) -> None:
        self.spans: list[Span] = []
        self.released = threading.Event()
        if open_:
            self.released.set()

    def send(self, spans: Sequence[Span]) -> bool:
        self.released.wait(20)
        self.spans += spans
        return True

    def close(self) -> None:
        self.released.set()


def traced(sender: Any, most: int = 1_000) -> tuple[Tracing, Counter[str]]:
    counts: Counter[str] = Counter()

    def told(outcome: str, spans: int) -> None:
        counts[outcome] += spans

    return Tracing(sender, most, told, lambda: T0 + 3 * DAY + 6), counts


def sent(collector: Collector, *values: TracedRequest | TracedFire) -> Counter[str]:
    tracing, counts = traced(OtlpSender(collector.url, "w-1", "belfry"))
    with sending(tracing):
        tracing.committed(values)
    return counts


def test_a_fire_is_linked_to_what_asked_for_it_and_no_child_of_it(collector: Collector) -> None:
    assert sent(collector, requested(), fired()) == {"exported": 3}
    process, wait, fire = collector.spans()
    assert (process.name, process.kind, process.failed) == (
        "process belfry.schedules",
        CONSUMER,
        False,
    )
    assert (process.trace_id, process.parent) == CONTEXT[:2]
    assert process.attributes["messaging.kafka.offset"] == 41
    assert process.attributes["messaging.destination.partition.id"] == "2"
    for span in (wait, fire):
        assert (span.trace_id, span.links) == (FIRE_ID, [CONTEXT[:2]])
        assert span.attributes["belfry.lateness_ms"] == 4
    assert (wait.name, wait.kind, wait.parent) == ("wait", INTERNAL, "")
    assert (wait.began_ns, wait.ended_ns) == (T0 * 10**6, (T0 + 3 * DAY + 4) * 10**6)
    assert (fire.name, fire.kind, fire.parent) == (
        "send belfry.fired.shop",
        PRODUCER,
        wait.span_id,
    )
    assert (fire.began_ns, fire.ended_ns) == (wait.ended_ns, wait.ended_ns + 2 * 10**6)
    assert fire.attributes["messaging.message.id"] == FIRE_ID
    assert process.resource["service.name"] == "belfry"
    assert process.resource["service.instance.id"] == "w-1"


def test_a_later_fire_stands_alone(collector: Collector) -> None:
    sent(collector, fired(None, 7))
    (fire,) = collector.spans()
    assert (fire.trace_id, fire.parent, fire.links) == (FIRE_ID, "", [CONTEXT[:2]])
    assert fire.attributes["belfry.occurrence"] == 7


@pytest.mark.parametrize(
    "outcome", [Outcome.REJECTED, Outcome.CONFLICT, Outcome.NOT_FOUND, Outcome.TOO_LATE]
)
def test_a_refused_request_has_failed(collector: Collector, outcome: Outcome) -> None:
    sent(collector, requested(outcome, "no_reason"))
    (span,) = collector.spans()
    assert (span.failed, span.message) == (True, "because of no_reason")
    assert span.attributes["error.type"] == "no_reason"
    assert span.attributes["belfry.outcome"] == outcome


def test_a_repeat_has_not_failed(collector: Collector) -> None:
    sent(collector, requested(Outcome.DUPLICATE, "ACCEPTED"))
    (span,) = collector.spans()
    assert not span.failed
    assert span.attributes["belfry.code"] == "ACCEPTED"


def test_a_request_whose_step_is_told_of_twice_is_one_span(collector: Collector) -> None:
    sent(collector, requested(), requested())
    first, second = collector.spans()
    assert first.span_id == second.span_id


def test_what_finds_no_room_is_dropped_and_counted() -> None:
    sender = Kept(open_=False)
    tracing, counts = traced(sender, most=100)
    with sending(tracing):
        began = time.monotonic()
        for _ in range(1_000):
            tracing.committed([requested()])
        took_s = time.monotonic() - began
        sender.released.set()
    # It may have begun a batch, whose room others then had.
    assert counts["dropped"] + counts["exported"] == 1_000
    assert counts["dropped"] >= 1_000 - 100 - 512
    assert len(sender.spans) == counts["exported"]
    assert took_s < 2


@pytest.mark.parametrize("status", [400, 503])
def test_what_a_collector_does_not_take_is_counted_and_nobody_waits(status: int) -> None:
    with Collector(status) as collector:
        tracing, counts = traced(OtlpSender(collector.url, "w-1", "belfry"))
        began = time.monotonic()
        with sending(tracing):
            tracing.committed([requested()])
            assert time.monotonic() - began < 1
        assert time.monotonic() - began < 6
        assert collector.headers
    assert counts["exported"] == 0


def test_a_collector_that_is_away_delays_nothing() -> None:
    tracing, counts = traced(OtlpSender("http://127.0.0.1:9", "w-1", "belfry"), most=100)
    with sending(tracing):
        began = time.monotonic()
        for _ in range(300):
            tracing.committed([requested()])
        assert time.monotonic() - began < 1
        assert counts["dropped"] >= 200
    assert time.monotonic() - began < 6


def test_headers_of_the_exporter_come_from_its_own_variables(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    sent(collector, requested())
    assert collector.headers[0]["api-key"] == "secret"
    (span,) = collector.spans()
    assert span.resource["deployment.environment.name"] == "test"


def test_without_an_address_nothing_traces() -> None:
    assert tracing_of(Settings(), "w-1", lambda *_: None, lambda: 0.0) is None


def test_an_address_without_the_extra_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "belfry.telemetry.otlp", None)
    settings = Settings(otlp_url="http://127.0.0.1:4318")
    with pytest.raises(NoOpenTelemetry, match=r"pip install belfry-scheduler\[otel\]"):
        tracing_of(settings, "w-1", lambda *_: None, lambda: 0.0)


def test_a_worker_that_does_not_trace_imports_no_sdk() -> None:
    code = (
        "import sys, belfry.assembly\n"
        "print([m for m in sys.modules if m.startswith('opentelemetry.')"
        " and m.split('.')[1] in ('sdk', 'exporter', 'proto')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_kinds_of_spans_are_those_of_the_sdk(collector: Collector) -> None:
    tracing, _ = traced(OtlpSender(collector.url + "/v1/traces", "w-1", "belfry"))
    with sending(tracing):
        tracing.put(
            Span(
                name=kind.value,
                kind=kind,
                context=CONTEXT,
                began_ms=T0,
                ended_ms=T0,
                attributes={},
            )
            for kind in SpanKind
        )
    kinds = {each.name: each.kind for each in collector.spans()}
    assert kinds == {
        "INTERNAL": INTERNAL,
        "SERVER": SERVER,
        "CLIENT": CLIENT,
        "PRODUCER": PRODUCER,
        "CONSUMER": CONSUMER,
    }
