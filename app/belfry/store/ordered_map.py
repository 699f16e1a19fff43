"""The port that stores hide behind: an ordered map of bytes that takes a batch in one piece.

`MemoryMap` serves tests and the simulator; the RocksDB adapter is `host/rocks.py`.  One suite,
`tests/conformance`, holds for both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol
from weakref import WeakSet

Range = tuple[bytes, bytes]
# So many pairs are read at once: to remember a scan costs more.
FEW: Final = 16


class Damaged(Exception):
    """A store has lost writes: close it, and rebuild it from the changelog.

    An adapter raises it where bytes cannot be read, and the store of schedules where rows
    contradict one another.  No retry on the same rows helps.
    """


class OrderedMap(Protocol):
    """Bytes to bytes, in byte order."""

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None."""

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """The values of keys, in their order."""

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs from `start` (inclusive) up to `end` (exclusive), in order."""

    def write(self, writes: Mapping[bytes, bytes | None], cleared: Sequence[Range] = ()) -> None:
        """Clear the ranges [start, end), then put or (None) delete: all of it or nothing."""


class TwoWayMap(OrderedMap, Protocol):
    """An ordered map that is read from its end as well."""

    def scan_back(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs from before `end` (exclusive) down to `start` (inclusive), the last one first."""


class Parted(Mapping[bytes, "bytes | None"]):
    """Writes in parts: the rows of each lie behind a prefix.

    A step has thousands of rows under names, which lie behind a letter.  A map sorts each part by
    itself, and makes a key when it writes it, so nobody makes a dictionary of all keys first.

        (b"k", {b"shop/a": …})  (b"", {b"t…": …})      the rows kshop/a and t…

    No key is in two parts.
    """

    __slots__ = ("parts",)

    def __init__(self, *parts: tuple[bytes, Mapping[bytes, bytes | None]]) -> None:
        """Prefixes and rows, in the order of the prefixes."""
        self.parts = parts

    def __len__(self) -> int:
        """How many rows there are."""
        return sum(len(rows) for _, rows in self.parts)

    def __iter__(self) -> Iterator[bytes]:
        """The keys, part by part."""
        return (prefix + key for prefix, rows in self.parts for key in rows)

    def __getitem__(self, key: bytes) -> bytes | None:
        """The value under a key; None: it is deleted."""
        for prefix, rows in self.parts:
            if key.startswith(prefix) and (rest := key[len(prefix) :]) in rows:
                return rows[rest]
        raise KeyError(key)


class MemoryMap:
    """An ordered map in memory.

    A scan reads the rows that are asked for and no more, from the map as it was: a write beside a
    scan that is not at its end goes into a copy.
    """

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._keys: list[bytes] = []
        # Those that somebody still holds.
        self._scans: WeakSet[Iterator[tuple[bytes, bytes]]] = WeakSet()

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None."""
        return self._values.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of keys, in their order."""
        return [self._values.get(key) for key in keys]

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs from `start` (inclusive) up to `end` (exclusive), of the map as it is now."""
        keys, values = self._keys, self._values
        low, high = bisect_left(keys, start), bisect_left(keys, end)
        if high - low <= FEW:
            return iter([(key, values[key]) for key in keys[low:high]])
        found = ((key, values[key]) for key in map(keys.__getitem__, range(low, high)))
        self._scans.add(found)
        return found

    def scan_back(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs from before `end` down to `start` (inclusive), of the map as it is now."""
        keys, values = self._keys, self._values
        places = range(bisect_left(keys, start), bisect_left(keys, end))
        found = ((key, values[key]) for key in map(keys.__getitem__, reversed(places)))
        self._scans.add(found)
        return found

    def write(self, writes: Mapping[bytes, bytes | None], cleared: Sequence[Range] = ()) -> None:
        """Clear the ranges [start, end), then put or (None) delete."""
        if self._scans:
            self._keys, self._values = self._keys.copy(), self._values.copy()
            self._scans = WeakSet()
        for start, end in cleared:
            low, high = bisect_left(self._keys, start), bisect_left(self._keys, end)
            for key in self._keys[low:high]:
                del self._values[key]
            del self._keys[low:high]
        for key, value in writes.items():
            self._put(key, value)

    def _put(self, key: bytes, value: bytes | None) -> None:
        if value is not None:
            if key not in self._values:
                self._keys.insert(bisect_left(self._keys, key), key)
            self._values[key] = value
        elif self._values.pop(key, None) is not None:
            del self._keys[bisect_left(self._keys, key)]
