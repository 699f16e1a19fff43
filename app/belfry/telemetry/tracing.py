"""Tracing: spans on their way to a collector, in a queue that nobody waits for.

    partitions, HTTP, deliveries ── put ──► queue ── thread belfry-traces ──► OTLP
                                      └ full: dropped, and counted

Code that puts spans in only takes a lock for the length of an append, so a collector that is slow
or away delays nothing but spans.  A batch that it does not take is dropped and counted: spans are
no record of what happened, the lifecycle topic is.

A process without `otlp_url` has no object of this class and does not import OpenTelemetry's SDK.
Only what the caller samples is traced: the last bit of its `traceparent` says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Final, Protocol

import structlog

from belfry.engine.effects import Traced
from belfry.host.background import Background
from belfry.settings import ServerSettings
from belfry.telemetry.spans import Span, spans_of
from belfry.wire.trace_context import TraceContext

BATCH: Final = 512
PAUSE_S: Final = 0.5
# How long a process that stops waits for a collector.
STOP_S: Final = 2.0

# The span of the request over HTTP that is being answered, where it is traced.
CURRENT: Final[ContextVar[TraceContext | None]] = ContextVar("belfry_span", default=None)

log = structlog.get_logger(__name__)


class NoOpenTelemetry(Exception):
    """Spans are to be sent, and what sends them is not installed."""


class SpanSender(Protocol):
    """What sends spans; it belongs to one thread, but for `close`."""

    def send(self, spans: Sequence[Span]) -> bool:
        """Send a batch; whether the other side has taken it."""

    def close(self) -> None:
        """Give up what is under way."""


class Tracing:
    """Takes spans from any thread, and sends them from one of its own."""

    def __init__(
        self,
        sender: SpanSender,
        most: int,
        told: Callable[[str, int], None],
        now_ms: Callable[[], float],
    ) -> None:
        """At most `most` spans wait; `told` hears what became of how many."""
        self.now_ms = now_ms
        self._sender = sender
        self._most = most
        self._told = told
        self._lock = Lock()
        self._waiting: deque[Span] = deque()
        self._thread = Background("traces", self._turn, log, "spans were not sent")
        self._thread.last = self._send_waiting

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Send what waits, for two seconds at most."""
        self._thread.stop(STOP_S)
        self._sender.close()

    def put(self, spans: Iterable[Span]) -> None:
        """Take spans; those that have no room are dropped."""
        given = list(spans)
        with self._lock:
            taken = given[: max(0, self._most - len(self._waiting))]
            self._waiting += taken
            if len(taken) < len(given):
                self._told("dropped", len(given) - len(taken))

    def committed(self, traced: Iterable[Traced]) -> None:
        """Take what a step told of that has just been committed."""
        self.put(spans_of(traced, self.now_ms()))

    def _turn(self) -> None:
        self._thread.stopping.wait(PAUSE_S)
        self._send_waiting()

    def _send_waiting(self) -> None:
        while batch := self._next():
            taken = False
            try:
                taken = self._sender.send(batch)
            finally:
                self._told("exported" if taken else "failed", len(batch))
            if not taken:
                return

    def _next(self) -> list[Span]:
        with self._lock:
            return [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]


@contextmanager
def sending(tracing: Tracing | None) -> Iterator[None]:
    """Send spans for as long as the block lasts, if there is something that traces."""
    if tracing is None:
        yield
        return
    tracing.start()
    try:
        yield
    finally:
        tracing.stop()


def tracing_of(
    settings: ServerSettings,
    worker: str,
    told: Callable[[str, int], None],
    now_ms: Callable[[], float],
) -> Tracing | None:
    """What traces, not started; None where nothing is traced.

    Raises:
        NoOpenTelemetry: the extra `otel` is not installed.
    """
    if settings.otlp_url is None:
        return None
    try:
        from belfry.telemetry.otlp import OtlpSender
    except ImportError as error:
        raise NoOpenTelemetry(
            f"BELFRY_OTLP_URL is {settings.otlp_url}, and OpenTelemetry is not installed"
            f" ({error}): run `pip install belfry-scheduler[otel]`, or leave the setting out."
        ) from None
    sender = OtlpSender(settings.otlp_url, worker, settings.cluster.app_id)
    return Tracing(sender, settings.otlp_queue_spans, told, now_ms)
