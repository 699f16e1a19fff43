"""Minute buckets at rest: their place, their content, and the bucket that a record belongs to.

    n | tenant \\0 | minute u32      format row 0 0 │ waiting u64 │ first due i64 │ last due i64

All schedules of a tenant that are due within one minute of the epoch are one bucket, wherever they
lie: in the timeline, in a queue, behind a lock.  Paused schedules wait for no instant; they are the
bucket of a minute that never comes (`NEVER`).  The instant is that of the pending record, which the
changelog holds, so a replay finds the same buckets.

A bucket's *name* is its tenant and the four bytes of its minute.  These loops run over each event
of a step, so they cut bytes and make no values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple

from belfry.store.layout.keys import MINUTE_MS
from belfry.store.layout.pending_bytes import PAUSED
from belfry.store.layout.records import BUCKET, FORMAT

BUCKETS_PREFIX: Final = b"n"
BUCKETS_END: Final = b"o"
NEVER: Final = b"\xff\xff\xff\xff"

_BUCKET: Final = Struct(">BBBBQqq")
_MINUTE: Final = Struct(">I")
_DUE: Final = Struct(">q")
_TIMELINE: Final = ord("t")
# Of a pending record; the loops below have these numbers in them.
_FLAGS_AT: Final = 3
_DUE_AT: Final = 4
TENANT_SIZE_AT: Final = 68
TENANT_AT: Final = 88


class Bucket(NamedTuple):
    """Schedules of a tenant that are due in one minute (of the epoch): how many wait, and when.

    None of them is due before `first_ms` or after `last_ms`.  These are exact until a schedule
    leaves the bucket, and bounds from then on.
    """

    tenant: bytes
    minute: int
    waiting: int
    first_ms: int
    last_ms: int

    @property
    def minute_ms(self) -> int:
        """When the minute begins, epoch ms."""
        return self.minute * MINUTE_MS


def bucket_name(tenant: bytes, due_ms: int) -> bytes:
    """The name of the bucket in which something of this tenant is due then."""
    return tenant + _MINUTE.pack(due_ms // MINUTE_MS)


def bucket_of(record: bytes) -> bytes:
    """The name of the bucket that a pending record belongs to."""
    tenant = record[TENANT_AT : TENANT_AT + record[TENANT_SIZE_AT]]
    if record[_FLAGS_AT] & PAUSED:
        return tenant + NEVER
    return bucket_name(tenant, _DUE.unpack_from(record, _DUE_AT)[0])


def tenant_of_bucket(name: bytes) -> bytes:
    """The tenant in a bucket's name."""
    return name[:-4]


def bucket_key(name: bytes) -> bytes:
    """Where the bucket of this name lies."""
    return b"n%b\0%b" % (name[:-4], name[-4:])


def buckets_range(tenant: bytes, from_ms: int, until_ms: int | None) -> tuple[bytes, bytes]:
    """The keys between which a tenant's buckets lie that hold something of a range of instants."""
    never = _MINUTE.unpack(NEVER)[0]
    first = min(max(from_ms, 0) // MINUTE_MS, never)
    end = never if until_ms is None else min(-(-max(until_ms, 0) // MINUTE_MS), never)
    return bucket_key(tenant + _MINUTE.pack(first)), bucket_key(tenant + _MINUTE.pack(end))


def encode_bucket(waiting: int, first_ms: int, last_ms: int) -> bytes:
    """A bucket's row."""
    return _BUCKET.pack(FORMAT, BUCKET, 0, 0, waiting, first_ms, last_ms)


def decode_waiting(row: bytes) -> tuple[int, int, int]:
    """How many wait in the bucket of this row, and the first and last due instant."""
    _, _, _, _, waiting, first_ms, last_ms = _BUCKET.unpack(row)
    return waiting, first_ms, last_ms


def decode_bucket(key: bytes, row: bytes) -> Bucket:
    """The bucket that lies under this key."""
    return Bucket(key[1:-5], _MINUTE.unpack(key[-4:])[0], *decode_waiting(row))


def came_into(records: Mapping[bytes, bytes | None]) -> dict[bytes, tuple[int, int, int]]:
    """How many of the pending records under local keys belong to each bucket, by its name.

    With each count come the first and the last due instant of them.
    """
    found: dict[bytes, list[Any]] = {}
    get = found.get
    for key, record in records.items():
        # Gone, or the end of a wait for an acknowledgement, which has no record.
        if not record:
            continue
        timed = key[0] == _TIMELINE
        name = record[88 : 88 + record[68]] + key[1:5] if timed else bucket_of(record)
        due = record[4:12]
        had = get(name)
        if had is None:
            found[name] = [1, due, due]
            continue
        had[0] += 1
        if due > had[2]:
            had[2] = due
        elif due < had[1]:
            had[1] = due
    return {
        name: (count, _DUE.unpack(first)[0], _DUE.unpack(last)[0])
        for name, (count, first, last) in found.items()
    }


def left_from(rows: Sequence[tuple[bytes, bytes]]) -> Counter[bytes]:
    """How many of these rows, in the order of their local keys, belong to each bucket by name."""
    minute, last = rows[0][0][1:5], rows[-1][0]
    if last[0] == _TIMELINE == rows[0][0][0] and last[1:5] == minute:
        # As a rule, the fires of a step were due in one minute.
        tenants = Counter([record[88 : 88 + record[68]] for _, record in rows])
        return Counter({tenant + minute: count for tenant, count in tenants.items()})
    return Counter(
        [
            record[88 : 88 + record[68]] + key[1:5] if key[0] == _TIMELINE else bucket_of(record)
            for key, record in rows
        ]
    )


def left_by_names(names: Sequence[bytes], left: Sequence[bytes]) -> Counter[bytes]:
    """How many of the schedules that lay under these keys of the timeline were in each bucket.

    A schedule's name begins with its tenant and a slash.
    """
    tenants = [name.partition(b"/")[0] for name in names]
    if left and min(left)[1:5] == max(left)[1:5]:
        minute = left[0][1:5]
        return Counter({tenant + minute: count for tenant, count in Counter(tenants).items()})
    return Counter([tenant + key[1:5] for tenant, key in zip(tenants, left, strict=True)])


def bytes_by_tenant(records: Iterable[bytes]) -> Counter[bytes]:
    """How many bytes pending records take, by their tenant."""
    found: dict[bytes, int] = {}
    get = found.get
    for record in records:
        tenant = record[88 : 88 + record[68]]
        found[tenant] = get(tenant, 0) + len(record)
    return Counter(found)
