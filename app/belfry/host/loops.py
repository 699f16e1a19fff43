"""A loop without a thread of its own: it waits most of the time, and has a turn when it is due.

A loop is a generator. Each turn ends with `yield seconds`: the next one begins after so long, or
sooner when the loop is woken. `yield ALONE` says that what follows blocks: it has a thread of its
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

# What a loop yields where the next thing that it does blocks.
ALONE: Final = None
Turns = Iterator[float | None]
# Seconds after a loop has failed by an error that it did not expect.
AGAIN_S: Final = 1.0

log = structlog.get_logger(__name__)


class SharedThreads(Protocol):
    """Where loops have their turns (`loop_threads.py`)."""

    def entered(self) -> None:
        """A loop begins."""

    def left(self) -> None:
        """A loop is over."""

    def wake(self, loop: Loop) -> None:
        """Let a loop have its next turn now, or right after the one that it has."""

    def park(self, loop: Loop, pause_s: float) -> None:
        """A turn is over; the next one is due after so many seconds."""


class Loop:
    """One loop: started once, woken by anybody, over when its generator is.

    `turns` makes the generator; where that raises, the error is told and another one is made after
    a pause. `last` may be set before the start: it is called when the loop is over.
    """

    def __init__(self, name: str, turns: Callable[[], Turns], threads: SharedThreads) -> None:
        self.name = name
        self.stopping = machine.Event()
        # Whether it was woken since its generator has cleared this: one that does not let itself be
        # woken from a pause learns by it that the next one is to be short.
        self.asked = False
        self.last: Callable[[], object] = _nothing
        self._make = turns
        self._threads = threads
        self._turns: Turns | None = None
        self._over = machine.Event()
        self._own: Background | None = None
        self._begun = False
        # Kept by the threads, under their lock: by which number it waits to be due (0: it does
        # not), and whether it was woken amid a turn.
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
        """Ask for the end: its next turn is to see `stopping`."""
        self.stopping.set()
        self.wake()

    def wake(self) -> None:
        """Let the next turn begin now; from any thread, also in the midst of a turn."""
        self.asked = True
        self._threads.wake(self)

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end, which somebody has asked for; False where it did not come in time."""
        return not self._begun or self._over.wait(timeout_s)

    @property
    def alive(self) -> bool:
        """Whether it was started and is not over."""
        return self._begun and not self._over.is_set()

    def alone(self) -> None:
        """Go on in a thread of its own; RuntimeError where the system gives none."""
        own = Background(self.name, self.go_on, log, "a loop stumbled")
        own.start()
        # Held, so that whether a worker lives can be told by it.
        self._own = own

    def go_on(self) -> object:
        """Have the turns that block, up to the next pause, in the thread that calls."""
        pause_s = self.turn()
        while pause_s is ALONE and self.alive:
            pause_s = self.turn()
        if pause_s is not ALONE:
            self._threads.park(self, pause_s)
        return END

    def turn(self) -> float | None:
        """One turn: how many seconds to pause; ALONE where that has to be seen alone, or is over.

        It is called by one thread at a time.
        """
        try:
            if self._turns is None:
                self._turns = self._make()
            return next(self._turns)
        except StopIteration:
            self._end()
        except BaseException as error:
            # A panic of RocksDB's binding is no Exception, and would end a thread of others.
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
    """The end of a loop that leaves nothing behind."""
