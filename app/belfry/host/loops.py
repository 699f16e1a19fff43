"""A loop without a thread of its own: it pauses most of the time, and runs turns when they are due.

A loop is a generator. Each turn ends with `yield seconds`: the next one begins after so long, or
sooner when the loop is woken. `yield ALONE` says that the next part blocks: it gets a thread of its
own until the next pause.

    alone    ─ take-over ─┐                                           ┌─ closing ─ take-over ─ …
    shared                └ turn ─ pause ─ turn ─ pause ─ turn, fails ┘

Sixty loops that are awake a tenth of the time need few threads at once (`loop_threads.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

import structlog

from belfry.host import machine
from belfry.host.background import END, Background

# The value that a loop yields before a part that blocks.
ALONE: Final = None
Turns = Iterator[float | None]
# The pause in seconds after an unexpected error of a loop.
AGAIN_S: Final = 1.0

log = structlog.get_logger(__name__)


class SharedThreads(Protocol):
    """The port of the threads that run turns of loops (`loop_threads.py`)."""

    def entered(self) -> None:
        """A loop begins."""

    def left(self) -> None:
        """A loop is over."""

    def wake(self, loop: Loop) -> None:
        """Let a loop have its next turn now, or right after the one that it has."""

    def park(self, loop: Loop, pause_s: float) -> None:
        """A turn is over; the next one is due after so many seconds."""


class Loop:
    """One loop: started once, woken from any thread, over when its generator ends.

    `turns` makes the generator; where the generator raises, the error is logged and another one is
    made after a pause. `last` may be set before the start: it is called when the loop is over.
    """

    def __init__(self, name: str, turns: Callable[[], Turns], threads: SharedThreads) -> None:
        self.name = name
        self.stopping = machine.Event()
        # Whether it was woken since its generator cleared this. A generator that sleeps through a
        # wake-up learns by it that its next pause is to be short.
        self.asked = False
        self.last: Callable[[], object] = _nothing
        self._make = turns
        self._threads = threads
        self._turns: Turns | None = None
        self._over = machine.Event()
        self._own: Background | None = None
        self._begun = False
        # Kept by the threads, under their lock: the number under which it waits to be due (0: it
        # does not wait), and whether it was woken amid a turn.
        self.parked = 0
        self.woken = False

    def start(self) -> None:
        """Begin, in a thread of its own; RuntimeError where the system gives none."""
        self._begun = True
        self._threads.entered()
        try:
            self.alone()
        except RuntimeError:
            self._begun = False
            self._threads.left()
            raise

    def stop(self) -> None:
        """Ask for the end: the next turn sees `stopping`."""
        self.stopping.set()
        self.wake()

    def wake(self) -> None:
        """Let the next turn begin now; from any thread, even amid a turn."""
        self.asked = True
        self._threads.wake(self)

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end, after it was asked for; False where it did not come in time."""
        return not self._begun or self._over.wait(timeout_s)

    @property
    def alive(self) -> bool:
        """Whether it was started and is not over."""
        return self._begun and not self._over.is_set()

    def alone(self) -> None:
        """Go on in a thread of its own; RuntimeError where the system gives none."""
        own = Background(self.name, self.go_on, log, "a loop stumbled")
        own.start()
        # Held, so that the check whether a worker lives finds it.
        self._own = own

    def go_on(self) -> object:
        """Run the turns that block, up to the next pause, in the calling thread."""
        pause_s = self.turn()
        while pause_s is ALONE and self.alive:
            pause_s = self.turn()
        if pause_s is not ALONE:
            self._threads.park(self, pause_s)
        return END

    def turn(self) -> float | None:
        """Run one turn; returns the pause in seconds, or ALONE.

        ALONE comes before a part that blocks, after a failure, and at the end. One thread at a time
        calls it.
        """
        try:
            if self._turns is None:
                self._turns = self._make()
            return next(self._turns)
        except StopIteration:
            self._end()
        except BaseException as error:
            # A panic of RocksDB's binding is not an Exception, and would end the shared thread.
            log.warning("a loop stumbled", loop=self.name, reason=str(error), exc_info=True)
            self._turns = None
            self.stopping.wait(AGAIN_S)
            if self.stopping.is_set():
                self._end()
        return ALONE

    def _end(self) -> None:
        try:
            self.last()
        finally:
            self._over.set()
            self._threads.left()


def _nothing() -> None:
    """The default of `last`: no work at the end."""
