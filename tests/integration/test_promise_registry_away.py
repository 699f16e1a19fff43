"""A registry that is away holds up what needs it, and nothing else.

tenant `needs`    a schema nobody has asked for yet ──── waits ──── fires when it is back
the same tenant   pending events ──────────────────── fire on time
tenant `knows`    a schema that is known, another partition ─── accepted, fires
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from belfry.devstack import Stack
from belfry.wire import framing
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
    patient = {"SCHEMA_REGISTRY_URL": url, "REGISTRY_WAIT_MS": "60000"}
    with Site(stack.bootstrap_servers, unique("away"), tmp_path, **patient) as site:
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


@contextmanager
def silent_port() -> Iterator[str]:
    """The address of a registry that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_who_waits_too_long_is_told(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """After the limit requests are refused, not lost; no number of them holds up others at all.

    What shows the same name waits behind them, for the limit at most, since order asks for that.

    A batch used to wait for all of its ids at once, and forgot the first answers meanwhile: five
    records kept a partition's requests waiting for ever.
    """
    with silent_port() as url:
        away = {"SCHEMA_REGISTRY_URL": url, "REGISTRY_WAIT_MS": "1500"}
        with Site(kafka, unique("gone"), tmp_path, **away) as site:
            site.worker().start().wait_ready()
            begun_ms = now_ms()
            for number in range(6):
                value = framing.prefix(7 + number) + request_body("t", "x", at=begun_ms)
                site.send(value, key=b"t")
            site.ask("t", "behind", at=begun_ms, payload=b"behind")
            (behind,) = site.wait_fired("t", 1)
            assert behind.value == b"behind"
            assert behind.timestamp_ms - begun_ms < 1_500 + ON_TIME_MS
            for number in range(40):
                value = framing.prefix(100 + number) + request_body("t", "x", at=begun_ms)
                site.send(value, key=b"t")
            begun_ms = now_ms()
            site.ask("u", "at once", at=begun_ms, payload=b"at once")
            site.ask("t", "behind them", at=begun_ms, payload=b"behind them")
            (at_once,) = site.wait_fired("u", 1)
            assert at_once.timestamp_ms - begun_ms < ON_TIME_MS
            _, behind = site.wait_fired("t", 2)
            assert behind.timestamp_ms - begun_ms < 1_500 + ON_TIME_MS
            refused = site.rejected()
            codes = {each.header("belfry-error-code") for each in refused}
            assert (len(refused), codes) == (46, {b"schema_unavailable"})
