"""A worker's heartbeat: one value for all of its partitions, and its bytes.

It names the partitions that are well, which distinguishes a partition that hangs from a worker that
is dead. They are sent as a bitmap, and Kafka keeps 4 096 bytes: enough for 14 000 partitions.

    well: 0, 1 and 5      {"format":1,"worker":"w1","well":"23"}      0x23 is 10 0011

It is stored beside a committed offset of a group without members, where only the last one is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from belfry.balance.assignment_map import read_object

FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A worker that lives, and those of its partitions that are well."""

    worker: str
    well: frozenset[int] = frozenset()

    def encode(self) -> str:
        """As it travels."""
        bits = sum(1 << partition for partition in self.well)
        told = {"format": FORMAT, "worker": self.worker, "well": f"{bits:x}"}
        return orjson.dumps(told).decode()


def read_heartbeat(told: str | None) -> Heartbeat | None:
    """A heartbeat, None where there is none, or it cannot be read."""
    found: Any = read_object((told or "").encode())
    try:
        bits = int(found["well"], 16)
        worker = str(found["worker"])
    except (ValueError, KeyError, TypeError):
        return None
    return Heartbeat(worker, frozenset(p for p in range(bits.bit_length()) if bits >> p & 1))
