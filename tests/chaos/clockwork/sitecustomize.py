"""Imported by Python at start, where this folder is on its path: a wall clock that can be moved.

The offset, in nanoseconds, lies in the eight bytes of the file that ``CLOCK_OFFSET_FILE`` names.
It counts from the moment it is written.  Only the wall clock moves: the monotonic clock goes on,
as it does when somebody sets the clock of a machine.
"""

from __future__ import annotations

import mmap
import os
import struct
import time

_SIZE = 8


def _move_wall_clock(path: str) -> None:
    with open(path, "rb") as file:  # noqa: PTH123  # as little as possible is imported here
        offset = mmap.mmap(file.fileno(), _SIZE, prot=mmap.PROT_READ)
    true_ns, read = time.time_ns, struct.Struct("<q").unpack_from

    def time_ns() -> int:
        moved: int = true_ns() + read(offset)[0]
        return moved

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


if "CLOCK_OFFSET_FILE" in os.environ:
    _move_wall_clock(os.environ["CLOCK_OFFSET_FILE"])
