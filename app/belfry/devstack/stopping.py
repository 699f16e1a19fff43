"""Stop requests as a flag that loops look at, instead of exceptions out of nowhere.

An exception raised by a signal handler could come between the start of a child and the moment it
is known, and the child would be forgotten.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# SIGHUP: the terminal was closed.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self._made = False

    def made(self) -> bool:
        """Whether a stop signal came in."""
        return self._made

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take stop signals as requests within the context (main thread only)."""
        before = {one: signal.signal(one, self._note) for one in STOP_SIGNALS}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        self._made = True
