"""Work in a thread of its own for as long as a worker runs: one way to begin, fail and end.

    begin ─► turn ─► turn ─► turn raises ─► logged, counted, paused ─► turn ─► … ─► stopped ─► ended
                       └ returns END ───────────────────────────────────────────────────────► ended
                                                                                  └ `last` runs once

A *turn* is one round of the work.  It waits by itself, for a message or on `stopping`, and returns
soon once that is set.  A turn that raises ends neither the thread nor the worker: the error is
logged with the name of the work, and the next turn begins after a pause.  So a turn has to leave a
state from which the next one can begin anew.  A turn that returns `END` was the last one.  Examples
are a standby whose owner is silent, and a reader whose term is over.

`started` finds them all, for metrics and for the check whether a worker still lives.  The threads
are daemons, because a thread that hangs must not keep a process from ending.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

from confluent_kafka import KafkaError, KafkaException

from belfry.host import machine

AGAIN_S: Final = 1.0
# Errors of a cluster that is away: their stack traces would not help.
AWAY: Final = (KafkaException, OSError, KafkaError)
# Errors that a turn may raise. A client that can be used no more, such as a group member that was
# replaced by another one, raises a bare `KafkaError`, which is not an `Exception`.
FAILURES: Final[Any] = (Exception, KafkaError)
# The value that the last turn returns.
END: Final = object()


class Background:
    """Turns of `work` until `stop` or `END`; `start` is called once, and no method afterwards."""

    def __init__(
        self,
        name: str,
        work: Callable[[], object],
        log: Any,
        failing: str,
        *,
        again_s: float = AGAIN_S,
    ) -> None:
        """The thread is named ``belfry-NAME``; `failing` is the log message of a failed turn.

        `last` may be set before the start: it runs in the thread after the last turn.
        """
        self.name = name
        self.stopping = machine.Event()
        self.failures = 0
        self.last: Callable[[], object] = _nothing
        self._work = work
        self._log = log
        self._failing = failing
        self._again_s = again_s
        self._started = False
        self._thread = machine.Thread(target=self._run, name=f"belfry-{name}", daemon=True)

    def start(self) -> None:
        """Begin the first turn; returns at once."""
        self._started = True
        with _guard:
            # Each thread in the set is alive.
            self._thread.start()
            _started.add(self)

    def stop(self, timeout_s: float | None = None) -> bool:
        """Ask for the end and wait for it; False where it did not come within so many seconds."""
        self.stopping.set()
        return self.join(timeout_s)

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end, after it was asked for; False where it did not come in time."""
        if self._started:
            self._thread.join(timeout_s)
        _ended(self)
        return not self.alive

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    @property
    def begun(self) -> bool:
        """Whether it was started, alive or not."""
        return self._started

    def _run(self) -> None:
        ended = False
        while not (ended or self.stopping.is_set()):
            try:
                ended = self._work() is END
            except FAILURES as error:  # the next turn goes on
                self.failures += 1
                unexpected = not isinstance(error, AWAY)
                self._log.warning(self._failing, reason=str(error), exc_info=unexpected)
                self.stopping.wait(self._again_s)
        _ended(self)
        self.last()


_started: Final[WeakSet[Background]] = WeakSet()
# Threads begin and end while other threads look at all of them.
_guard: Final = machine.Lock()


def started() -> list[Background]:
    """The backgrounds of this process that were started and not stopped, by name.

    A background that is not `alive` has ended by an error of its own: only a new process helps.
    """
    with _guard:
        found = list(_started)
    return sorted(found, key=lambda each: each.name)


def _ended(each: Background) -> None:
    """Forget a background that was asked to end, or has ended."""
    with _guard:
        _started.discard(each)


def _nothing() -> None:
    """The default of `last`: no work at the end."""
