"""Writes to a store while its disk fails and lies, and compares what it holds with a log.

The store is used as a partition's: rows and the offset behind them are written at once, and what a
disk took with it is read from the log again, from the offset that the store has.  One that is stuck
is closed and opened again, one that is damaged removes itself.

    python -m tests.unit.host.odd_disk FOLDER MODE_FILE SEED STEPS

It prints how often each of these was met; an exception is a promise that did not hold.  What it
does and meets on its way it says on its standard error.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from time import monotonic
from typing import Final

from belfry.host.rocks import RocksMap
from belfry.store.ordered_map import Damaged

OFFSET: Final = b"\0offset"
NAMES: Final = 400
MODES: Final = "-swrmfh"
# Steps in one mode, and writes in one step.
STAYS: Final = 6
WRITES: Final = 40
# So often a store that cannot be opened is tried again with its disk as it should be.
TRIES: Final = 3

Rows = dict[bytes, bytes | None]


class Wrong(AssertionError):
    """The store holds what the log does not say, and has not told of any damage."""


class OddDisk:
    """A log, the store that follows it, and the disk below."""

    def __init__(self, folder: Path, mode: Path, seed: int) -> None:
        self.met: Counter[str] = Counter()
        self._folder, self._mode = folder, mode
        self._random = Random(seed)
        self._log: list[Rows] = []
        self._began = monotonic()
        self._be("-")
        self._store = RocksMap(folder)

    def play(self, steps: int) -> None:
        """Steps in modes that are drawn; at the end all of the log is in the store."""
        for number in range(steps):
            if number % STAYS == 0:
                self._be(self._random.choice(MODES))
            self._say(f"step {number} in mode {self.mode}")
            self._guarded(self._step)
            if number % STAYS == STAYS - 1:
                # What was written in this mode is read from the disk, and not from a cache.
                self._reopen()
                self._guarded(self._compare)
        self._be("-")
        self._say("as it should be")
        for _ in range(TRIES):
            self._reopen()
            self._guarded(self._compare)
        # What lay damaged on the disk may be met by a compaction, once more is written.
        for _ in range(TRIES):
            self._guarded(self._follow)
            self._guarded(self._compare)
        self._compare()
        if self._offset() != len(self._log):
            raise Wrong(f"{self._offset()} of {len(self._log)} writes are there")
        self._store.close()

    def _say(self, what: str) -> None:
        sys.stderr.write(f"{monotonic() - self._began:7.2f} {what}\n")

    def _be(self, mode: str) -> None:
        self._mode.write_text(mode, encoding="ascii")
        self.mode = mode

    def _step(self) -> None:
        for _ in range(WRITES):
            name = b"row %d" % self._random.randrange(NAMES)
            gone = self._random.random() < 0.2
            self._log.append({name: None if gone else self._random.randbytes(200)})
        self._follow()
        if self._random.random() < 0.7:
            self._store.flush()
        if self._random.random() < 0.3:
            self._reopen()
        self._compare()

    def _follow(self) -> None:
        """Write what the store lacks, each with the offset behind it."""
        for offset in range(self._offset(), len(self._log)):
            self._store.write({**self._log[offset], OFFSET: b"%d" % (offset + 1)})

    def _offset(self) -> int:
        return int(self._store.get(OFFSET) or b"0")

    def _compare(self) -> None:
        """See that the store is the fold of the log up to its offset, forwards and by name."""
        wanted: Rows = {}
        for rows in self._log[: self._offset()]:
            wanted |= rows
        held = {name: row for name, row in wanted.items() if row is not None}
        found = dict(self._store.scan(b"row", b"rox"))
        if found != held:
            lacks, odd = held.keys() - found.keys(), found.keys() - held.keys()
            raise Wrong(f"in mode {self.mode}: {len(lacks)} rows are missing, {len(odd)} are odd")
        for name in list(held)[:5]:
            if self._store.get(name) != held[name]:
                raise Wrong(f"in mode {self.mode}: {name!r} is another by its name")

    def _guarded(self, work: object) -> None:
        """Do something with the store; what it tells of is met by closing and opening it."""
        assert callable(work)
        try:
            work()
        except Wrong:
            raise
        except Exception as error:  # noqa: BLE001  # RocksDB has no class for a disk that fails
            self._tell(error)
            self._reopen()

    def _tell(self, error: Exception) -> None:
        kind = "damaged" if isinstance(error, Damaged) else "failed"
        self.met[f"{self.mode} {kind}"] += 1
        self._say(f"{kind} in mode {self.mode}: {error}")

    def _reopen(self) -> None:
        """Close the store and open it, with a disk as it should be where it has to be."""
        self._store.close()
        for number in range(2 * TRIES):
            try:
                self._store = RocksMap(self._folder)
            except Exception as error:  # noqa: BLE001  # as above
                self._tell(error)
                if isinstance(error, Damaged) or "Corruption" in str(error):
                    with suppress(OSError):
                        _remove(self._folder)
                if number >= TRIES:
                    self._be("-")
            else:
                self.met["opened"] += 1
                return
        raise Wrong(f"in mode {self.mode} the store cannot be opened")


def _remove(folder: Path) -> None:
    for each in folder.iterdir():
        each.unlink()


if __name__ == "__main__":
    played = OddDisk(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
    played.play(int(sys.argv[4]))
    sys.stdout.write(f"{json.dumps(played.met)}\n")
