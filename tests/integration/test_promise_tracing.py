"""Spans of a call, its request, wait, fire and webhook arrive at a collector by OTLP.

What docs/tracing.md says of their parents and links is what is looked for here.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from belfry.client.kafka import Cluster
from belfry.client.tenants import TenantPolicies
from belfry.tenants.policy import TenantPolicy
from belfry.wire.trace_context import TraceContext
from tests.acceptance.harness.collector import Collector
from tests.acceptance.harness.http import Http, schedules
from tests.acceptance.harness.receiver import Receiver
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = pytest.mark.slow

CONTEXT = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
CLIENT, SERVER, PRODUCER, CONSUMER = 3, 2, 4, 5


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.fixture(scope="module")
def site(
    kafka: str, collector: Collector, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    name = f"traces-{uuid.uuid4().hex[:8]}"
    more = {"OTLP_URL": collector.url, "WEBHOOK_PRIVATE_NETWORKS": '["127.0.0.0/8"]'}
    with Site(kafka, name, tmp_path_factory.mktemp("traces"), **more) as site:
        site.worker().start().wait_ready()
        yield site


def test_a_call_leads_to_a_request_and_from_there_to_fire_and_webhook(
    site: Site, collector: Collector
) -> None:
    with Receiver() as receiver:
        body = {
            "schedule_id": "a",
            "delay_ms": 1_000,
            "payload_text": "x",
            "http_targets": [{"url": receiver.url("/ok")}],
        }
        traceparent = CONTEXT.headers()[0][1] or b""
        http = Http(site.workers[0])
        status, _, _ = http("POST", schedules("web"), body, traceparent=traceparent.decode())
        assert status == 201
        (record,) = site.wait_fired("web", 1)
        (post,) = [s for s in collector.wait(4, belfry_tenant="web") if s.kind == CLIENT]
        (call,) = collector.wait(1, http_route="/v1/tenants/{tenant}/schedules")
        assert [each.headers["traceparent"] for each in receiver.at("/ok")] == [
            f"00-{CONTEXT.trace_id}-{call.span_id}-01"
        ]
    fire_id = (record.header("belfry-fire-id") or b"").decode()
    assert (call.kind, call.trace_id, call.parent) == (SERVER, *CONTEXT[:2])
    process, wait, send, _ = collector.spans(belfry_tenant="web")
    assert (process.kind, process.trace_id, process.parent) == (
        CONSUMER,
        CONTEXT.trace_id,
        call.span_id,
    )
    assert process.attributes["belfry.outcome"] == "ACCEPTED"
    assert send.kind == PRODUCER
    for span in (wait, send, post):
        assert (span.trace_id, span.links) == (fire_id, [(CONTEXT.trace_id, call.span_id)])
    assert (wait.parent, send.parent, post.parent) == ("", wait.span_id, send.span_id)
    assert wait.ended_ns - wait.began_ns >= 990 * 10**6
    assert (record.header("traceparent") or b"").decode().split("-")[1:3] == [
        CONTEXT.trace_id,
        call.span_id,
    ]


def test_a_record_is_traced_by_its_own_header_and_a_refused_one_fails(
    site: Site, collector: Collector
) -> None:
    named = [("belfry-tenant", b"raw"), ("belfry-id", b"r"), *CONTEXT.headers()]
    site.send(b"v", headers=[*named, ("belfry-in", b"never")])
    site.send(b"v", headers=[*named, ("belfry-in", b"1s")])
    unsampled = CONTEXT._replace(sampled=False).headers()
    site.send(b"v", headers=[named[0], ("belfry-id", b"u"), *unsampled, ("belfry-in", b"1s")])
    site.wait_fired("raw", 2)
    refused, taken, wait, send = collector.wait(4, belfry_tenant="raw")
    assert (refused.failed, refused.attributes["belfry.outcome"]) == (True, "REJECTED")
    assert refused.attributes["error.type"] == "bad_header"
    assert (taken.failed, taken.attributes["messaging.destination.name"]) == (
        False,
        site.topic("schedules"),
    )
    assert [each.links for each in (wait, send)] == [[CONTEXT[:2]]] * 2
    counted = Http(site.workers[0])("GET", "/metrics")[1].decode()
    told = dict(line.rsplit(" ", 1) for line in counted.splitlines() if line[:1] != "#")
    assert float(told['belfry_spans_total{outcome="exported"}']) >= 4
    assert told['belfry_spans_total{outcome="dropped"}'] == "0.0"


def test_a_record_for_a_topic_that_is_a_target_is_a_span_of_its_fire(
    site: Site, collector: Collector, kafka: str
) -> None:
    target = f"{uuid.uuid4().hex[:8]}.target"
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(target, 1, 1)])[target].result(20)
    policies = TenantPolicies(Cluster(site.bootstrap), site.prefix)
    policies.put(TenantPolicy("toped", allowed_hosts=(f"kafka:{target}",)))
    address, asked = [{"url": f"kafka:{target}"}], count()

    def taken() -> bool:
        # A policy is in effect within two seconds; until then the request is refused.
        name, later = f"t{next(asked)}", now_ms() + 86_400_000
        site.ask("toped", "probe", at=later, http_targets=address, request_id=name)
        return bool(site.outcome(name)["outcome"] == "ACCEPTED")

    wait_for("the policy", taken)
    headers = [{"name": name, "value": value} for name, value in CONTEXT.headers()]
    site.ask("toped", "told", at=now_ms() + 500, http_targets=address, headers=headers)
    (record,) = wait_for("the record", lambda: site.read(target))
    fire_id = (record.header("belfry-fire-id") or b"").decode()
    *_, sent = collector.wait(4, belfry_tenant="toped")
    assert (sent.kind, sent.trace_id, sent.links) == (PRODUCER, fire_id, [CONTEXT[:2]])
    assert (sent.parent, sent.failed) == (fire_id[16:], False)
    assert sent.attributes["messaging.destination.name"] == target


def test_a_collector_that_is_away_delays_no_fire(
    kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name = f"untraced-{uuid.uuid4().hex[:8]}"
    more = {"OTLP_URL": "http://127.0.0.1:9", "OTLP_QUEUE_SPANS": "100"}
    with Site(kafka, name, tmp_path_factory.mktemp("untraced"), **more) as site:
        site.worker().start().wait_ready()
        due_ms = now_ms() + 4_000
        for number in range(500):
            headers: Any = [
                ("belfry-tenant", b"flood"),
                ("belfry-id", b"%d" % number),
                ("belfry-at", b"%d" % due_ms),
                *CONTEXT.headers(),
            ]
            site.producer.produce(site.topic("schedules"), b"v", headers=headers)
        site.producer.flush(20)
        records = site.wait_fired("flood", 500)
        assert max(each.timestamp_ms for each in records) - due_ms < 2_000

        def dropped() -> bool:
            counted = Http(site.workers[0])("GET", "/metrics")[1].decode()
            told = dict(line.rsplit(" ", 1) for line in counted.splitlines() if line[:1] != "#")
            return float(told['belfry_spans_total{outcome="dropped"}']) > 0

        wait_for("dropped spans", dropped)
