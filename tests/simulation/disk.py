"""The disk of one machine: local stores that outlive a process, and lose their newest writes.

As with RocksDB without its log: what a crash leaves is the fold of some prefix of the writes, at
least up to the last flush.  A store that is closed in order keeps all.  Stores can be lost, damaged
(a read fails), and put back as they were some time ago.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from belfry.store.ordered_map import MemoryMap, Range
from tests.simulation.stage import here


@dataclass(slots=True)
class Kept:
    """What lies on disk of one store."""

    flushed: MemoryMap = field(default_factory=MemoryMap)
    journal: list[tuple[dict[bytes, bytes | None], list[Range]]] = field(default_factory=list)
    damaged: bool = False
    open: bool = False

    def settle(self, writes: int) -> None:
        """Let the first so many writes since the last flush reach the disk; forget the rest."""
        for puts, cleared in self.journal[:writes]:
            self.flushed.write(puts, cleared)
        self.journal.clear()


class Disk:
    """All stores of a machine by path."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.kept: dict[str, Kept] = {}
        self.copies: list[dict[str, Kept]] = []

    def crash(self) -> None:
        """The process is gone: of each open store some prefix is left."""
        for kept in self.kept.values():
            if kept.open:
                kept.settle(self._random.randint(0, len(kept.journal)))
                kept.open = False

    def copy(self) -> None:
        """Remember how the stores look now."""
        taken = {path: Kept(deepcopy(kept.flushed)) for path, kept in self.kept.items()}
        self.copies.append(taken)

    def put_back(self) -> None:
        """Put the stores of some earlier copy in the place of today's."""
        if self.copies:
            self.kept = self.copies.pop(self._random.randrange(len(self.copies)))

    def lose(self) -> None:
        """The directory is deleted."""
        self.kept.clear()

    def damage(self) -> None:
        """One store fails at some read to come."""
        if self.kept:
            path = self._random.choice(sorted(self.kept))
            self.kept[path].damaged = True

    def reads_to_damage(self) -> int:
        """After how many reads the damaged block is met: in a take-over, or by a step after it."""
        return self._random.randint(1, 80)


class SimRocks(MemoryMap):
    """Stands in for `RocksMap`; `damaged` is the exception that it raises."""

    damaged: type[Exception]

    def __init__(self, path: object) -> None:
        super().__init__()
        self._disk: Disk = here().current.host.disk  # type: ignore[attr-defined]
        self._path = str(path)
        self._kept = self._disk.kept.setdefault(self._path, Kept())
        if self._kept.open:
            raise OSError(f"While lock file: {path}/LOCK: held by this process")
        self._kept.open = True
        base = deepcopy(self._kept.flushed)
        self._values, self._keys = base._values, base._keys
        # Before the damaged block is met; drawn at the first read of a store that is damaged.
        self._reads_left: int | None = None
        self._condemned = False
        self._closed = False

    def _read(self) -> None:
        here().check()
        if self._kept.damaged:
            if self._reads_left is None:
                self._reads_left = self._disk.reads_to_damage()
            if self._reads_left == 0:
                raise self.damaged("a block fails its checksum")
            self._reads_left -= 1

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None."""
        self._read()
        return super().get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of keys, in their order."""
        self._read()
        return super().get_many(keys)

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs from `start` (inclusive) up to `end` (exclusive)."""
        self._read()
        return super().scan(start, end)

    def write(self, writes: Mapping[bytes, bytes | None], cleared: Sequence[Range] = ()) -> None:
        """Write to memory, and to what a crash may leave."""
        here().check()
        # Its parts are looked through once, and not by each that goes through its keys.
        written = dict(writes)
        super().write(written, cleared)
        self._kept.journal.append((written, list(cleared)))

    def flush(self) -> None:
        """Everything so far outlives a crash."""
        here().check()
        self._kept.settle(len(self._kept.journal))

    def condemn(self, _why: str) -> None:
        """Closing removes it."""
        self._condemned = True

    def close(self) -> None:
        """Flush and close, once; what is damaged is removed instead."""
        if here().current.host.dead or self._closed:
            return
        self._closed = True
        self._kept.settle(len(self._kept.journal))
        self._kept.open = False
        if self._condemned or self._reads_left == 0:
            wipe(self._path)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the simulated store has no {name}: give it one")


def wipe(path: object) -> None:
    """Stands in for `rocks.wipe`."""
    disk: Disk = here().current.host.disk  # type: ignore[attr-defined]
    disk.kept.pop(str(path), None)


def move(path: object, to: object) -> None:
    """Stands in for `rocks.move`."""
    disk: Disk = here().current.host.disk  # type: ignore[attr-defined]
    kept = disk.kept.pop(str(path), None)
    if kept is not None:
        disk.kept[str(to)] = kept


class SimRoom:
    """`DataDisk`: there is always room."""

    def __init__(self, _folder: object) -> None:
        self.free_bytes, self.problem = 1 << 40, ""

    def look(self) -> None:
        """Look again."""
