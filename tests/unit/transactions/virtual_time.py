"""Coroutines in virtual time: the clock goes on when everybody waits, so nothing takes long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop whose clock goes on when everybody waits."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self
        self._clock_resolution = 1e-6
        self._at_s = 0.0

    def time(self) -> float:
        return self._at_s

    def select(self, timeout_s: float | None) -> list[Any]:
        assert timeout_s is not None, "a coroutine waits for nothing that could come"
        self._at_s += timeout_s
        return []

    def _process_events(self, _events: Any) -> None:
        """There are none."""


def in_virtual_time(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it to its end; seconds begin at 0."""
    loop = VirtualLoop()
    try:
        loop.run_until_complete(work())
    finally:
        loop.close()
