"""Time for tests of what waits: it runs only while a loop has nothing else to do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest


class SkippedTime:
    """A loop's clock, in seconds; a pause of the loop moves it and takes no time."""

    def __init__(self, loop: Any) -> None:
        self.now = 1_000.0
        self._select = loop._selector.select

    def time(self) -> float:
        """What the loop takes for now."""
        return self.now

    def select(self, timeout: float | None) -> Any:
        """What has come; where nothing has, the time until the next timer is over."""
        found = self._select(None if timeout is None else 0)
        if not found and timeout is not None:
            self.now += max(timeout, 0)
        return found


@pytest.fixture
async def skipped_time(monkeypatch: pytest.MonkeyPatch) -> SkippedTime:
    """The test's loop waits for nothing; only for tests without threads."""
    loop: Any = asyncio.get_running_loop()
    skipped = SkippedTime(loop)
    monkeypatch.setattr(loop._selector, "select", skipped.select)
    monkeypatch.setattr(loop, "time", skipped.time)
    return skipped
