"""A registry that is away holds up what needs it, and nothing else.

tenant `needs`    a schema nobody has asked for yet ──── waits ──── fires when it is back
the same tenant   pending events ──────────────────── fire on time
tenant `knows`    a schema that is known, another partition ─── accepted, fires
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from belfry.devstack import Stack
from tests.acceptance.harness.requests import REQUEST_TEXT, request, request_body
from tests.acceptance.harness.site import Site, now_ms

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

ON_TIME_MS = 1_500


def register(url: str, subject: str, text: str) -> bytes:
    """Register a schema; the prefix of its records."""
    with SchemaRegistryClient({"url": url}) as client:
        schema_id: int = client.register_schema(subject, Schema(text, "AVRO"))
    return b"\0" + schema_id.to_bytes(4, "big")


def with_a_field_of_tomorrow() -> str:
    """A writer's schema that differs from ours, and is registered under an id of its own."""
    schema: dict[str, Any] = json.loads(REQUEST_TEXT)
    schema["fields"].append({"name": "tomorrow", "type": "null", "default": None})
    return json.dumps(schema)


def two_tenants_apart(site: Site) -> tuple[str, str]:
    """Two tenants whose homes are different partitions."""
    homes: dict[int, str] = {}
    for number in range(20):
        tenant = f"t{number}"
        homes[site.ask(tenant, "home", at=now_ms() + 3_600_000).partition()] = tenant
    first, second, *_ = homes.values()
    return first, second


def test_only_those_who_need_it_wait(
    stack: Stack, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    url = stack.schema_registry_url
    with Site(stack.bootstrap_servers, unique("away"), tmp_path, SCHEMA_REGISTRY_URL=url) as site:
        site.schedules_topic()
        needs, knows = two_tenants_apart(site)
        site.fired_topics([needs, knows])
        site.worker().start().wait_ready()
        known = register(url, f"{site.name}-1", REQUEST_TEXT)
        fresh = register(url, f"{site.name}-2", with_a_field_of_tomorrow())
        warm = known + request_body(knows, "warm", at=now_ms(), payload=b"warm")
        site.send(warm, key=knows.encode())
        site.wait_fired(knows, 1)
        pending = [now_ms() + 3_000 + 500 * number for number in range(6)]
        for due_ms in pending:
            value = request(needs, f"p{due_ms}", at=due_ms, payload=b"%d" % due_ms)
            site.send(value, key=needs.encode())
        stack.registry.stop()
        try:
            asked = fresh + request_body(needs, "waits", at=now_ms(), payload=b"waits")
            site.send(asked, key=needs.encode())
            due_ms = now_ms() + 500
            value = known + request_body(knows, "goes on", at=due_ms, payload=b"goes on")
            site.send(value, key=knows.encode())
            _, gone_on = site.wait_fired(knows, 2, timeout_s=5)
            assert gone_on.timestamp_ms - due_ms < ON_TIME_MS
            fired = site.wait_fired(needs, len(pending), timeout_s=12)
            late_ms = [record.timestamp_ms - int(record.value or b"0") for record in fired]
            assert 0 <= min(late_ms) <= max(late_ms) < ON_TIME_MS
        finally:
            stack.registry.start()
            stack.registry.wait_ready(60)
        found = site.wait_fired(needs, len(pending) + 1, timeout_s=30)
        assert b"waits" in {record.value for record in found}
        assert not site.rejected()


def test_who_waits_too_long_is_told(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """After the limit a request is refused, not lost, and those behind it go on."""
    away = {"SCHEMA_REGISTRY_URL": "http://127.0.0.1:9", "REGISTRY_WAIT_MS": "1500"}
    with Site(kafka, unique("gone"), tmp_path, **away) as site:
        site.worker().start().wait_ready()
        site.send(b"\0\0\0\0\7" + request_body("t", "x", at=now_ms()), key=b"t")
        site.ask("t", "behind", at=now_ms(), payload=b"behind")
        assert [record.value for record in site.wait_fired("t", 1)] == [b"behind"]
        (refused,) = site.rejected()
        assert refused.header("belfry-error-code") == b"schema_unavailable"
