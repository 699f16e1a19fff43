"""A span for each attempt at a sampled delivery, of whatever kind, whichever process posts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from belfry.api.workers.host_breaks import HostBreaks
from belfry.delivery.answers import Answer, End, Sent
from belfry.delivery.attempts import SenderDependencies
from belfry.delivery.figures import UNCOUNTED
from belfry.delivery.http_requests import Secrets
from belfry.delivery.http_sender import HttpSender
from belfry.delivery.kinds.kafka import KafkaSender
from belfry.delivery.kinds.kind import Sender
from belfry.delivery.references import NOWHERE
from belfry.delivery.separate_sender import SeparateSender
from belfry.delivery.setup import deliverer_of
from belfry.delivery.traced import traced
from belfry.delivery.transport import HttpTransport
from belfry.delivery.work import Finished, Work, WorkId
from belfry.host.clock import SystemClock
from belfry.schedules.targets import HttpTarget
from belfry.settings import Settings
from belfry.telemetry.spans import Span, SpanKind, fire_context
from belfry.tenants.deliveries import DeliveryState
from belfry.wire.fired import FiredEvent
from belfry.wire.record import Headers
from belfry.wire.trace_context import TraceContext
from tests.acceptance.harness.receiver import Receiver
from tests.unit.delivery.test_http_sender import WAIT_S

CONTEXT = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
FIRE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
LOCAL = ["127.0.0.0/8"]
Make = Callable[[Finished], Sender]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def here(finished: Finished) -> Sender:
    from belfry.delivery.addresses import networks

    clock = SystemClock()
    allowed = networks(LOCAL)
    means = SenderDependencies(lambda: HttpTransport(clock, allowed), Secrets({}), clock, 3)
    return HttpSender(means, finished)


def apart(finished: Finished) -> Sender:
    return SeparateSender(Settings(webhook_private_networks=LOCAL), NOWHERE, HostBreaks(), finished)


class Tracer:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def put(self, spans: Any) -> None:
        self.spans += spans


def posted(make: Make, *works: Work) -> tuple[list[Span], list[End]]:
    """The spans of these works, and how each ended."""
    tracer: Any = Tracer()
    results: SimpleQueue[Any] = SimpleQueue()
    sender = traced(make, tracer)(lambda *result: results.put(result))
    sender.start()
    try:
        sender.hand_in([(WorkId(1, 0, n), work) for n, work in enumerate(works)])
        ends = [results.get(timeout=WAIT_S)[2].end for _ in works]
    finally:
        sender.stop()
    return tracer.spans, ends


def work(*urls: str, headers: Headers | None = None, attempt: int = 1) -> Work:
    event = FiredEvent("demo", "a", FIRE_ID, 1, 0, 0, 0, 0, payload=b"p")
    given = CONTEXT.headers() if headers is None else headers
    targets = tuple(HttpTarget(url, strategy="FIRST_AVAILABLE") for url in urls)
    state = DeliveryState(targets, "FIRST_AVAILABLE", attempt=attempt)
    return Work(b"key", b"", event, given, state)


@pytest.mark.parametrize("make", [here, apart])
def test_each_post_is_a_span_below_that_of_its_fire(make: Make, receiver: Receiver) -> None:
    spans, ends = posted(make, work(receiver.url("/status/503"), receiver.url("/ok"), attempt=3))
    assert ends == [End.DELIVERED]
    refused, taken = spans
    for span in spans:
        assert (span.name, span.kind) == ("POST", SpanKind.CLIENT)
        assert (span.parent, span.context.trace_id) == (fire_context(FIRE_ID), FIRE_ID)
        assert (span.links, span.attributes["http.request.resend_count"]) == ((CONTEXT,), 2)
        assert 0 < span.ended_ms - span.began_ms < 5_000
    assert refused.context.span_id != taken.context.span_id
    assert (refused.error, refused.attributes["error.type"]) == ("http_status", "http_status")
    assert refused.attributes["http.response.status_code"] == 503
    assert (taken.error, taken.attributes["http.response.status_code"]) == (None, 204)
    assert taken.attributes["url.full"] == receiver.url("/ok")
    # What is posted says what the user's record said.
    (got,) = receiver.at("/ok")
    assert got.headers["traceparent"] == f"00-{CONTEXT.trace_id}-{CONTEXT.span_id}-01"


def test_a_silent_host_is_a_span_without_a_status(receiver: Receiver) -> None:
    (span,), ends = posted(here, work(receiver.url("/drop")))
    assert (ends, span.error) == ([End.AGAIN], "connection")
    assert "http.response.status_code" not in span.attributes


def test_keys_in_an_address_are_not_told(receiver: Receiver) -> None:
    address = receiver.url("/ok?key=secret").replace("//", "//user:word@")
    (span,), _ = posted(here, work(address))
    assert span.attributes["url.full"] == receiver.url("/ok")


class Topics:
    """A producer that writes to one topic, and is told that another is not its own."""

    def produce(self, topic: str, *_: Any, on_delivery: Any, **__: Any) -> None:
        denied = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
        on_delivery(None if topic == "good" else denied, None)

    def poll(self, _seconds: float) -> None:
        """Answers have been told of already."""

    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize(("topic", "error"), [("good", None), ("closed", "not_authorized")])
def test_a_record_for_a_topic_is_a_span_below_that_of_its_fire(
    topic: str, error: str | None
) -> None:
    def make(finished: Finished) -> Sender:
        sender = KafkaSender(Settings(), finished)
        sender._producer = Topics()
        sender._known_until_s[topic] = float("inf")
        return sender

    written = work(f"kafka:{topic}", attempt=2)
    written = replace(written, state=replace(written.state, hosts=(f"kafka:{topic}",)))
    (span,), (end,) = posted(make, written)
    assert (span.name, span.kind) == (f"send {topic}", SpanKind.PRODUCER)
    assert (span.parent, span.context.trace_id) == (fire_context(FIRE_ID), FIRE_ID)
    assert (span.links, span.error) == ((CONTEXT,), error)
    assert (end is End.DELIVERED) is (error is None)
    assert span.attributes.get("error.type") == error
    told = {name: span.attributes[name] for name in ("messaging.system", "belfry.attempt")}
    assert told == {"messaging.system": "kafka", "belfry.attempt": 2}
    assert span.attributes["messaging.destination.name"] == topic
    assert not [name for name in span.attributes if name.startswith(("http.", "url."))]


def test_a_dispatcher_traces_what_it_sends_to_targets_of_every_kind() -> None:
    tracer: Any = Tracer()
    transport: Any = None
    means = SenderDependencies(transport, Secrets({}), SystemClock(), 3, tracing=tracer)
    frames: Any = SimpleNamespace(request=b"", lifecycle=b"")
    deliverer = deliverer_of(Settings(), frames, None, means, UNCOUNTED)
    senders: Any = deliverer.dispatcher._senders
    sent = Sent("kafka:good", 1.0, 2.0, End.DELIVERED, 0, "")
    for sender in senders._by_kind.values():
        sender._finished(
            WorkId(1, 0, 0), work("kafka:good"), Answer(End.DELIVERED, "", sent=(sent,))
        )
    assert [each.name for each in tracer.spans] == ["send good"] * 2


@pytest.mark.parametrize("headers", [[], CONTEXT._replace(sampled=False).headers()])
def test_what_is_not_sampled_has_no_span(receiver: Receiver, headers: Headers) -> None:
    spans, ends = posted(here, work(receiver.url("/ok"), headers=headers))
    assert (spans, ends) == ([], [End.DELIVERED])


def test_what_is_not_posted_has_no_span(receiver: Receiver) -> None:
    event = work(receiver.url("/ok"))
    blocked = Work(
        event.key,
        event.value,
        event.event,
        event.headers,
        DeliveryState((HttpTarget(receiver.url("/ok")),), hosts=("example.com",)),
    )
    assert posted(here, blocked) == ([], [End.FINAL])
