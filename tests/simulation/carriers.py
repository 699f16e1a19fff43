"""What carries tasks: greenlets, of which a hand-over is a call, or threads that pass a lock on.

Both give the same run of a seed.  Threads take two thirds more of CPU for it, and far more time on
a busy machine: each hand-over wakes a thread that then waits for the interpreter.  So they carry
only tasks that are traced (`preemption`): Python traces nothing of a thread that is within a
function that traces, and there a task loses its turn.
"""

from __future__ import annotations

from asyncio import events, tasks
from collections.abc import Callable
from threading import Lock, Thread, local
from typing import Any, Final, Protocol

from greenlet import getcurrent, greenlet

# Ends what a carrier has carried, and gives the carrier that goes on.
Carried = Callable[[], "Carrier"]
# Tasks that never end stay as they are, as threads do: they do not unwind when their world is gone.
_UNENDED: Final[set[greenlet]] = set()
# Of each thread: the greenlet that starts all others.
_STARTER: Final = local()


class Carrier(Protocol):
    """One task's."""

    def carry(self, work: Carried) -> None:
        """Begin with this as soon as it is this one's turn."""

    def give_to(self, other: Carrier) -> None:
        """Let another one go on, until it is this one's turn again."""


def _start_all(asked: Any) -> None:
    """Start greenlets, each of which gives back to who asked for it before it begins.

    A greenlet counts its calls on from the depth at which it was started.  Tasks that started each
    other would come to Python's limit of recursion after some tens of them.
    """
    while True:
        asker, made = asked
        asked = made.switch(asker)


class Greenlet:
    """All of them are in one thread."""

    def __init__(self) -> None:
        """Whoever makes it carries its own task, unless it is given one."""
        self._greenlet = getcurrent()

    def carry(self, work: Carried) -> None:
        """Begin with this as soon as it is this one's turn."""

        def run(asker: greenlet) -> None:
            asker.switch()
            events._set_running_loop(None)
            following = work()
            assert isinstance(following, Greenlet)
            _UNENDED.discard(made)
            # Where a greenlet ends, its parent goes on.
            made.parent = following._greenlet

        first = self._greenlet
        while first.parent is not None:
            first = first.parent
        self._greenlet = made = greenlet(run, first)
        _UNENDED.add(made)
        if not hasattr(_STARTER, "greenlet"):
            _STARTER.greenlet = greenlet(_start_all, first)
        _STARTER.greenlet.switch((getcurrent(), made))

    def give_to(self, other: Carrier) -> None:
        """Let another one go on; asyncio knows per thread which loop runs, and which task of it."""
        assert isinstance(other, Greenlet)
        loop = events._get_running_loop()
        if loop is None:
            # So it is nearly always, and to set it asks the system for the process's number.
            other._greenlet.switch(None)
            if events._get_running_loop() is not None:
                events._set_running_loop(None)
            return
        step = tasks.current_task(loop)
        if step is not None:
            tasks._leave_task(loop, step)
        other._greenlet.switch(None)
        events._set_running_loop(loop)
        if step is not None:
            tasks._enter_task(loop, step)


class LockedThread:
    """One thread each, which goes on where its lock is given free."""

    def __init__(self) -> None:
        self._gate = Lock()
        self._gate.acquire()

    def carry(self, work: Carried) -> None:
        """Begin with this as soon as it is this one's turn."""

        def run() -> None:
            self._gate.acquire()
            following = work()
            assert isinstance(following, LockedThread)
            following._gate.release()

        Thread(target=run, daemon=True).start()

    def give_to(self, other: Carrier) -> None:
        """Let another one go on."""
        assert isinstance(other, LockedThread)
        other._gate.release()
        self._gate.acquire()
