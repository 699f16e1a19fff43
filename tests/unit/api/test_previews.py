"""Previews cost a bounded time, in a few threads of their own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from threading import Event
from time import monotonic, sleep
from typing import Any

import pytest
from fastapi import FastAPI

from belfry.api.routes import previews
from belfry.schedules.preview import Preview

ASKED = {"cron": "0 0 29 2 SUN#5", "count": 1000}


class Slow:
    """A preview that goes on for as long as it is let."""

    def __init__(self) -> None:
        self.begun = 0
        self.stopped = Event()

    def __call__(self, *_: Any, goes_on: Callable[[], bool]) -> Preview:
        self.begun += 1
        while goes_on():
            sleep(0.005)
        self.stopped.set()
        return Preview("slow", "UTC", [], [])


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    found = Slow()
    monkeypatch.setattr(previews, "preview", found)
    monkeypatch.setattr(previews, "LOOK_S", 0.02)
    return found


async def ask(app: FastAPI, wait_s: float) -> int:
    """Ask for a preview, and go away after this time; the status of the answer, 0 for none."""
    asked = json.dumps(ASKED).encode()
    messages = [{"type": "http.request", "body": asked, "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        if messages:
            return messages.pop()
        # As uvicorn does: who has gone is told of without a wait.
        if wait_s:
            await asyncio.sleep(wait_s)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    head = {"host": "localhost", "content-type": "application/json"}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/v1/preview",
        "raw_path": b"/v1/preview",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [
            *((name.encode(), value.encode()) for name, value in head.items()),
            (b"content-length", str(len(asked)).encode()),
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8700),
    }
    await app(scope, receive, send)
    return int(sent[0]["status"]) if sent else 0


async def test_previews_have_a_few_threads_and_an_end(
    app: FastAPI, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "LONGEST_S", 0.5)
    found = sorted(await asyncio.gather(*(ask(app, 60) for _ in range(8))))
    assert found == [200] * previews.MOST + [503] * (8 - previews.MOST)
    assert slow.begun == previews.MOST


async def test_a_preview_ends_when_its_caller_has_gone(app: FastAPI, slow: Slow) -> None:
    """The connection ends while the preview is made; it does not go on for its 2 s."""
    began_s = monotonic()
    await ask(app, 0)
    assert slow.stopped.wait(1)
    assert monotonic() - began_s < 1.5
