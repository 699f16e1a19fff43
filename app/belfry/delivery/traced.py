"""A span for each attempt at a delivery whose trace is sampled: a post, or a record for a topic.

    wait ── send belfry.fired.shop ─┬─ POST  503            first attempt
                                    ├─ POST  204            the next, seconds or hours later
                                    └─ send payments.audit  a target that is a topic

A delivery carries the headers of its event, so its `traceparent` says whether it is traced.  The
span belongs to that of the fire, whose ids follow from the fire's id; nothing else travels with it.
The `traceparent` that is posted stays the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from secrets import token_hex
from urllib.parse import urlsplit

from belfry.delivery.answers import Answer, End, Sent
from belfry.delivery.kinds.kind import Sender
from belfry.delivery.work import Finished, Work, WorkId
from belfry.schedules.target_kinds.kafka import KAFKA, topic_of
from belfry.telemetry.spans import Attributes, Span, SpanKind, fire_context
from belfry.telemetry.tracing import Tracing
from belfry.wire.trace_context import TraceContext, sampled_in

MakeSender = Callable[[Finished], Sender]


def traced(make: MakeSender, tracing: Tracing) -> MakeSender:
    """A factory of senders whose attempts are traced.

    A span is put into a queue when its attempt has ended, and never delays an answer.
    """

    def makes(finished: Finished) -> Sender:
        def told(work_id: WorkId, work: Work, answer: Answer) -> None:
            if (context := sampled_in(work.headers)) is not None:
                tracing.put(spans_of(work, answer, context))
            finished(work_id, work, answer)

        return make(told)

    return makes


def spans_of(work: Work, answer: Answer, context: TraceContext) -> Iterator[Span]:
    """The spans of an attempt: one for each target that it tried.

    Names of attributes are OpenTelemetry's.  Times are epoch ms, by the clock of the process that
    sent.
    """
    fire = fire_context(work.event.fire_id)
    for sent in answer.sent:
        kafka = KAFKA.knows(sent.target)
        topic = topic_of(sent.target) if kafka else ""
        failed = sent.end is not End.DELIVERED
        yield Span(
            name=f"send {topic}" if kafka else "POST",
            kind=SpanKind.PRODUCER if kafka else SpanKind.CLIENT,
            context=TraceContext(fire.trace_id, token_hex(8)),
            parent=fire,
            links=(context,),
            began_ms=sent.began_ms,
            ended_ms=max(sent.began_ms, sent.ended_ms),
            attributes={
                **(_of_record(topic, work) if kafka else _of_post(sent, work)),
                "belfry.tenant": work.event.tenant,
                "belfry.schedule_id": work.event.schedule_id,
                "belfry.fire_id": work.event.fire_id,
                **({"error.type": sent.code} if failed else {}),
            },
            error=sent.code if failed else None,
        )


def _of_record(topic: str, work: Work) -> Attributes:
    return {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": topic,
        "messaging.message.id": work.event.fire_id,
        "belfry.attempt": work.state.attempt,
    }


def _of_post(sent: Sent, work: Work) -> Attributes:
    address = urlsplit(sent.target)
    # Neither a user's name nor what stands behind the path: keys may lie there.
    told = f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}"
    return {
        "http.request.method": "POST",
        "url.full": told,
        "server.address": address.hostname or "",
        "http.request.resend_count": work.state.attempt - 1,
        **({"http.response.status_code": sent.status} if sent.status else {}),
    }
