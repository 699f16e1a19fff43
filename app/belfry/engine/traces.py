"""Reports of requests and fires whose trace is sampled: values that the shell makes spans of.

    request ─► intake ─► verdict ─► TracedRequest ┐
                                                  ├─► effects.traced ─► committed ─► spans
    due row ─► emit ─► fired record ─► TracedFire ┘

An engine that traces has the two functions of this module in the place of the intake's `take` and
of `emit`.  They are chosen when the engine is made, so one that does not trace pays nothing, not
even a question for each event.

A request is traced by the context that its event carries: that of the schedule's own headers, else
that of the request's record.  A fire is traced by the context that lies in its schedule's headers,
which is the same one, however long the schedule has waited.  Requests of belfry itself for retries
of deliveries are not traced: an attempt has a span of its own.

Contexts are those of W3C Trace Context (`traceparent`, `tracestate`); only one whose flag says
"sampled" is told of.  A step that is rolled back leaves no span, for spans are made after the
commit.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.culprits import FAULTS, Fault
from belfry.engine.effects import TracedFire, TracedRequest
from belfry.engine.emit import EXTRA, Route, emit
from belfry.engine.intake import Intake
from belfry.engine.reply import MOST_SHOWN, Reply
from belfry.engine.reports import Reports
from belfry.engine.step import Step
from belfry.engine.unforeseen import tell
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.store.layout.pending import PendingRow, as_pending, decode_headers
from belfry.tenants.deliveries import RETRIES
from belfry.wire.headers import asked_by
from belfry.wire.record import SourceRecord
from belfry.wire.trace_context import TRACEPARENT, TraceContext, sampled_in

_TRACEPARENT_BYTES: Final = TRACEPARENT.encode()


class TracedIntake:
    """Takes requests in as `Intake` does, and tells of those whose trace is sampled.

    A TRIGGER gives two values: one for the request, and one for the fire that it made.
    """

    def __init__(self, intake: Intake, reports: Reports) -> None:
        self._intake = intake
        self._reports = reports

    def take(self, record: SourceRecord, request: Request | Rejection, step: Step) -> Reply | None:
        """Give one request its verdict, None where that falls elsewhere."""
        reply = self._intake.take(record, request, step)
        if reply is not None:
            try:
                self._tell(record, request, reply, step)
            except FAULTS as error:
                # The request has its verdict, with a trace or without.
                tell(Fault.of(error), step)
        return reply

    def _tell(
        self, record: SourceRecord, request: Request | Rejection, reply: Reply, step: Step
    ) -> None:
        context = _context(record, request)
        if context is None:
            return
        named = asked_by(record) if isinstance(request, Rejection) else request
        tenant, schedule_id, action = "", "", ""
        if named is not None:
            tenant, schedule_id, action = named["tenant"], named["schedule_id"], named["action"]
        if tenant == RETRIES:
            return
        names = tenant[:MOST_SHOWN], schedule_id[:MOST_SHOWN]
        traced, origin = step.effects.traced, self._reports.origin(record)
        asked = (context, *names, action, origin)
        traced.append(TracedRequest(*asked, reply.outcome, reply.code, reply.reason))
        if reply.outcome is Outcome.TRIGGERED and reply.fire_id is not None:
            topic, now_ms = step.effects.fired[-1][0], step.now_ms
            which = (context, *names, reply.fire_id, topic)
            traced.append(TracedFire(*which, EXTRA, None, now_ms, now_ms))


def emit_traced(
    row: PendingRow, route: Route, identity: bytes, step: Step, missed: int = 0
) -> None:
    """Fire an occurrence as `emit` does, and tell of it where its trace is sampled."""
    emit(row, route, identity, step, missed)
    named = as_pending(row)
    if _TRACEPARENT_BYTES not in named.headers or route.tenant.name == RETRIES:
        return
    context = sampled_in(decode_headers(named.headers))
    if context is None:
        return
    step.effects.traced.append(
        TracedFire(
            context,
            route.tenant.name,
            named.schedule_id.decode(),
            identity.decode(),
            route.topic,
            named.occurrence,
            named.accepted_ms if named.occurrence == 0 else None,
            named.due_ms,
            step.now_ms,
        )
    )


def _context(record: SourceRecord, request: Request | Rejection) -> TraceContext | None:
    """The context that a request is traced by: that of its event, None where it is not sampled."""
    own = [] if isinstance(request, Rejection) else request["headers"]
    given = [(each["name"], each["value"]) for each in own]
    return sampled_in([*given, *(record[4] or ())])
