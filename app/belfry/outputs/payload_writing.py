"""Objects on their way to a store, and how long a caller waits for them.

    Writing(write, objects, 0.5) ─► a thread of its own writes
    over(0.005) ─┬─ True    stored, or failed, or waited for too long (`error` says why)
                 └─ False   the objects are still under way

A write that never ends is left behind: its thread does not keep the process from ending.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from belfry.host import machine

# A tenant and a digest.
Name = tuple[str, str]


class Writing:
    """Objects on their way to the store, in a thread that does not keep the process from ending."""

    def __init__(
        self,
        write: Callable[[Mapping[Name, bytes]], None],
        objects: dict[Name, bytes],
        most_s: float,
    ) -> None:
        """A caller waits for the objects until `most_s` seconds have passed."""
        self.objects = objects
        self.error: Exception | None = None
        self._write = write
        self._done = machine.Event()
        self._most_s = most_s
        self._until_s = machine.monotonic() + most_s
        machine.Thread(target=self._run, name="belfry-payload-writer", daemon=True).start()

    def over(self, wait_s: float = 0.0) -> bool:
        """Whether they are stored, or failed, or the time to wait for them is over."""
        if self._done.wait(wait_s):
            return True
        late = machine.monotonic() >= self._until_s
        if late and self.error is None:
            self.error = TimeoutError(f"the store has not answered within {self._most_s:g} s")
        return late

    @property
    def ended(self) -> bool:
        """Whether its thread has come to its end."""
        return self._done.is_set()

    def wait(self) -> None:
        """Wait until it is over."""
        self.over(max(0.0, self._until_s - machine.monotonic()))

    def _run(self) -> None:
        try:
            self._write(self.objects)
        except Exception as error:  # noqa: BLE001  # told where `error` is read
            self.error = error
        self._done.set()
