"""The stage: tasks that take turns, and a time that passes only when all of them wait.

Every thread of the simulated processes is a task (`carriers`).  One runs at a time, and hands over
where it waits: on an event, a queue, a broker.  Who is next is drawn from the seed, so a seed is a
schedule of all threads, and the same seed is the same schedule.

    ready tasks, one drawn ──► runs until it waits ──► … ──► none is ready: time jumps to the
                                                             next timer

A process may be paused (SIGSTOP) and may crash (SIGKILL): its tasks then unwind with `Crashed`, and
whatever they touch on the way (broker, disk, queue) raises `Crashed` again instead of acting.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, Final

from tests.simulation.carriers import Carrier, Greenlet, LockedThread


class Crashed(BaseException):
    """The process of this task has been killed."""


@dataclass(eq=False, slots=True)
class Host:
    """What a task belongs to: a process that can be paused and killed."""

    name: str
    paused: bool = False
    dead: bool = False
    parked: list[Task] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)


class Task:
    """One thread of a simulated process."""

    def __init__(self, name: str, host: Host, carrier: Carrier) -> None:
        self.name = name
        self.host = host
        self.carrier = carrier
        self.generation = 0
        self.waiting = False
        self.woken = False
        self.done = False
        self.joiners: list[Task] = []


class Stage:
    """All tasks of one simulated world; the one that makes it is the first."""

    def __init__(self, random: Random, *, traced: bool = False) -> None:
        self.random = random
        self._draw = random.random
        self.traced = traced
        self.now_ms = 0.0
        self.switches = 0
        self.failures: list[str] = []
        # Called with the error that ends a task.
        self.failed: Callable[[BaseException], None] = lambda _error: None
        # While an action of `later` is done, which never waits.
        self.acting = False
        # Called by each task before its first line; tasks are traced in threads of their own only.
        self.begins: Callable[[], None] = _nothing
        self._ready: list[Task] = []
        # When, in which order, a task and the number of its wait, or an action and 0.
        self._timers: list[tuple[float, int, Any, int]] = []
        self._numbers = count()
        self._carrier = LockedThread if traced else Greenlet
        self.current = Task("script", Host("script"), self._carrier())

    # -- tasks -----------------------------------------------------------------------------------

    def spawn(self, name: str, target: Callable[[], object], host: Host | None = None) -> Task:
        """Start a task; it belongs to the process of who starts it, unless told otherwise."""
        if host is None:
            self.check()
        task = Task(name, host or self.current.host, self._carrier())
        task.host.tasks.append(task)
        task.carrier.carry(lambda: self._carry(task, target))
        self._ready.append(task)
        return task

    def _carry(self, task: Task, target: Callable[[], object]) -> Carrier:
        try:
            if not task.host.dead:
                self.begins()
                target()
        except Crashed:
            pass
        except BaseException as error:  # noqa: BLE001  # a task that fails is the run's business
            self.failures.append(f"{task.name}: {type(error).__name__}: {error}")
            self.failed(error)
        if self.traced:
            sys.settrace(None)
        task.done = True
        task.host.tasks.remove(task)
        for joiner in task.joiners:
            self.wake(joiner)
        self.current = self._next()
        return self.current.carrier

    def kill(self, host: Host) -> None:
        """Kill a process: each of its tasks unwinds as soon as it is its turn."""
        host.dead = True
        self.resume(host)
        for task in host.tasks:
            self.wake(task)
        self.check()

    def pause(self, host: Host) -> None:
        """Stop a process until `resume`; it notices nothing but that time has passed."""
        host.paused = True
        if self.current.host is host:
            self.turn()

    def resume(self, host: Host) -> None:
        """Let a paused process go on."""
        host.paused = False
        parked, host.parked = host.parked, []
        self._ready += parked

    def check(self) -> None:
        """Unwind if the current task's process has been killed."""
        if self.current.host.dead:
            raise Crashed

    # -- waiting ---------------------------------------------------------------------------------

    def turn(self) -> None:
        """Let others go first, perhaps."""
        self._ready.append(self.current)
        self._switch()

    def sleep(self, ms: float) -> None:
        """Let time pass."""
        self.wait(ms)

    def wait(self, timeout_ms: float | None = None) -> bool:
        """Wait to be woken; False where the time-out came first."""
        task = self.current
        if task.host.dead:
            raise Crashed
        task.generation += 1
        task.waiting, task.woken = True, False
        if timeout_ms is not None:
            at = self.now_ms + timeout_ms if timeout_ms > 0.0 else self.now_ms
            heappush(self._timers, (at, next(self._numbers), task, task.generation))
        self._switch()
        return task.woken

    def wake(self, task: Task) -> None:
        """Make a waiting task ready."""
        if task.waiting:
            task.waiting, task.woken = False, True
            self._ready.append(task)

    def later(self, ms: float, action: Callable[[], None]) -> None:
        """Do something that never waits, in so many milliseconds."""
        heappush(self._timers, (self.now_ms + ms, next(self._numbers), action, 0))

    def _switch(self) -> None:
        task = self.current
        following = self._next()
        self.switches += 1
        if following is not task:
            self.current = following
            task.carrier.give_to(following.carrier)
        # As `check`, which most of a run's time would go through.
        if task.host.dead:
            raise Crashed

    def _next(self) -> Task:
        ready, draw = self._ready, self._draw
        while True:
            while ready:
                at = int(draw() * len(ready))
                task = ready[at]
                ready[at] = ready[-1]
                ready.pop()
                if not task.host.paused:
                    return task
                task.host.parked.append(task)
            self._advance()

    def _advance(self) -> None:
        """Jump to the next timer that is waited for, or whose action is due."""
        timers = self._timers
        while True:
            at_ms, _, what, generation = heappop(timers)
            self.now_ms = max(self.now_ms, at_ms)
            if not generation:
                self.acting = True
                what()
                self.acting = False
                return
            if what.waiting and what.generation == generation:
                what.waiting = False
                self._ready.append(what)
                return


def _nothing() -> None:
    """Tasks begin as they are."""


_ACTIVE: Final[list[Stage]] = []


def here() -> Stage:
    """The stage that plays."""
    return _ACTIVE[-1]


def plays(stage: Stage) -> bool:
    """Whether it is this stage that plays: what is left of one that has ended is garbage."""
    return _ACTIVE[-1:] == [stage]


def enter(stage: Stage) -> None:
    """Let a stage play."""
    _ACTIVE.append(stage)


def leave() -> None:
    """End the play."""
    _ACTIVE.pop()
