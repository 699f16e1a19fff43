"""The input of a child process: frames on their way to its standard input.

A thread of its own writes them, so that a caller never waits for a child that does not read. A
child is killed if it does not read for `WEDGED_S` while frames wait; the parent's reader then sees
its end. The caller bounds the memory: a dispatcher has so many deliveries and bytes under way at
most.
"""

from __future__ import annotations

import os
import select
from collections import deque
from contextlib import suppress
from subprocess import Popen
from threading import Condition, Thread
from typing import Final

import structlog

from belfry.delivery.sender_process import framed

WEDGED_S: Final = 30.0

log = structlog.get_logger(__name__)


class SenderInput:
    """Frames for one child, written in the order in which they were put in."""

    def __init__(self, child: Popen[bytes], orders: bytes) -> None:
        """The child's standard input is a pipe, and from now on this object's alone.

        `orders` is the first frame, before all others.
        """
        assert child.stdin is not None, "the child reads from a pipe"
        self._child, self._pipe, self._orders = child, child.stdin, framed(orders)
        self._frames: deque[bytes] = deque()
        self._closed = False
        self._changed = Condition()
        os.set_blocking(self._pipe.fileno(), False)
        self._thread = Thread(target=self._run, name="belfry-sender-input", daemon=True)
        self._thread.start()

    def put(self, frame: bytes) -> None:
        """Have a frame written; returns at once, whether or not the child reads."""
        with self._changed:
            if not self._closed:
                self._frames.append(framed(frame))
                self._changed.notify()

    def replace(self, frame: bytes) -> None:
        """Have a frame written instead of all those that wait for the child."""
        with self._changed:
            self._frames.clear()
            self.put(frame)

    def close(self) -> None:
        """End the child's input; frames that still wait are dropped."""
        with self._changed:
            self._closed = True
            self._frames.clear()
            self._changed.notify()

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        """The thread: write the orders, then frames, until the input is closed or the child has
        ended.
        """
        # If the child has ended, the thread that reads its answers notices.
        with suppress(OSError), self._pipe:
            self._write(self._orders)
            while (frame := self._next()) is not None:
                self._write(frame)
        self.close()

    def _next(self) -> bytes | None:
        with self._changed:
            self._changed.wait_for(lambda: self._frames or self._closed)
            return None if self._closed else self._frames.popleft()

    def _write(self, frame: bytes) -> None:
        """Write one frame whole, or kill a child that does not read."""
        number, left = self._pipe.fileno(), memoryview(frame)
        room = select.poll()
        room.register(number, select.POLLOUT)
        while left:
            if not room.poll(WEDGED_S * 1000):
                log.warning("the process that posts reads nothing: killed", seconds=WEDGED_S)
                self._child.kill()
                return
            with suppress(BlockingIOError):
                left = left[os.write(number, left) :]
