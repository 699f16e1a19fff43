"""What may happen to a data directory while its worker is down: gone, old, damaged."""

from __future__ import annotations

import random
import shutil
from pathlib import Path


class Mischief:
    """Hurts one data directory, or remembers it for later."""

    def __init__(self, data_dir: Path, chance: random.Random) -> None:
        self._data_dir = data_dir
        self._old = data_dir.with_name("old-data")
        self._random = chance

    def some(self) -> str:
        """One of the tricks; its name, or nothing where it could not be done."""
        trick = self._random.choice((self.delete, self.put_back, self.remember, self.damage))
        return trick()

    def delete(self) -> str:
        """Delete the directory, or the state of one partition."""
        which = self._random.choice([self._data_dir, *self._data_dir.glob("partition-*")])
        shutil.rmtree(which, ignore_errors=True)
        return f"deleted {which.name}"

    def remember(self) -> str:
        """Keep a copy of today's state."""
        shutil.rmtree(self._old, ignore_errors=True)
        if self._data_dir.exists():
            shutil.copytree(self._data_dir, self._old)
        return "copied"

    def put_back(self) -> str:
        """Put the state of some rounds ago in place of today's."""
        if not self._old.exists():
            return ""
        shutil.rmtree(self._data_dir, ignore_errors=True)
        shutil.copytree(self._old, self._data_dir)
        return "put an older copy back"

    def damage(self) -> str:
        """Flip one byte of a table, or cut it short."""
        tables = sorted(self._data_dir.glob("partition-*/*.sst"))
        if not tables:
            return ""
        table = self._random.choice(tables)
        content = bytearray(table.read_bytes())
        at = self._random.randrange(len(content))
        if self._random.random() < 0.2:
            table.write_bytes(content[:at])
            return f"cut {table.parent.name}/{table.name} at {at}"
        content[at] ^= 1 << self._random.randrange(8)
        table.write_bytes(content)
        return f"flipped a bit of {table.parent.name}/{table.name} at {at}"
