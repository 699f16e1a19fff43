"""One question that several threads have at once, asked once for all of them.

A thread that comes while the question is under way waits until it is asked again, which begins when
the present answer is there.  So an answer is never older than its question.  Of 64 threads that ask
at one instant, one asks for itself, and another one for all the others:

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
    """One call of the question: it ends with an answer, with an error text, or with neither."""

    def __init__(self) -> None:
        self.over = machine.Event()
        self.answer: tuple[T] | None = None
        self.failed: str | None = None


class Joined(Generic[T]):
    """A question whose answer serves all threads that came before it was asked; for any thread.

    A ConnectionError of the question is raised in each of them.
    """

    def __init__(self, ask: Callable[[], T]) -> None:
        """`ask` is called by one thread at a time."""
        self._ask: Final = ask
        self._lock = machine.Lock()
        self._turn = machine.Lock()
        # The call that has not begun: a thread that comes now may share its answer.
        self._next: _Asking[T] | None = None

    def __call__(self) -> T:
        """Ask, or share the next answer; returns the answer."""
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
        """Ask, for this thread and for those that come until the question begins."""
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
