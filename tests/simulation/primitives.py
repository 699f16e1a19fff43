"""What stands in for `threading`, `queue` and `time` in the shell's modules.

Same names, same meaning, as far as the shell uses them; waiting is the stage's.  The lists of who
waits are in the order in which they came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import Empty
from typing import Any

from tests.simulation.stage import Crashed, Task, here


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


class SimEvent:
    """`threading.Event`."""

    def __init__(self) -> None:
        self._set = False
        self._waiting: list[Task] = []

    def is_set(self) -> bool:
        """Whether it is set."""
        if here().current.host.dead:
            raise Crashed
        return self._set

    def set(self) -> None:
        """Wake all who wait."""
        self._set = True
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            here().wake(task)

    def clear(self) -> None:
        """Unset."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until set, or for so many seconds."""
        stage = here()
        if not self._set:
            self._waiting.append(stage.current)
            if not stage.wait(_ms(timeout)) and stage.current in self._waiting:
                self._waiting.remove(stage.current)
        return self._set


class SimThread:
    """`threading.Thread`."""

    def __init__(
        self,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: tuple[Any, ...] = (),
        *,
        daemon: bool | None = None,
    ) -> None:
        self._target = target
        self._args = args
        self.name = name or "thread"
        self._task: Task | None = None

    def start(self) -> None:
        """Start the task."""
        target = self._target
        assert target is not None
        self._task = here().spawn(self.name, lambda: target(*self._args))

    def is_alive(self) -> bool:
        """Whether it was started and has not ended."""
        return self._task is not None and not self._task.done

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        stage = here()
        if self._task is not None and not self._task.done:
            self._task.joiners.append(stage.current)
            stage.wait(_ms(timeout))


class SimSimpleQueue:
    """`queue.SimpleQueue`."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._waiting: list[Task] = []

    def put(self, item: Any) -> None:
        """Put an item in; never waits."""
        self._items.append(item)
        if self._waiting:
            here().wake(self._waiting.pop(0))

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take the first item, or wait for one; `Empty` where none comes in time."""
        stage = here()
        if not self._items and block:
            self._waiting.append(stage.current)
            stage.wait(_ms(timeout))
            if stage.current in self._waiting:
                self._waiting.remove(stage.current)
        if not self._items:
            raise Empty
        return self._items.popleft()

    def get_nowait(self) -> Any:
        """Take the first item; `Empty` for none."""
        return self.get(block=False)

    def empty(self) -> bool:
        """Whether there is none."""
        return not self._items

    def qsize(self) -> int:
        """How many there are."""
        return len(self._items)


class SimSemaphore:
    """`threading.BoundedSemaphore`, and with one unit a `threading.Lock`."""

    def __init__(self, value: int = 1) -> None:
        self._left = value
        self._waiting: list[Task] = []

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take one unit."""
        if timeout is not None and timeout < 0:
            timeout = None
        while not self._left:
            if not blocking:
                return False
            stage = here()
            self._waiting.append(stage.current)
            if not stage.wait(_ms(timeout)):
                if stage.current in self._waiting:
                    self._waiting.remove(stage.current)
                return False
        self._left -= 1
        return True

    def release(self, n: int = 1) -> None:
        """Give so many units back."""
        self._left += n
        if self._waiting:
            for _ in self._waiting[:n]:
                here().wake(self._waiting.pop(0))

    def locked(self) -> bool:
        """Whether nothing is left."""
        return not self._left

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class SimRLock(SimSemaphore):
    """`threading.RLock`."""

    def __init__(self) -> None:
        super().__init__(1)
        self._owner: Task | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take it, once more where it is held already."""
        if self._owner is not here().current:
            if not super().acquire(blocking, timeout):
                return False
            self._owner = here().current
        self._depth += 1
        return True

    def release(self, n: int = 1) -> None:
        """Give it back."""
        self._depth -= 1
        if not self._depth:
            self._owner = None
            super().release()


def monotonic() -> float:
    """`time.monotonic`: seconds of the stage; steps of wall clocks do not touch it."""
    stage = here()
    slept_ms = getattr(stage.current.host, "slept_ms", 0.0)
    return 1_000.0 + (stage.now_ms - slept_ms) / 1000


def sleep(seconds: float) -> None:
    """`time.sleep`."""
    here().sleep(seconds * 1000)
