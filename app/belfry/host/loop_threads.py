"""Threads that loops share: as many as have turns at once, and no more than some.

    idle     one waits until the first loop is due, and has that turn itself; others wait for a poke
    turn     a thread has a loop's turn, and then looks who is next
    hangs    who has been at one turn for longer than `HANGS_S` does not count any more

No loop waits for another one's turn that hangs: a thread more is there for the others, and ends
when it is not needed any more. So at most as many threads as loops are there, and where nothing
hangs `most` of them.

    12:00:00.000  16 threads have turns of 16 loops, whose broker does not answer
    12:00:00.100  loop 17 is due: all threads are at a turn
    12:00:00.500  they hang: a 17th thread has the turn of loop 17
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue
from threading import Event, Lock, get_ident
from time import monotonic
from typing import Final

import structlog

from belfry.host.background import END, Background
from belfry.host.loops import ALONE, Loop

# Threads at once, beside those that hang.
MOST: Final = 16
# Seconds of one turn after which the others wait for it no longer.
HANGS_S: Final = 0.5
# How often to look for such turns, while all threads are at one.
LOOK_S: Final = 0.1
CALM_S: Final = 1.0
NEVER_S: Final = float("inf")

log = structlog.get_logger(__name__)


class LoopThreads:
    """Threads for the turns of many loops; there are none while there is no loop."""

    def __init__(self, most: int = MOST) -> None:
        """`most` turns are had at once, beside those that hang."""
        self._most = most
        self._lock = Lock()
        self._loops = 0
        self._ready: deque[Loop] = deque()
        # Who is due when, in seconds; an entry counts while its loop is parked by its number.
        self._due: list[tuple[float, int, Loop]] = []
        self._numbers = count(1)
        # An idle thread waits for a poke; one of them waits no longer than until somebody is due.
        self._pokes: SimpleQueue[None] = SimpleQueue()
        self._poked = self._idle = self._threads = 0
        self._watched_s = NEVER_S
        # Since when each thread has been at its turn.
        self._since: dict[int, float] = {}
        self._full = Event()
        self._look: Background | None = None

    def entered(self) -> None:
        """A loop begins."""
        with self._lock:
            self._loops += 1
            if self._look is None:
                self._look = Background("loops", self._look_once, log, "loops not looked at")
                self._look.start()

    def left(self) -> None:
        """A loop is over; with the last one the threads end."""
        with self._lock:
            self._loops -= 1
            if self._loops or self._look is None:
                return
            self._look.stopping.set()
            self._look = None
            self._full.set()
            while self._poked < self._idle:
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
        me = get_ident()
        loop = self._next(me)
        if loop is None:
            return END
        pause_s = loop.turn()
        with self._lock:
            del self._since[me]
            if pause_s is not ALONE:
                # No call: this thread looks who is next itself.
                self._park(loop, pause_s)
        if pause_s is ALONE and loop.alive:
            loop.alone()
        return None

    def _next(self, me: int) -> Loop | None:
        """Wait for the next loop; None where this thread is to end."""
        while True:
            with self._lock:
                loop = self._take()
                if loop is not None:
                    self._since[me] = monotonic()
                    self._call()
                    return loop
                if not self._loops or self._counted() > self._most:
                    self._threads -= 1
                    return None
                first_s = self._due[0][0] if self._due else NEVER_S
                watches = first_s < self._watched_s
                wait_s = max(0.0, first_s - monotonic()) if watches else None
                if watches:
                    self._watched_s = first_s
                self._idle += 1
            poked = self._wait(wait_s)
            with self._lock:
                self._idle -= 1
                self._poked -= poked
                if watches and self._watched_s == first_s:
                    self._watched_s = NEVER_S

    def _wait(self, wait_s: float | None) -> bool:
        """Wait for a poke; False where none came in time."""
        try:
            self._pokes.get(timeout=wait_s)
        except Empty:
            return False
        return True

    def _look_once(self) -> None:
        """Where all threads are at a turn, see after a while whether some of them hang."""
        look = self._look
        if not self._full.wait(CALM_S) or look is None:
            return
        look.stopping.wait(LOOK_S)
        with self._lock:
            self._full.clear()
            if self._loops:
                self._call()

    # -- under the lock --------------------------------------------------------------------------

    def _park(self, loop: Loop, pause_s: float) -> None:
        if loop.woken or pause_s <= 0:
            loop.woken = False
            self._ready.append(loop)
            return
        loop.parked = next(self._numbers)
        heappush(self._due, (monotonic() + pause_s, loop.parked, loop))

    def _take(self) -> Loop | None:
        """The loop whose turn it is, if any."""
        now = monotonic()
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
        if self._poked < self._idle:
            self._poke()
        elif self._idle:
            return
        elif self._counted() < self._most:
            self._threads += 1
            name = f"loops-{next(self._numbers)}"
            Background(name, self._have_turn, log, "a turn was not had").start()
        else:
            self._full.set()

    def _poke(self) -> None:
        self._poked += 1
        self._pokes.put(None)

    def _counted(self) -> int:
        """How many threads there are, but for those that hang."""
        hang_s = monotonic() - HANGS_S
        return self._threads - sum(since_s < hang_s for since_s in self._since.values())
