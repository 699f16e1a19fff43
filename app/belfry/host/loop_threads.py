"""Threads that loops share: as many as have turns at once, and one that waits for the next.

    idle     one waits until the first loop is due, and has that turn itself; others wait for a poke
    turn     a thread has a loop's turn, and then looks who is next
    over     a thread that nobody has needed for `IDLE_S` ends; it is the last to be idle that is
             poked, so that the others come to this

No loop waits for another one's turn: where all threads are at one, another one begins.  So at most
one more than loops are there, and where their turns are short and seldom, a few:

    12:00:00.000  loops 1 and 2 are due: one thread has the turn of loop 1, another that of loop 2
    12:00:00.001  loop 1 pauses: its thread has the turn of loop 3, which has just come due
    12:00:00.002  loop 2 commits to a broker that does not answer: its thread waits with it
    12:00:00.003  loop 4 is due, and nobody is idle: a third thread begins
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

# Seconds after which a thread ends that nobody needs.
IDLE_S: Final = 10.0
NEVER_S: Final = float("inf")

log = structlog.get_logger(__name__)


class LoopThreads:
    """Threads for the turns of many loops; there are none while there is no loop."""

    def __init__(self, idle_s: float = IDLE_S) -> None:
        """A thread that nobody has needed for `idle_s` seconds ends."""
        self._idle_s = idle_s
        self._lock = machine.Lock()
        self._loops = 0
        self._ready: deque[Loop] = deque()
        # Who is due when, in seconds; an entry counts while its loop is parked by its number.
        self._due: list[tuple[float, int, Loop]] = []
        self._numbers = count(1)
        # An idle thread waits for its gate; one of them waits no longer than until somebody is due.
        self._idle: list[machine.Lock] = []
        # Threads whose gate was opened, and who have not looked yet.
        self._poked = 0
        self._watched_s = NEVER_S
        # Held, so that whether a worker lives can be told by them.
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
            self._call()

    def park(self, loop: Loop, pause_s: float) -> None:
        """A turn is over; the next one is due after so many seconds, or was asked for already."""
        with self._lock:
            self._park(loop, pause_s)
            self._call()

    # -- a thread --------------------------------------------------------------------------------

    def _have_turn(self) -> object:
        """Have the turn of one loop; END where this thread is not needed any more."""
        loop = self._next()
        if loop is None:
            return END
        pause_s = loop.turn()
        if pause_s is ALONE:
            self._go_on(loop)
            return None
        with self._lock:
            # No call: this thread looks who is next itself.
            self._park(loop, pause_s)
        return None

    def _go_on(self, loop: Loop) -> None:
        """Let a loop go on in a thread of its own; where none can begin, in this one."""
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
                    self._call()
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
                # It was poked if it is idle no more, though its time may be over as well.
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
        """The loop whose turn it is, if any."""
        now = machine.monotonic()
        while self._due and (self._due[0][0] <= now or self._due[0][1] != self._due[0][2].parked):
            _, number, loop = heappop(self._due)
            if loop.parked == number:
                loop.parked = 0
                self._ready.append(loop)
        return self._ready.popleft() if self._ready else None

    def _call(self) -> None:
        """See that somebody looks at what is ready, and waits for what is due first."""
        if not self._ready and (not self._due or self._watched_s <= self._due[0][0]):
            return
        if self._idle:
            self._poke()
        elif not self._poked:
            self._begin()

    def _begin(self) -> None:
        """Begin one more thread; where none can, the others look when their turns are over."""
        thread = Background(f"loops-{next(self._numbers)}", self._have_turn, log, "no turn was had")
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
