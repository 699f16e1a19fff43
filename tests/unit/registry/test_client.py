"""Every way a registry can answer, or not, has its own value."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import pytest

from belfry.registry.answers import (
    Missing,
    RegistryUnreachable,
    RegistryUnreachableError,
    SchemaRefusedError,
    Unusable,
)
from belfry.registry.client import Registry
from belfry.registry.schema_memory import MAX_MISSING, MISSING_S
from belfry.wire import catalogue
from belfry.wire.safety import MAX_SCHEMA_BYTES

BOMB = {
    "type": "record",
    "name": "A",
    "fields": [{"name": "x", "type": {"type": "array", "items": "null"}}],
}
Reply = tuple[int, bytes]


def reply(status: int, **body: Any) -> Reply:
    """A registry's JSON answer."""
    return status, json.dumps(body).encode()


class FakeRegistry:
    """Answers every request with `answer` and counts the requests."""

    def __init__(self) -> None:
        self.answer: Reply = reply(404, error_code=40403, message="Schema not found")
        self.asked: list[str] = []
        # Answers to the next requests, before `answer` is given again.
        self.first: list[Reply] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                self.rfile.read(length)
                fake.asked.append(f"{self.command} {self.path}")
                status, body = fake.first.pop(0) if fake.first else fake.answer
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_PUT = do_GET  # noqa: N815  # the names that http.server looks for

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    fake = FakeRegistry()
    yield fake
    fake.server.shutdown()
    fake.server.server_close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(fake: FakeRegistry, clock: Clock) -> Iterator[Registry]:
    registry = Registry(fake.url, clock=clock)
    yield registry
    registry.close()


def test_a_found_schema_is_asked_for_once(fake: FakeRegistry, registry: Registry) -> None:
    fake.answer = reply(200, schema=catalogue.text("ScheduleRequest"))
    assert registry.writer_schema(7) == catalogue.schema("ScheduleRequest")
    fake.answer = reply(500)
    assert registry.writer_schema(7) == catalogue.schema("ScheduleRequest")
    assert fake.asked == ["GET /schemas/ids/7"]


def test_a_missing_schema_is_asked_for_again_after_a_while(
    fake: FakeRegistry, registry: Registry, clock: Clock
) -> None:
    assert isinstance(registry.writer_schema(7), Missing)
    fake.answer = reply(200, schema=catalogue.text("ScheduleRequest"))
    clock.now += MISSING_S - 0.1
    assert isinstance(registry.writer_schema(7), Missing)
    assert len(fake.asked) == 1
    clock.now += 0.2
    assert isinstance(registry.writer_schema(7), dict)


def test_made_up_ids_do_not_fill_the_memory(registry: Registry) -> None:
    registry._memory._missing = {-number: (0.0, Missing("")) for number in range(MAX_MISSING)}
    assert isinstance(registry.writer_schema(1), Missing)
    assert len(registry._memory._missing) == 1


@pytest.mark.parametrize(
    "answer",
    [
        reply(500, error_code=50001, message="Error in the backend"),
        reply(503, error_code=503, message="later"),
        reply(401, error_code=401, message="who are you"),
        reply(403, error_code=403, message="no"),
        (404, b"<html>no registry here</html>"),
        (200, b"<html>a login page</html>"),
        (200, b"[]"),
    ],
    ids=["500", "503", "401", "403", "wrong path", "login page", "list"],
)
def test_whatever_is_no_answer_is_unreachable(
    fake: FakeRegistry, registry: Registry, answer: Reply
) -> None:
    fake.answer = answer
    assert isinstance(registry.writer_schema(7), RegistryUnreachable)
    fake.answer = reply(200, schema='"string"')
    assert not isinstance(registry.writer_schema(7), RegistryUnreachable)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply(200, schema=json.dumps(BOMB)), "repeats items"),
        (reply(200, schema="{"), "no JSON"),
        (reply(200, schema='"string"'), "no record"),
        (reply(200, schema='{"type": "rec"}'), "no valid Avro"),
        (reply(200, schema="[" * 5_000), "no JSON"),
        (reply(200, schema='"' + "x" * MAX_SCHEMA_BYTES + '"'), "characters"),
        (reply(200, schema="{}", schemaType="JSON"), "only Avro"),
        (reply(200, schema='syntax = "proto3";', schemaType="PROTOBUF"), "only Avro"),
        (
            reply(
                200,
                schema=catalogue.text("ScheduleRequest"),
                references=[{"name": "a", "subject": "b", "version": 1}],
            ),
            "refers to other schemas",
        ),
    ],
)
def test_what_is_not_decoded_with_is_unusable_for_ever(
    fake: FakeRegistry, registry: Registry, answer: Reply, words: str
) -> None:
    fake.answer = answer
    first = registry.writer_schema(7)
    assert isinstance(first, Unusable)
    assert words in first.reason
    assert registry.writer_schema(7) is first
    assert len(fake.asked) == 1


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        registry = Registry(f"http://127.0.0.1:{free.getsockname()[1]}")
    answer = registry.writer_schema(1)
    assert isinstance(answer, RegistryUnreachable)
    # Who tells of it says that the registry does not answer: the reason does not say it again.
    assert answer.reason.startswith("ConnectError")
    with pytest.raises(RegistryUnreachableError, match="check that it runs"):
        registry.register("s", "FiredEvent")
    registry.close()


def test_one_that_listens_and_is_silent_costs_the_time_out_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        registry = Registry(url, {"timeout": "0.3"})
        started = time.perf_counter()
        assert isinstance(registry.writer_schema(1), RegistryUnreachable)
        assert 0.2 < time.perf_counter() - started < 2
        registry.close()


def test_a_guid_is_asked_for_as_text(fake: FakeRegistry, registry: Registry) -> None:
    guid = UUID("c7d0d4a0-5a1f-4e8f-9a55-2f1c6f3f9d10")
    fake.answer = reply(200, schema=catalogue.text("TenantPolicy"), guid=str(guid), id=4)
    assert registry.writer_schema_by_guid(guid.bytes) == catalogue.schema("TenantPolicy")
    assert fake.asked == [f"GET /schemas/guids/{guid}"]


def test_a_registry_without_guids_knows_none(fake: FakeRegistry, registry: Registry) -> None:
    fake.answer = (404, b"")
    answer = registry.writer_schema_by_guid(b"\x00" * 16)
    assert isinstance(answer, Missing)
    assert "00000000-0000-0000-0000-000000000000" in answer.reason


def test_a_refusal_says_why(fake: FakeRegistry, registry: Registry) -> None:
    fake.answer = reply(409, error_code=409, message="field boom has no default")
    with pytest.raises(SchemaRefusedError, match="TenantPolicy under t-value: field boom"):
        registry.register("t-value", "TenantPolicy")


def test_credentials_are_not_shown(fake: FakeRegistry) -> None:
    registry = Registry(fake.url.replace("//", "//me:secret@"))
    fake.answer = reply(401, error_code=401, message="no")
    with pytest.raises(RegistryUnreachableError, match="credentials") as raised:
        registry.check("t-value", "TenantPolicy")
    assert "secret" not in str(raised.value)
    registry.close()


def test_an_id_to_write_with_is_asked_for_once(
    fake: FakeRegistry, registry: Registry, clock: Clock
) -> None:
    assert registry.id_for_writing("t-value", "FiredEvent", may_register=False) is None
    assert registry.id_for_writing("t-value", "FiredEvent", may_register=False) is None
    assert len(fake.asked) == 1
    clock.now += MISSING_S + 1
    fake.answer = reply(200, id=9, subject="t-value", version=1, schema='"string"')
    assert registry.id_for_writing("t-value", "FiredEvent", may_register=False) == 9
    clock.now += 10 * MISSING_S
    assert registry.id_for_writing("t-value", "FiredEvent", may_register=False) == 9
    assert len(fake.asked) == 2


@pytest.mark.parametrize("now", ["FULL_TRANSITIVE", "BACKWARD", None])
def test_a_level_that_another_worker_sets_at_that_moment_is_no_refusal(
    fake: FakeRegistry, registry: Registry, now: str | None
) -> None:
    """Both find none, both set it, and the registry refuses the second one."""
    absent = reply(404, error_code=40408, message="no level of its own")
    refused = reply(409, error_code=409, message="A rule named 'COMPATIBILITY' already exists.")
    fake.first = [absent, refused]
    fake.answer = absent if now is None else reply(200, compatibilityLevel=now)
    if now == "FULL_TRANSITIVE":
        registry.ensure_compatibility("t-value")
    else:
        with pytest.raises(SchemaRefusedError, match="already exists"):
            registry.ensure_compatibility("t-value")
    assert [each.split(" ")[0] for each in fake.asked] == ["GET", "PUT", "GET"]
