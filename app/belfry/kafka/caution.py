"""How many records a reader copies at once, where unusually much has been unpacked.

    fetch ──► librdkafka unpacks a whole batch ──► copies of so many records for Python
              1 MB on the wire, up to 1 GB here    this is what is bounded

Kafka limits a batch as it is sent.  A megabyte of gzip may hold a thousand records of a megabyte
each, and librdkafka unpacks all of them before it hands out the first.  No client tells how much
that was, but the memory of the process does: where it has jumped since the last look, records are
copied a few at a time, until as many bytes have been read or memory has come down again.

In calm times a reader takes thousands at once: each call gives Python's lock away, and a busy
engine keeps it for milliseconds.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic
from typing import Final

JUMP_BYTES: Final = 128 * 1024 * 1024
FEW: Final = 16
MOST: Final = 128
SMALL_BYTES: Final = 1_000_000
# Memory may have grown for another reason: then a reader is slow for so long, and not for good.
LONGEST_S: Final = 30.0
_STATM: Final = Path("/proc/self/statm")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Resident memory of this process; 0 where the system does not tell."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except OSError:
        return 0


class Caution:
    """Says how many records one reader may copy; used by its thread alone."""

    def __init__(self) -> None:
        self._before = resident_bytes()
        self._unread = self._calm_below = 0
        self._until = 0.0
        self._few = FEW

    def at_most(self, wanted: int) -> int:
        """How many of the records that are there may be copied now, `wanted` at most."""
        now = resident_bytes()
        jump = now - self._before
        if jump > JUMP_BYTES:
            self._unread = max(self._unread, jump)
            self._calm_below = self._before + JUMP_BYTES // 2
            self._until = monotonic() + LONGEST_S
            self._few = FEW
        self._before = now
        if not self._unread:
            return wanted
        if now < self._calm_below or monotonic() > self._until:
            self._unread = 0
        return min(self._few, wanted)

    def took(self, size: int) -> None:
        """Records of so many bytes were copied."""
        if self._unread:
            self._unread = max(0, self._unread - size)
            self._few = min(2 * self._few, MOST) if size < SMALL_BYTES else FEW
