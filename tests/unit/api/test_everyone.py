"""All other workers are asked at once; one that answers nothing useful is named."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel
from starlette.responses import Response

from belfry.api.workers import everyone
from belfry.api.workers.everyone import ask_others
from belfry.api.workers.internal_token import Target
from belfry.api.workers.peers import PeerUnreachable

ASKED = Target("GET", "/v1/x", "alone=true")


class Told(BaseModel):
    """What is asked for."""

    number: int


class Peers:
    """Workers that answer, each in its own way, by their addresses."""

    async def ask(self, url: str, target: Target, _caller: Any, _headers: Any) -> Response:
        assert target == ASKED
        if url == "away":
            raise PeerUnreachable("away")
        if url == "slow":
            await asyncio.sleep(60)
        status = 503 if url == "starting" else 200
        return Response(b'{"number": 7}' if url != "other form" else b'{"numbers": []}', status)


async def test_each_is_told_by_name_with_its_answer_or_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(everyone, "OTHERS_S", 0.05)
    places = ("mine", "well", "away", "slow", "starting", "other form", "")
    entries = [SimpleNamespace(worker=f"worker {each}", http=each) for each in places]
    view: Any = SimpleNamespace(
        identity=SimpleNamespace(worker_id="worker mine"),
        assignment_map=lambda: SimpleNamespace(entries=entries),
    )
    parts: Any = SimpleNamespace(peers=Peers())
    caller: Any = None
    assert await ask_others(view, parts, caller, ASKED, Told) == {
        "worker well": Told(number=7),
        **dict.fromkeys(f"worker {each}" for each in ("away", "slow", "starting", "other form")),
    }
