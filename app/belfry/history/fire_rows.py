"""Fires of each hour at rest, as this worker has counted them (`fire_hours.py`), by tenant.

    f | tenant \0 | hour u32              fires u64, of them at most a second late u64
    n                                     the first hour that was counted as a whole, u32

They count the commits of this worker, whichever partitions it has now: a tenant's fires are the sum
over all workers.  They cannot be rebuilt where the store is lost.  So for each hour the larger
number of these and of the records of the lifecycle topic counts: either may lack some fires, and
neither has too many.

A new store has every hour whole, because its worker has fired nothing before.  A store that held
records before fires were counted begins with the next full hour, and so does one that replaces a
damaged store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from struct import Struct
from typing import Final, NamedTuple

from belfry.history.layout import HOUR_MS
from belfry.store.ordered_map import OrderedMap

_BEGUN: Final = b"n"
_HOUR: Final = Struct(">I")
_COUNTED: Final = Struct(">QQ")
LAST_HOUR: Final = 0xFFFFFFFF
ROWS: Final = 1_000


class CountedFires(NamedTuple):
    """Fires by hour, of them at most a second late, and the hour to go on from; None at the end."""

    hours: dict[int, tuple[int, int]]
    rest: int | None


class FireRows:
    """Fires by tenant and hour; written by one thread, read by any."""

    def __init__(self, rows: OrderedMap) -> None:
        self._rows = rows

    def begin(self, now_ms: float, *, lost: bool = False) -> None:
        """Write the hour from which on fires are counted, once in the life of a store.

        `lost` says that it replaces a store that was lost.
        """
        if self._rows.get(_BEGUN) is not None:
            return
        is_new = not lost and next(iter(self._rows.scan(b"", b"\xff")), None) is None
        first = 0 if is_new else int(now_ms) // HOUR_MS + 1
        self._rows.write({_BEGUN: _HOUR.pack(first)})

    def first_hour(self) -> int:
        """The first hour that was counted as a whole; `LAST_HOUR` where none is yet."""
        stored = self._rows.get(_BEGUN)
        return LAST_HOUR if stored is None else _HOUR.unpack(stored)[0]

    def add(self, counted: Mapping[str, Mapping[int, tuple[int, int]]]) -> None:
        """Add fires of some hours to the stored ones, in one batch."""
        writes: dict[bytes, bytes | None] = {}
        for tenant, hours in counted.items():
            for hour, (fires, in_time) in hours.items():
                key = _key(tenant.encode(), hour)
                stored = self._rows.get(key)
                before = (0, 0) if stored is None else _COUNTED.unpack(stored)
                writes[key] = _COUNTED.pack(before[0] + fires, before[1] + in_time)
        if writes:
            self._rows.write(writes)

    def of_tenant(self, tenant: bytes, first: int, last: int) -> CountedFires:
        """Fires from one hour to another one, both included; at most `ROWS` hours of them."""
        low, high = _key(tenant, first), _key(tenant, last) + b"\0"
        found: dict[int, tuple[int, int]] = {}
        for key, stored in self._rows.scan(low, high):
            (hour,) = _HOUR.unpack(key[-_HOUR.size :])
            if len(found) == ROWS:
                return CountedFires(found, hour)
            found[hour] = _COUNTED.unpack(stored)
        return CountedFires(found, None)

    def tenants(self) -> Iterator[tuple[bytes, int]]:
        """Tenants that have fires here, each with its first hour; costs a seek for each tenant."""
        start = b"f"
        while first := list(islice(self._rows.scan(start, b"g"), 1)):
            key = first[0][0]
            tenant, (hour,) = key[1 : -_HOUR.size - 1], _HOUR.unpack(key[-_HOUR.size :])
            yield tenant, hour
            start = b"f%b\1" % tenant

    def forget(self, tenant: bytes, before_hour: int) -> None:
        """Drop a tenant's hours before one, by a range deletion."""
        self._rows.write({}, [(_key(tenant, 0), _key(tenant, before_hour))])


def _key(tenant: bytes, hour: int) -> bytes:
    return b"f%b\0%b" % (tenant, _HOUR.pack(min(max(hour, 0), LAST_HOUR)))
