"""Where day files go: a store in memory, which may refuse, be slow or silent, or give wrong bytes.

Days are a second long here, so that what is due in some seconds is far ahead, and its payload goes
and comes back (`SHORT`).  Names of files follow from a count, for a seed is to be one run.

    away       every question fails for a while
    damaged    a file is read cut, or with another byte; what lies there stays whole
"""

from __future__ import annotations

from random import Random
from typing import Any, Final, Self

from belfry.engine import day_files as engine_day_files
from belfry.outputs import day_store
from belfry.partitions import day_file_changes, day_file_walks
from belfry.partitions import day_files as partition_day_files
from belfry.store.layout import day_files as layout_day_files
from tests.simulation import objects
from tests.simulation.broker import Broker
from tests.simulation.objects import Objects
from tests.simulation.stage import here

URL: Final = "memory://days"
FOLDER: Final = "days"
DAY_MS: Final = 1_000
# The share of reads that are cut, where bytes are wrong; the others have another byte.
CUT: Final = 0.3


class DayObjects(Objects):
    """The store of one world, with the names of fsspec that a store of day files uses."""

    def __init__(self, broker: Broker, random: Random) -> None:
        super().__init__(broker, random)
        self._numbers = 0
        self.damaged_until_ms = 0.0

    def be_damaged(self, ms: float) -> None:
        """Give other bytes than those that are there, for so long."""
        self.damaged_until_ms = self._broker.stage.now_ms + ms

    def heal(self) -> None:
        """No more faults."""
        super().heal()
        self.damaged_until_ms = 0.0

    def number(self) -> bytes:
        """What tells the next file from all others."""
        self._numbers += 1
        return self._numbers.to_bytes(8, "big")

    def rm_file(self, path: str) -> None:
        """Remove what was not written: from then on it was never there (I38)."""
        super().rm_file(path)
        self.since.pop(path, None)

    # -- what a store of day files asks ----------------------------------------------------------

    def pipe_file(self, path: str, payload: bytes) -> None:
        """Put an object: it is there whole, or not at all."""
        self._ask()
        self._put(path, payload)

    def open(self, path: str, _mode: str) -> _Part:
        """A file that is about to be written."""
        return _Part(self, path)

    def part(self, path: str, payload: bytes) -> None:
        """Write such a file; half of it is there while it is written, and where that fails."""
        self._files[path] = payload[: len(payload) // 2]
        self._ask()
        self._files[path] = payload

    def cat_file(self, path: str) -> bytes:
        """All of a file, or other bytes while it is damaged."""
        self._ask()
        if path not in self._files:
            raise FileNotFoundError(path)
        data = self._files[path]
        self.struck.append("day file read")
        if here().now_ms >= self.damaged_until_ms:
            return data
        self.struck.append("day file damaged")
        if self._random.random() < CUT:
            return data[: self._random.randrange(len(data))]
        # The last bytes are those of a payload, so what names it may say another one's.
        at = len(data) - 1 - self._random.randrange(min(len(data), 4))
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    def _ask(self) -> None:
        if here().now_ms < self.slow_until_ms:
            self.struck.append("day store slow")
        super()._ask()

    def _put(self, path: str, payload: bytes) -> None:
        super()._put(path, payload)
        self.struck.append("day file written")

    def _fail(self, why: str) -> None:
        super()._fail(f"day {why}")


class _Part:
    """A file of a file system that is being written."""

    def __init__(self, store: DayObjects, path: str) -> None:
        self._store, self._path = store, path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left to do."""

    def write(self, payload: bytes) -> None:
        """Write all of it."""
        self._store.part(self._path, payload)

    def flush(self) -> None:
        """Nothing is held back."""


def _days() -> DayObjects:
    from tests.simulation.machine import machine

    found = machine().days
    assert found is not None
    return found


def opened(url: str, options: dict[str, Any], names: tuple[str, str]) -> tuple[Objects, str]:
    """What stands in for `object_store.opened`: a store of the world whose machine asks."""
    return (_days(), FOLDER) if url == URL else objects.opened(url, options, names)


# Module, name, and what stands there instead: short days, small files, small steps.
SHORT: Final[list[tuple[Any, str, Any]]] = [
    (engine_day_files, "DAY_MS", DAY_MS),
    (day_store, "DAY_MS", DAY_MS),
    (day_file_walks, "AHEAD_MS", DAY_MS),
    (day_file_walks, "LEAST_FILE_BYTES", 1),
    (day_file_walks, "LOOK_ROWS", 3),
    (day_file_walks, "NEAR_EVERY_MS", 400.0),
    (day_file_walks, "FAR_EVERY_MS", 400.0),
    (day_file_walks, "RETRY_MS", 400.0),
    (day_file_changes, "STEP_ROWS", 2),
    (layout_day_files, "LEAST_BYTES", 1),
    (partition_day_files, "urandom", lambda _size: _days().number()),
]
