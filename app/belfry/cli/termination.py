"""SIGTERM while output is not whole yet: it is finished, and then the signal ends the process.

    12:00:00.000  `[`, and records as they come
    12:00:01.300  SIGTERM     `Terminated` is raised, as Ctrl-C raises KeyboardInterrupt
    12:00:01.301  `]`         the block ends
    12:00:01.302              the process ends by the signal, as if it had done so at once

A second SIGTERM ends the process where it stands.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(BaseException):
    """SIGTERM has come.  No error: nothing but `ended_after` may catch it."""


@contextmanager
def ended_after() -> Iterator[None]:
    """Let SIGTERM end the process once this block has been left.

    It does nothing in another thread than the main one, which alone hears of signals, and where the
    command minds SIGTERM itself.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    try:
        signal.signal(signal.SIGTERM, _terminate)
        yield
    except Terminated:
        signal.raise_signal(signal.SIGTERM)
        raise
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise Terminated
