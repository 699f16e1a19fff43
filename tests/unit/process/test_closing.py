"""A process whose work is done ends, whatever hangs while it closes."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest
from structlog.testing import capture_logs

from belfry.process import closing
from belfry.process.closing import closed, stopped_once


class Ended(Exception):
    """In place of the end of the process of these tests."""


def end(code: int) -> None:
    raise Ended(code)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "end_now", end)
    monkeypatch.setattr(closing, "CLOSE_S", 0.05)


async def never() -> None:
    await asyncio.Event().wait()


def fails() -> None:
    raise ValueError("a bug")


def test_what_is_closed_in_time_is_waited_for() -> None:
    stopped: list[str] = []

    async def run() -> None:
        asked = asyncio.Event()
        sooner = asyncio.create_task(stopped_once(asked, lambda: stopped.append("deliveries")))
        await asyncio.sleep(0)
        assert stopped == []
        asked.set()
        stops = {"history": lambda: stopped.append("history")}
        await closed(stops, {"deliveries": sooner}, 0)

    asyncio.run(run())
    assert sorted(stopped) == ["deliveries", "history"]


def test_what_hangs_is_named_and_left_with_the_exit_code() -> None:
    go_on = Event()
    stops = {"history": bool, "front": lambda: go_on.wait(5)}

    async def run() -> None:
        try:
            await closed(stops, {"outputs": never()}, 7)
        finally:
            # What hangs in a thread is waited for at the end of a loop.
            go_on.set()

    with capture_logs() as said, pytest.raises(Ended, match="7"):
        asyncio.run(run())
    assert [each["parts"] for each in said] == [["front", "outputs"]]


def test_an_error_is_not_swallowed() -> None:
    with pytest.raises(ValueError, match="a bug"):
        asyncio.run(closed({"history": fails, "outputs": bool}, {}, 0))
