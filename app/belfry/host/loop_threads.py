"""Threads that loops share: one for each turn under way, and one that waits for the next turn.

    idle     one waits until the first loop is due, and runs that turn; the others wait for a poke
    turn     a thread runs a loop's turn, and then looks for the next loop
    over     a thread without work for `IDLE_S` ends; the thread that became idle last is poked
             first, so that the others have no work

No loop waits for another one's turn: where all threads are busy, another one begins.  So there is
at most one thread more than loops, and only a few threads where turns are short and rare:

    12:00:00.000  loops 1 and 2 are due: one thread runs the turn of loop 1, another that of loop 2
    12:00:00.001  loop 1 pauses: its thread runs the turn of loop 3, which has just come due
    12:00:00.002  loop 2 commits to a broker that does not answer: its thread waits with it
    12:00:00.003  loop 4 is due, and no thread is idle: a third thread begins
"""

from __future__ import annotations

from collections import deque
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Final

import structlog

from belfry.host import machine
from belfry.host.background import END, Background
from belfry.host.loops import ALONE, Loop

# Seconds without work after which a thread ends.
IDLE_S: Final = 10.0
NEVER_S: Final = float("inf")

log = structlog.get_logger(__name__)


class LoopThreads:
    """Threads for the turns of many loops; there are none while there is no loop."""

    def __init__(self, idle_s: float = IDLE_S) -> None:
        """A thread without work for `idle_s` seconds ends."""
        self._idle_s = idle_s
        self._lock = machine.Lock()
        self._loops = 0
        self._ready: deque[Loop] = deque()
        # Instants of next turns, in seconds; an entry counts while its loop is parked under its
        # number.
        self._due: list[tuple[float, int, Loop]] = []
        self._numbers = count(1)
        # An idle thread waits for its gate; one of them waits only until the next loop is due.
        self._idle: list[machine.Lock] = []
        # Threads whose gate was opened, and that have not looked for a loop yet.
        self._poked = 0
        self._watched_s = NEVER_S
        # Held, so that the check whether a worker lives finds them.
        self._threads: set[Background] = set()

    def entered(self) -> None:
        """A loop begins."""
        with self._lock:
            self._loops += 1

    def left(self) -> None:
        """A loop is over; with the last one the threads end."""
        with self._lock:
            self._loops -= 1
            while not self._loops and self._idle:
                self._poke()

    def wake(self, loop: Loop) -> None:
        """Let a loop have its next turn now, or right after the one that it has."""
        with self._lock:
            if not loop.parked:
                loop.woken = True
                return
            loop.parked = 0
            self._ready.append(loop)
            self._ensure_thread()

    def park(self, loop: Loop, pause_s: float) -> None:
        """A turn is over; the next one is due after so many seconds, or at once if it was woken."""
        with self._lock:
            self._park(loop, pause_s)
            self._ensure_thread()

    # -- a thread --------------------------------------------------------------------------------

    def _run_turn(self) -> object:
        """Run the turn of one loop; END where this thread is not needed any more."""
        loop = self._next()
        if loop is None:
            return END
        pause_s = loop.turn()
        if pause_s is ALONE:
            self._go_on(loop)
            return None
        with self._lock:
            # No `_ensure_thread`: this thread itself looks for the next loop.
            self._park(loop, pause_s)
        return None

    def _go_on(self, loop: Loop) -> None:
        """Let a loop go on in a thread of its own; in this one where no thread can begin."""
        if not loop.alive:
            return
        try:
            loop.alone()
        except RuntimeError as error:
            log.warning("no thread can begin", loop=loop.name, reason=str(error))
            loop.go_on()

    def _next(self) -> Loop | None:
        """Wait for the next loop; None where this thread is to end."""
        while True:
            with self._lock:
                loop = self._take()
                if loop is not None:
                    self._ensure_thread()
                    return loop
                if not self._loops:
                    return None
                first_s = self._due[0][0] if self._due else NEVER_S
                watches = first_s < self._watched_s
                wait_s = max(0.0, first_s - machine.monotonic()) if watches else self._idle_s
                if watches:
                    self._watched_s = first_s
                gate = machine.Lock()
                gate.acquire()
                self._idle.append(gate)
            gate.acquire(timeout=wait_s)
            with self._lock:
                # A thread that is not in `_idle` any more was poked, even if its wait has timed out
                # as well.
                poked = gate not in self._idle
                if poked:
                    self._poked -= 1
                else:
                    self._idle.remove(gate)
                if watches and self._watched_s == first_s:
                    self._watched_s = NEVER_S
                if not poked and not watches:
                    return None

    # -- under the lock --------------------------------------------------------------------------

    def _park(self, loop: Loop, pause_s: float) -> None:
        if loop.woken or pause_s <= 0:
            loop.woken = False
            self._ready.append(loop)
            return
        loop.parked = next(self._numbers)
        heappush(self._due, (machine.monotonic() + pause_s, loop.parked, loop))

    def _take(self) -> Loop | None:
        """The loop that is to have a turn now, or None."""
        now = machine.monotonic()
        while self._due and (self._due[0][0] <= now or self._due[0][1] != self._due[0][2].parked):
            _, number, loop = heappop(self._due)
            if loop.parked == number:
                loop.parked = 0
                self._ready.append(loop)
        return self._ready.popleft() if self._ready else None

    def _ensure_thread(self) -> None:
        """See that a thread takes ready loops, and that one waits for the first loop to be due."""
        if not self._ready and (not self._due or self._watched_s <= self._due[0][0]):
            return
        if self._idle:
            self._poke()
        elif not self._poked:
            self._begin()

    def _begin(self) -> None:
        """Begin one more thread; if that fails, the others go on when their turns are over."""
        thread = Background(
            f"loops-{next(self._numbers)}", self._run_turn, log, "a turn of a loop failed"
        )
        thread.last = partial(self._ended, thread)
        try:
            thread.start()
        except RuntimeError as error:
            log.warning("no thread can begin", reason=str(error))
            return
        self._threads.add(thread)

    def _ended(self, thread: Background) -> None:
        with self._lock:
            self._threads.discard(thread)

    def _poke(self) -> None:
        self._poked += 1
        self._idle.pop().release()
