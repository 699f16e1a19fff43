"""Copies for a topic that has no leader: they hold up nobody but one another."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.api.problems import Problem
from belfry.api.routes.dry_runs import MOST, DryRuns

COPY: Any = ("orders", b"key", None, b"value", [])


class Offline:
    """Stands for the request client of a worker whose broker does not answer."""

    def __init__(self) -> None:
        self.answers = threading.Event()

    def copy(self, _copy: Any, _mark: Any) -> Any:
        self.answers.wait(5)
        return SimpleNamespace(topic=lambda: "t", partition=lambda: 0, offset=lambda: 7)


async def test_copies_that_wait_hold_up_nobody_else() -> None:
    desk = Offline()
    parts: Any = SimpleNamespace(ready=SimpleNamespace(request_client=desk))
    runs: Any = DryRuns(parts, SimpleNamespace())  # type: ignore[arg-type]
    waiting = [asyncio.create_task(runs._written(COPY)) for _ in range(MOST)]
    await asyncio.sleep(0.05)
    async with asyncio.timeout(0.5):
        assert await asyncio.to_thread(lambda: "the loop's own threads are free")
    with pytest.raises(Problem) as refused:
        await runs._written(COPY)
    assert refused.value.status == 503
    desk.answers.set()
    assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [200] * MOST
