"""Keys of the history's store; all numbers are big-endian, so that bytes sort as numbers do.

    h | tenant \\0 | at i64 | partition u16 | offset u64           records: by time (`chunks.py`)
    s | tenant \\0 | day u16 | id \\0 | at, partition, offset       first offset of that row
    c | tenant \\0 | hour u32 | partition u16                      counters of an hour
    r | tenant \\0 | hour u32 | partition u16                      its further attempts, if any
    m | partition u16                                             offset to read next
    f, n                                                          counts of fires: `fire_rows.py`

The time comes before the schedule's id, so that too old rows are a range in each kind of row.  A
tenant's name and an id have no zero byte.  The day bounds the seeks of a query for one schedule.

One record of shop/a in partition 2 at offset 7, on 2026-12-01 at 09:00 (day 20788, hour 498921):

    h shop 00 │ at │ 0002 │ 7              its body
    s shop 00 │ 5134 │ a 00 │ at │ 0002 │ 7      7: it leads to the row above
    c shop 00 │ hour │ 0002                one more counted

If it came together with the record at offset 6, of the same instant, both would lie in the row of
6, and its row by schedule would say 6.  Older releases kept a row for each record, and left that
value empty.

Forgetting deletes four ranges, whatever their content.  Costs: a query for a tenant's period is one
scan; a query for a schedule is a seek for each day of the period.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
LAST_DAY: Final = 0xFFFF
# The last instant that rows by day and by hour have room for, in the year 2149.
LAST_MS: Final = (LAST_DAY + 1) * DAY_MS - 1
LAST_PARTITION: Final = 0xFFFF
LAST_OFFSET: Final = 2**63 - 1

_PLACE: Final = Struct(">qHQ")
_DAY: Final = Struct(">H")
_HOUR: Final = Struct(">IH")
_OFFSET: Final = Struct(">Q")
OFFSET_BYTES: Final = _OFFSET.size


class SortKey(NamedTuple):
    """The position of a record in time: a total order over all partitions of the topic."""

    at_ms: int
    partition: int
    offset: int


def by_time(tenant: bytes, place: SortKey) -> bytes:
    """Key of a record."""
    return b"h%b\0%b" % (tenant, _PLACE.pack(*place))


def prefixes(tenant: bytes, day: int) -> tuple[bytes, bytes]:
    """The prefixes of the keys of a tenant's records of a day, by time and by schedule.

    The first is followed by the place, the second by the id, a zero byte and the place.
    """
    return b"h%b\0" % tenant, _begin_of_day(tenant, day)


def pack_place(at_ms: int, partition: int, offset: int) -> bytes:
    """A place as it stands at the end of both keys."""
    return _PLACE.pack(at_ms, partition, offset)


def place_in(key: bytes) -> SortKey:
    """The place at the end of either key."""
    return SortKey(*_PLACE.unpack_from(key, len(key) - _PLACE.size))


def fits(tenant: bytes, at_ms: int) -> bool:
    """Whether rows can hold events of a tenant and an instant; all events of belfry's fit.

    A body of a tenant without a name may begin like a row of several records.
    """
    return at_ms <= LAST_MS and tenant != b"" and b"\0" not in tenant


def first_of(place: SortKey) -> SortKey:
    """The first place of its instant and partition."""
    return place._replace(offset=0)


def after(place: SortKey) -> SortKey:
    """The place that follows directly."""
    return place._replace(offset=place.offset + 1)


def day_before(low: SortKey) -> SortKey:
    """The last place of the day before one that begins at `low`."""
    return SortKey(low.at_ms - 1, LAST_PARTITION, LAST_OFFSET)


def tenant_range(tenant: bytes) -> tuple[bytes, bytes]:
    """Keys of all records of a tenant."""
    return b"h%b\0" % tenant, b"h%b\1" % tenant


def time_range(tenant: bytes, start: SortKey, until_ms: int) -> tuple[bytes, bytes]:
    """Keys of a tenant's records from a place on, before an instant."""
    return by_time(tenant, start), by_time(tenant, SortKey(until_ms, 0, 0))


def days(start: SortKey, until_ms: int) -> Iterator[tuple[SortKey, SortKey]]:
    """The days from a place on, before an instant: the begin and the end of each."""
    first, last = start.at_ms // DAY_MS, min((until_ms - 1) // DAY_MS, LAST_DAY)
    for day in range(max(first, 0), last + 1):
        low = max(start, SortKey(day * DAY_MS, 0, 0))
        yield low, min(SortKey(until_ms, 0, 0), SortKey((day + 1) * DAY_MS, 0, 0))


def days_back(start: SortKey, until: SortKey) -> Iterator[tuple[SortKey, SortKey]]:
    """The days from a place on, before another one, the last day first."""
    for low, high in reversed(list(days(start, until.at_ms + 1))):
        yield low, min(high, until)


def schedule_range(
    tenant: bytes, schedule_id: bytes, low: SortKey, high: SortKey
) -> tuple[bytes, bytes]:
    """Keys of a schedule's records from a place on, up to one of the same day or to its end."""
    prefix = _of_day(tenant, schedule_id, low.at_ms // DAY_MS)
    return prefix + _PLACE.pack(*low), prefix + _PLACE.pack(*high)


def _of_day(tenant: bytes, schedule_id: bytes, day: int) -> bytes:
    return b"%b%b\0" % (_begin_of_day(tenant, day), schedule_id)


def _begin_of_day(tenant: bytes, day: int) -> bytes:
    return b"s%b\0%b" % (tenant, _DAY.pack(min(max(day, 0), LAST_DAY)))


def counters_key(tenant: bytes, hour: int, partition: int) -> bytes:
    """Key of the counters of an hour and a partition."""
    return b"c%b\0%b" % (tenant, _HOUR.pack(hour, partition))


def retries_key(tenant: bytes, hour: int, partition: int) -> bytes:
    """Key of the further attempts of deliveries that ended in an hour."""
    return b"r%b\0%b" % (tenant, _HOUR.pack(hour, partition))


def hour_in(key: bytes) -> tuple[int, int]:
    """Hour and partition of a key of counters."""
    hour, partition = _HOUR.unpack_from(key, len(key) - _HOUR.size)
    return hour, partition


def hour_range(tenant: bytes, from_ms: int, until_ms: int) -> tuple[bytes, bytes]:
    """Keys of a tenant's counters of the hours that a range touches."""
    last = -(-until_ms // HOUR_MS)
    return counters_key(tenant, from_ms // HOUR_MS, 0), counters_key(tenant, last, 0)


def retry_range(tenant: bytes, from_ms: int, until_ms: int) -> tuple[bytes, bytes]:
    """Keys of the further attempts in the hours that a range touches."""
    last = -(-until_ms // HOUR_MS)
    return retries_key(tenant, from_ms // HOUR_MS, 0), retries_key(tenant, last, 0)


def position_key(partition: int) -> bytes:
    """Key of the offset to read next."""
    return b"m%b" % _DAY.pack(partition)


def pack_offset(offset: int) -> bytes:
    """An offset at rest."""
    return _OFFSET.pack(offset)


def read_offset(stored: bytes) -> int:
    """An offset as it was packed."""
    found: int = _OFFSET.unpack(stored)[0]
    return found


def forgotten(tenant: bytes, before_ms: int) -> list[tuple[bytes, bytes]]:
    """The ranges of rows older than an instant; all but the first by whole days or hours."""
    return [
        (by_time(tenant, SortKey(0, 0, 0)), by_time(tenant, SortKey(before_ms, 0, 0))),
        (
            b"s%b\0%b" % (tenant, _DAY.pack(0)),
            b"s%b\0%b" % (tenant, _DAY.pack(before_ms // DAY_MS)),
        ),
        (counters_key(tenant, 0, 0), counters_key(tenant, before_ms // HOUR_MS, 0)),
        (retries_key(tenant, 0, 0), retries_key(tenant, before_ms // HOUR_MS, 0)),
    ]


def tenant_in(key: bytes) -> bytes:
    """The tenant of a key by time."""
    return key[1 : key.index(b"\0", 1)]
