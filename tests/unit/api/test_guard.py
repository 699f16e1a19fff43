"""The door: hosts, origins, sizes, how many at once, and how quick one caller may be."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from belfry.api.problem_answers import problem_response
from belfry.api.problems import Problem
from belfry.api.server.guard import Guard
from belfry.api.server.limits import MANY, WITHIN_S, PortLimits, Traffic

LIMITS = PortLimits(
    hosts=frozenset({"belfry.example"}),
    origins=frozenset({"https://page.example"}),
    body_bytes=10,
    bulk_bytes=20,
    unwanted_bytes=40,
    under_way=1,
    body_s=0.05,
    answer_s=0.2,
)


class Door:
    """An application that reads its body behind a guard, and may wait."""

    def __init__(self, limits: PortLimits = LIMITS) -> None:
        self.traffic = Traffic()
        self.guard = Guard(self._app, limits, self.traffic)
        self.waits = asyncio.Event()
        self.waits.set()
        self.path = ""
        self.unread = 0
        self.asked_for = 0

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.path = scope["path"]
        try:
            await Request(scope, receive).body()
        except Problem as problem:
            await problem_response(problem, scope["path"])(scope, receive, send)
            return
        await self.waits.wait()
        await PlainTextResponse("ok")(scope, receive, send)

    async def ask(self, *parts: bytes | None, path: str = "/v1/x", **headers: str) -> int:
        """The status for a body that comes in parts; None is a part that does not come."""
        given = list(parts) or [b""]
        sent: list[Message] = []

        async def receive() -> Message:
            self.asked_for += 1
            if not given or given[0] is None:
                await asyncio.sleep(10)
            part = given.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(given)}

        async def send(message: Message) -> None:
            sent.append(message)

        named = {"host": "localhost", **{k.replace("_", "-"): v for k, v in headers.items()}}
        if parts and "content-length" not in named:
            named["transfer-encoding"] = "chunked"
        scope: Any = {
            "type": "http",
            "method": "POST",
            "path": "/decoded",
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(k.lower().encode(), v.encode()) for k, v in named.items()],
        }
        scope["path"] = path if "%" not in path else path.replace("%2F", "/")
        await self.guard(scope, receive, send)
        self.unread = len(given)
        return int(sent[0]["status"])


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "belfry.example:8700"}, 200),
        ({"host": "other.example"}, 421),
        ({"host": "localhost:" + "0" * 300}, 421),
        ({"host": "localhost", "Host": "localhost"}, 400),
        ({"origin": "http://localhost"}, 200),
        ({"origin": "https://page.example"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"content_length": "11"}, 413),
        ({"content_length": "-1"}, 413),
        ({"content_length": "11", "content_type": "application/x-ndjson; a=b"}, 200),
        ({"content_length": "21", "content_type": "application/x-ndjson"}, 413),
    ],
)
async def test_who_and_how_much(door: Door, headers: dict[str, str], status: int) -> None:
    assert await door.ask(**headers) == status


async def test_a_body_is_counted_as_it_comes(door: Door) -> None:
    assert await door.ask(b"12345", b"67890") == 200
    assert await door.ask(b"12345", b"678901") == 413


async def test_what_is_refused_is_read_first(door: Door) -> None:
    assert await door.ask(b"12345", b"678901", b"2345") == 413
    assert door.unread == 0
    assert await door.ask(b"12345678901", b"2345", host="other.example") == 421
    assert door.unread == 0


async def test_no_body_is_waited_for_where_none_was_announced(door: Door) -> None:
    assert await door.ask(host="other.example") == 421
    assert door.asked_for == 0


async def test_only_so_much_is_read_in_vain(door: Door) -> None:
    assert await door.ask(*[b"0123456789"] * 9, content_length="90") == 413
    assert door.unread == 4
    assert await door.ask(b"12345678901", content_length="11", expect="100-continue") == 413
    assert door.unread == 1
    assert await door.ask(b"1", None, content_length="11") == 413


async def test_a_body_that_does_not_come_is_not_waited_for(door: Door) -> None:
    assert await door.ask(b"1", None) == 408


async def test_only_so_many_are_under_way(door: Door) -> None:
    door.waits.clear()
    first = asyncio.create_task(door.ask())
    await asyncio.sleep(0.01)
    assert await door.ask() == 503
    door.waits.set()
    assert await first == 200
    assert await door.ask() == 200


async def test_bodies_under_way_are_counted_together() -> None:
    door = Door(replace(LIMITS, under_way=10, bodies_bytes=15, answer_s=5))
    door.waits.clear()
    first = asyncio.create_task(door.ask(b"12345", b"67890"))
    await asyncio.sleep(0.01)
    assert await door.ask(b"123", b"456") == 503
    assert door.unread == 0
    second = asyncio.create_task(door.ask(b"12345"))
    await asyncio.sleep(0.01)
    assert await door.ask(b"1") == 503
    door.waits.set()
    assert [await first, await second] == [200, 200]
    assert await door.ask(b"12345", b"67890") == 200


async def test_a_body_that_is_alone_has_its_own_limit_only() -> None:
    door = Door(replace(LIMITS, bodies_bytes=5))
    assert await door.ask(b"12345", b"67890") == 200


async def test_an_answer_that_does_not_come_is_told(door: Door) -> None:
    door.waits.clear()
    assert await door.ask() == 503


async def test_slashes_within_a_name_stay_encoded(door: Door) -> None:
    await door.ask(path="/v1/a%2Fb/c")
    assert door.path == "/v1/a%2Fb/c"


def test_calls_are_many_from_so_many_in_so_short_a_time_on() -> None:
    traffic = Traffic()
    assert not traffic.many(0.0)
    for number in range(MANY):
        assert not traffic.many(10.0)
        traffic.began(10.0 + number * WITHIN_S / MANY)
    assert traffic.many(10.0 + WITHIN_S * 0.99)
    # Those that wait for their answers are no more than they were.
    assert traffic.calls == MANY
    assert not traffic.many(10.0 + WITHIN_S)


async def test_each_call_through_the_guard_counts_once(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belfry.api.server.guard.monotonic", lambda: 10.0)
    for _ in range(MANY):
        assert not door.traffic.many(10.0)
        await door.ask()
    assert door.traffic.many(10.0)
    assert door.traffic.calls == 0


async def test_a_call_without_an_answer_is_told_that_the_worker_stops(door: Door) -> None:
    door.waits.clear()
    asked = asyncio.create_task(door.ask())
    await asyncio.sleep(0.01)
    asked.cancel("the port closes")
    assert await asked == 503
