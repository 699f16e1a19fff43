"""One question that several threads have at once, asked once for all of them.

A thread that asks while the question is under way waits for the next time it is asked, which begins
when this one is over.  So an answer is never older than its question.  Of 64 threads that ask at
one instant, one asks for itself, and another one for all the rest:

    thread 1   asks ─► answer
    thread 2    waits ─► asks ─► answer
    thread 3     waits ·········─► the answer of thread 2
    thread 4      waits ········─► the answer of thread 2
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from belfry.host import machine

T = TypeVar("T")


class _Asking(Generic[T]):
    """One asking of the question: over with an answer, with why it failed, or without either."""

    def __init__(self) -> None:
        self.over = machine.Event()
        self.answer: tuple[T] | None = None
        self.failed: str | None = None


class Joined(Generic[T]):
    """A question whose answer is good for all who asked before it was asked; from any thread.

    Raises ConnectionError, for each of them, where it does.
    """

    def __init__(self, ask: Callable[[], T]) -> None:
        """`ask` is called by one thread at a time."""
        self._ask: Final = ask
        self._lock = machine.Lock()
        self._turn = machine.Lock()
        # Has not begun: a thread that comes now may share its answer.
        self._next: _Asking[T] | None = None

    def __call__(self) -> T:
        """The answer, once it was asked for."""
        while True:
            with self._lock:
                asking, asks = self._next, self._next is None
                if asking is None:
                    asking = self._next = _Asking()
            if asks:
                return self._asked(asking)
            asking.over.wait()
            if asking.failed is not None:
                raise ConnectionError(asking.failed)
            if asking.answer is not None:
                return asking.answer[0]

    def _asked(self, asking: _Asking[T]) -> T:
        """Ask, for this thread and for those that have come by then."""
        try:
            with self._turn:
                with self._lock:
                    self._next = None
                asking.answer = (self._ask(),)
        except ConnectionError as error:
            asking.failed = str(error)
            raise
        finally:
            with self._lock:
                if self._next is asking:
                    self._next = None
            asking.over.set()
        assert asking.answer is not None
        return asking.answer[0]
