"""OTLP over HTTP, by OpenTelemetry's SDK: the only module that imports it.

belfry decides itself what is traced, gives spans ids of its own and hears how they ended later than
they did.  So the SDK's sampler takes everything, its ids are given, and its spans are made in the
one thread that sends them.

    Span (a value)  ─► start_span(its own ids, parent, links, began) ─► end(ended) ─► _Ended
    a batch of them ─► _Ended.take ─► one request to the collector ─► taken, or not

What else an exporter needs (headers with a key, certificates, compression, time-out, attributes of
the resource) is read by the SDK from its own variables, ``OTEL_EXPORTER_OTLP_…`` and
``OTEL_RESOURCE_ATTRIBUTES``.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import environ
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)
from opentelemetry.trace import SpanKind as OtelKind

from belfry import __version__
from belfry.telemetry.spans import Span
from belfry.wire.trace_context import TraceContext

PATH: Final = "/v1/traces"
NS_PER_MS: Final = 1_000_000


class _GivenIds(IdGenerator):
    """The ids of the span that is made next."""

    def __init__(self) -> None:
        self.trace_id = self.span_id = 0

    def generate_trace_id(self) -> int:
        """That of its context."""
        return self.trace_id

    def generate_span_id(self) -> int:
        """The same."""
        return self.span_id


class _Ended(SpanProcessor):
    """Spans that have ended, until they are taken."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        """Keep one."""
        self.spans.append(span)

    def take(self) -> list[ReadableSpan]:
        """All of them, which are gone then."""
        taken, self.spans = self.spans, []
        return taken


class OtlpSender:
    """Sends spans to a collector; an address without a path means the usual one."""

    def __init__(self, url: str, worker: str, app_id: str) -> None:
        address = url if urlsplit(url).path.strip("/") else url.rstrip("/") + PATH
        self._exporter = OTLPSpanExporter(address)
        self._ids = _GivenIds()
        self._ended = _Ended()
        named = {
            "service.name": environ.get("OTEL_SERVICE_NAME", "belfry"),
            "service.version": __version__,
            "service.instance.id": worker,
            "belfry.app_id": app_id,
        }
        provider = TracerProvider(
            ALWAYS_ON,
            Resource.create({name: value for name, value in named.items() if value}),
            shutdown_on_exit=False,
            id_generator=self._ids,
        )
        provider.add_span_processor(self._ended)
        self._tracer = provider.get_tracer("belfry", __version__)

    def send(self, spans: Sequence[Span]) -> bool:
        """Send a batch; whether the collector has taken it."""
        for span in spans:
            self._make(span)
        return self._exporter.export(self._ended.take()) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Give up the work under way."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _make(self, span: Span) -> None:
        """Make the SDK's span of ours; it is among the ended ones then."""
        own = span.context
        self._ids.trace_id, self._ids.span_id = int(own.trace_id, 16), int(own.span_id, 16)
        parent = Context()
        if span.parent is not None:
            parent = set_span_in_context(NonRecordingSpan(_referred(span.parent)), parent)
        made = self._tracer.start_span(
            span.name,
            parent,
            OtelKind[span.kind.value],
            span.attributes,
            [Link(_referred(each)) for each in span.links],
            _ns(span.began_ms),
        )
        if span.error is not None:
            made.set_status(Status(StatusCode.ERROR, span.error))
        made.end(_ns(span.ended_ms))


def _referred(context: TraceContext) -> SpanContext:
    """A parent or a link: a span of somebody else, as the SDK names it."""
    return SpanContext(
        int(context.trace_id, 16),
        int(context.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
        trace_state=TraceState.from_header([context.state]) if context.state else None,
    )


def _ns(instant_ms: float) -> int:
    """Epoch milliseconds as the nanoseconds that OTLP counts in."""
    return round(instant_ms * NS_PER_MS)
