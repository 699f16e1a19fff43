"""How much memory a process holds, and the most that it held for a while."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Final, Self

LOOK_S: Final = 0.02


class Resident:
    """Looks every 20 ms; `begin` says when what there is counts as where it grows from."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._ended = Event()
        self._thread = Thread(target=self._run, name="memory", daemon=True)
        self._before_mb = self._most_mb = self._now_mb()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def begin(self) -> None:
        """From now on it counts."""
        self._before_mb = self._most_mb = self._now_mb()

    @property
    def grown_mb(self) -> float:
        """The most since `begin`, less what there was then."""
        return self._most_mb - self._before_mb

    def _run(self) -> None:
        while not self._ended.wait(LOOK_S):
            self._most_mb = max(self._most_mb, self._now_mb())

    def _now_mb(self) -> float:
        for line in self._status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1000
        return 0.0
