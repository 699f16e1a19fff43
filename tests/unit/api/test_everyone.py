"""All other workers are asked at once; one that answers nothing useful is named."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel
from starlette.responses import Response

from belfry.api.auth.principal import ANYBODY, Principal, Role
from belfry.api.json.worker_answers import RememberedAnswer
from belfry.api.workers import everyone, last_answers
from belfry.api.workers.everyone import ask_others
from belfry.api.workers.internal_token import Target
from belfry.api.workers.last_answers import REMEMBERED_MS, LastAnswers
from belfry.api.workers.peers import PeerUnreachable

ASKED = Target("GET", "/v1/x", "alone=true")


class Told(BaseModel):
    """What is asked for."""

    number: int


class Peers:
    """Workers that answer, each in its own way, by their addresses; `late` once it may."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers = asyncio.Event()
        self.now_ms = 0.0

    async def ask(self, url: str, target: Target, _caller: Any, _headers: Any) -> Response:
        assert target == ASKED
        if url == "away":
            raise PeerUnreachable("away")
        self.asked.append(url)
        if url == "slow":
            await asyncio.sleep(60)
        if url == "late":
            await self.answers.wait()
        status = 503 if url == "starting" else 200
        return Response(b'{"number": 7}' if url != "other form" else b'{"numbers": []}', status)


def group(*places: str) -> tuple[Any, Any]:
    """The view of worker `mine` beside these, and its parts."""
    entries = [SimpleNamespace(worker=f"worker {each}", http=each) for each in ("mine", *places)]
    view: Any = SimpleNamespace(
        identity=SimpleNamespace(worker_id="worker mine"),
        assignment_map=lambda: SimpleNamespace(entries=entries),
    )
    peers = Peers()
    parts: Any = SimpleNamespace(
        peers=peers, last_answers=LastAnswers(), now_ms=lambda: peers.now_ms
    )
    return view, parts


async def test_each_is_told_by_name_with_its_answer_or_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(everyone, "OTHERS_S", 0.05)
    view, parts = group("well", "away", "slow", "starting", "other form", "")
    found = await ask_others(view, parts, ANYBODY, ASKED, Told)
    assert found.told == {"worker well": Told(number=7)}
    silent = [f"worker {each}" for each in ("away", "slow", "starting", "other form")]
    assert (found.silent, found.remembered) == (silent, [])


async def test_who_asks_at_once_gets_what_is_known_and_since_when(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(last_answers, "AT_ONCE_S", 0.05)
    monkeypatch.setattr(everyone, "OTHERS_S", 0.2)
    view, parts = group("well", "late")
    ask = partial(ask_others, view, parts, ANYBODY, ASKED, Told, at_once=True)
    # Nothing is known of it yet, so its time is waited for.
    found = await ask()
    assert (list(found.told), found.silent) == (["worker well"], ["worker late"])
    # Now that it is known to be silent, it is not: it is asked once at a time.
    parts.peers.asked.clear()
    await asyncio.gather(ask(), ask())
    assert sorted(parts.peers.asked) == ["late", "well"]
    parts.peers.answers.set()
    assert (await ask()).silent == []
    # Now it hangs, and is shown as it answered then.
    parts.peers.answers.clear()
    parts.peers.now_ms = 60_000
    found = await ask()
    assert found.told["worker late"] == Told(number=7)
    assert found.silent == ["worker late"]
    assert found.remembered == [
        RememberedAnswer(worker_id="worker late", at="1970-01-01T00:00:00.000Z")
    ]
    # Others may see less, and what is too old is not shown.
    other = Principal("shop", ("shop",), Role.READ)
    assert (await ask_others(view, parts, other, ASKED, Told, at_once=True)).told.keys() == {
        "worker well"
    }
    parts.peers.now_ms = REMEMBERED_MS + 1
    assert (await ask()).told.keys() == {"worker well"}


async def remembered_of(*questions: tuple[int, str], size: int = 2) -> list[tuple[Any, Any]]:
    """The questions whose answers, of so many bytes, are remembered of these."""
    remembered = LastAnswers()

    async def answer() -> bytes:
        return bytes(size)

    for question in questions:
        await remembered.soon(question, answer, lambda: 0.0)
    assert remembered._under_way == {}
    return list(remembered._answers)


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [(number, "greedy") for number in range(5)]
    monkeypatch.setattr(last_answers, "MOST_BYTES_IN_SUM", 3_000)
    assert await remembered_of(*pages, size=1_000) == pages[3:]
    monkeypatch.setattr(last_answers, "MOST", 2)
    assert await remembered_of(*pages) == pages[3:]


async def test_who_asks_for_many_pages_has_no_other_answer_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(last_answers, "MOST", 3)
    pages = [(number, "greedy") for number in range(9)]
    assert await remembered_of((0, "other"), *pages) == [(0, "other"), *pages[7:]]
