"""Spans as values: what is told of requests, waits and fires.

    caller's trace    ── their span ── process belfry.schedules      a child: it follows at once
                              ┆ link
    fire's own trace         wait ──────────── send belfry.fired.shop ── POST       days later

A fire is *linked* to the span that asked for it and is no child of it: a trace that stays open for
days is one that no tool can show.  The trace of a fire has the fire's id for its own, so code that
has an event has its trace, and a delivery, which knows the fire, finds the span it belongs to.

Names and attributes are those of OpenTelemetry's conventions for messaging; belfry's own begin with
``belfry.``.  No payload, no header and no key of an event is among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Final

from belfry.engine.effects import Traced, TracedFire, TracedRequest
from belfry.schedules.outcomes import Outcome
from belfry.wire.record import Origin
from belfry.wire.trace_context import TraceContext

# What a request came to that did not do what it was for.
REFUSED: Final = frozenset(
    {Outcome.REJECTED, Outcome.CONFLICT, Outcome.NOT_FOUND, Outcome.TOO_LATE}
)
MOST_TEXT: Final = 300

Attributes = Mapping[str, str | int]


class SpanKind(Enum):
    """What a span is to the other side, by OpenTelemetry's names."""

    INTERNAL = "INTERNAL"
    SERVER = "SERVER"
    CLIENT = "CLIENT"
    PRODUCER = "PRODUCER"
    CONSUMER = "CONSUMER"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A span that has ended; instants in epoch milliseconds.

    `context` has its own ids.  `error` says what went wrong, None where nothing did.
    """

    name: str
    kind: SpanKind
    context: TraceContext
    parent: TraceContext | None = None
    links: tuple[TraceContext, ...] = ()
    began_ms: float
    ended_ms: float
    attributes: Attributes
    error: str | None = None


def wait_context(fire_id: str) -> TraceContext:
    """The span of the wait that ended with a fire."""
    return TraceContext(fire_id, fire_id[:16])


def fire_context(fire_id: str) -> TraceContext:
    """The span of a fire: code that knows its id can refer to it."""
    return TraceContext(fire_id, fire_id[16:])


def spans_of(traced: Iterable[Traced], committed_ms: float) -> Iterator[Span]:
    """The spans of a step that was committed then."""
    for each in traced:
        if isinstance(each, TracedRequest):
            yield _request(each, committed_ms)
            continue
        if each.accepted_ms is not None:
            yield _wait(each, each.accepted_ms)
        yield _fire(each, committed_ms)


def _request(told: TracedRequest, committed_ms: float) -> Span:
    """From the record of a request to the commit of its verdict: a child of who has sent it.

    It is an error where the request did not do what it was for, with the reason that its user gets.
    """
    origin, parent = told.origin, told.context
    failed = told.outcome in REFUSED
    attributes: dict[str, str | int] = {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": origin.topic,
        "messaging.destination.partition.id": str(origin.partition),
        "messaging.kafka.offset": origin.offset,
        "belfry.tenant": told.tenant,
        "belfry.schedule_id": told.schedule_id,
        "belfry.action": told.action,
        "belfry.outcome": str(told.outcome),
    }
    if told.code:
        attributes["error.type" if failed else "belfry.code"] = told.code
    return Span(
        name=f"process {origin.topic}",
        kind=SpanKind.CONSUMER,
        context=parent._replace(span_id=_span_id(origin)),
        parent=parent,
        began_ms=min(origin.timestamp_ms, committed_ms),
        ended_ms=committed_ms,
        attributes=attributes,
        error=(told.reason or str(told.outcome))[:MOST_TEXT] if failed else None,
    )


def _span_id(origin: Origin) -> str:
    """The same for a request however often its step is done."""
    place = f"{origin.topic}/{origin.partition}/{origin.offset}"
    return blake2b(place.encode(), digest_size=8).hexdigest()


def _wait(told: TracedFire, accepted_ms: int) -> Span:
    """From the acceptance to the fire: where a schedule was for days, and nothing else was done."""
    return Span(
        name="wait",
        kind=SpanKind.INTERNAL,
        context=wait_context(told.fire_id),
        links=(told.context,),
        began_ms=min(accepted_ms, told.fired_ms),
        ended_ms=told.fired_ms,
        attributes=_of_fire(told),
    )


def _fire(told: TracedFire, committed_ms: float) -> Span:
    """From the decision to fire to the commit with which readers have the event."""
    attributes = {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": told.topic,
        "messaging.message.id": told.fire_id,
        **_of_fire(told),
    }
    return Span(
        name=f"send {told.topic}",
        kind=SpanKind.PRODUCER,
        context=fire_context(told.fire_id),
        parent=None if told.accepted_ms is None else wait_context(told.fire_id),
        links=(told.context,),
        began_ms=told.fired_ms,
        ended_ms=max(committed_ms, told.fired_ms),
        attributes=attributes,
    )


def _of_fire(told: TracedFire) -> dict[str, str | int]:
    """What a wait and its fire have in common."""
    return {
        "belfry.tenant": told.tenant,
        "belfry.schedule_id": told.schedule_id,
        "belfry.fire_id": told.fire_id,
        "belfry.occurrence": told.occurrence,
        "belfry.lateness_ms": told.fired_ms - told.due_ms,
    }
