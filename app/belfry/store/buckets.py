"""Minute buckets: how many schedules of each tenant are due in each minute, kept with every step.

A bucket is a tenant and a minute, how many wait in it, and their first and last due instant.  It is
derived from the pending records and lies in the local store alone, in the same batch as they do:

    step       keep  take  move  remove             the same verbs that change schedules
                 └────┬────┘
    commit     what came into each bucket, what left it   ─► row read, counted, written or deleted
    abort      nothing was written: there is nothing to undo

So a step costs one read and one write for each bucket that it touches, however many events do, and
buckets take no memory.  A bucket in which nothing waits has no row.  Beside them lies how many
schedules of a tenant wait in all, paused ones too; quotas are held against it.

A store tells up to which changelog offset its buckets go (`mbuckets`).  An older release, which
knows no buckets, leaves that behind, and then they are derived anew from all rows (`derive`).

    bucket of shop, 12:00        how many   first     last
    3 are accepted               3          :00.500   :41.000
    the first one fires          2          :00.500   :41.000      bounds now, and not exact
    the others fire              no row                            emptied: `engine/drained.py`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from struct import error as struct_error
from typing import Final

from belfry.store.committed import Committed
from belfry.store.layout import keys
from belfry.store.layout.buckets import (
    BUCKETS_END,
    BUCKETS_PREFIX,
    Bucket,
    bucket_key,
    bucket_name,
    bucket_of,
    buckets_range,
    bytes_by_tenant,
    came_into,
    decode_bucket,
    decode_waiting,
    encode_bucket,
    left_by_names,
    left_from,
    tenant_of_bucket,
)
from belfry.store.layout.records import decode_size, encode_size
from belfry.store.ordered_map import Damaged, OrderedMap

# Rows that are read at once where buckets are derived anew.
DERIVED_AT_ONCE: Final = 20_000

Came = Mapping[bytes, tuple[int, int, int]]
Rows = dict[bytes, bytes | None]


def buckets(
    rows: OrderedMap,
    tenant: bytes,
    from_ms: int,
    until_ms: int | None,
    *,
    after: bytes | None = None,
    limit: int,
) -> tuple[list[Bucket], bytes | None]:
    """Buckets of a tenant that may hold something due in a range, and where to go on.

    The ends of the range may cut a minute: its bucket is given where its bounds meet the range.
    """
    start, end = buckets_range(tenant, from_ms, until_ms)
    start = start if after is None else max(start, after)
    read = list(islice(rows.scan(start, end), limit)) if start < end else []
    found = [decode_bucket(key, row) for key, row in read]
    met = [
        each
        for each in found
        if each.last_ms >= from_ms and (until_ms is None or each.first_ms < until_ms)
    ]
    return met, read[-1][0] + b"\0" if len(read) == limit else None


class LeftBuckets:
    """The schedules that a step takes out of buckets; its overlay tells which ones come in."""

    def __init__(self, rows: OrderedMap) -> None:
        self._rows = rows
        # Committed rows that were taken, and names of buckets that removed schedules were in.
        self._taken: list[Sequence[tuple[bytes, bytes]]] = []
        self._removed: list[bytes] = []
        # How many left each bucket by way of the timeline, in a replay.
        self._left: Counter[bytes] = Counter()
        # Local keys of committed records that are gone.
        self._gone: list[bytes] = []
        self.emptied: list[Bucket] = []
        """Buckets that the last step has emptied, and not by removals alone."""
        self.waiting: dict[bytes, int] = {}
        """How many wait of each tenant of which more or fewer wait since the last step."""

    def taken(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """These committed rows leave; they may come back elsewhere."""
        self._taken.append(rows)

    def removed(self, name: bytes, key: bytes) -> None:
        """The committed record under this local key is gone; the timeline's keys tell enough."""
        self._gone.append(key)
        if key[:1] == keys.TIMELINE_PREFIX:
            due_ms, _ = keys.timeline_sort_key(key)
            self._removed.append(bucket_name(keys.tenant_of(name), due_ms))
            return
        record = self._rows.get(key)
        if record is None:
            raise Damaged(f"the place of {name!r} is empty: the store has a hole")
        self._removed.append(bucket_of(record))

    def left_timeline(self, names: Sequence[bytes], left: Sequence[bytes]) -> None:
        """Committed records of these schedules are gone from these keys of the timeline."""
        self._gone.extend(left)
        self._left.update(left_by_names(names, left))

    def rows_after(self, records: Mapping[bytes, bytes | None]) -> Rows:
        """Rows of buckets after the step, whose overlay has these records under local keys."""
        taken: Counter[bytes] = Counter()
        for rows in self._taken:
            taken.update(left_from(rows))
        left = taken.copy() if self._removed or self._left else taken
        left.update(self._removed)
        left.update(self._left)
        writes, emptied, self.waiting = changed_buckets(self._rows, came_into(records), left)
        self.emptied = [bucket for name, bucket in emptied if name in taken]
        return writes

    def grown_bytes(self, records: Mapping[bytes, bytes | None]) -> Counter[bytes]:
        """By how many bytes the waiting records of each tenant grow by the step."""
        grown = bytes_by_tenant(filter(None, records.values()))
        for rows in self._taken:
            grown.subtract(bytes_by_tenant([record for _, record in rows]))
        if self._gone:
            grown.subtract(bytes_by_tenant(filter(None, self._rows.get_many(self._gone))))
        return grown

    def clear(self) -> None:
        """The step has ended."""
        self._taken, self._removed, self._gone = [], [], []
        if self._left:
            self._left = Counter()


def changed_buckets(
    rows: OrderedMap, came: Came, left: Mapping[bytes, int]
) -> tuple[Rows, list[tuple[bytes, Bucket]], dict[bytes, int]]:
    """Rows of the buckets that a step has changed, and of how many wait of each tenant in all.

    Damaged where less than nothing would wait: then the rows were wrong before.

    The second part are the buckets in which nothing waits any more, by name, as they were; the
    third is how many wait now of each tenant of which that has changed.
    """
    names = [*came, *(name for name in left if name not in came)]
    places = [bucket_key(name) for name in names]
    writes: Rows = {}
    emptied: list[tuple[bytes, Bucket]] = []
    grown: Counter[bytes] = Counter()
    for name, place, row in zip(names, places, rows.get_many(places), strict=True):
        more, first_ms, last_ms = came.get(name, (0, _LATEST_MS, _EARLIEST_MS))
        change = more - left.get(name, 0)
        waiting = change
        if row is not None:
            had, had_first_ms, had_last_ms = _told(name, row)
            waiting += had
            first_ms, last_ms = min(first_ms, had_first_ms), max(last_ms, had_last_ms)
        if waiting < 0:
            raise Damaged(f"{waiting} schedules wait in the bucket {name!r}")
        writes[place] = encode_bucket(waiting, first_ms, last_ms) if waiting else None
        if row is not None and not waiting:
            emptied.append((name, decode_bucket(place, row)._replace(waiting=0)))
        grown[tenant_of_bucket(name)] += change
    waiting_now = _changed_tenants(rows, grown)
    for tenant, now in waiting_now.items():
        writes[keys.META_TENANT + tenant] = encode_size(now) if now else None
    return writes, emptied, waiting_now


def derive(rows: OrderedMap, offset: int) -> None:
    """Derive all buckets anew where those that a store holds do not go up to this offset."""
    if rows.get(keys.META_BUCKETS) == encode_size(offset):
        return
    tenants = (keys.META_TENANT, keys.following(keys.META_TENANT))
    rows.write({keys.META_BUCKETS: None}, [(BUCKETS_PREFIX, BUCKETS_END), tenants])
    pending = Committed(rows).all_pending()
    while some := list(islice(pending, DERIVED_AT_ONCE)):
        came = came_into({b"-%d" % number: record for number, record in enumerate(some)})
        rows.write(changed_buckets(rows, came, {})[0])
    rows.write({keys.META_BUCKETS: encode_size(offset)})


def differing(rows: OrderedMap) -> Iterator[str]:
    """The faults of the buckets of a store, by a look at all of its rows; for checks."""
    want = Counter(bucket_of(record) for record in Committed(rows).all_pending())
    seen: dict[bytes, int] = {}
    for key, row in rows.scan(BUCKETS_PREFIX, BUCKETS_END):
        seen[key[1:-5] + key[-4:]] = decode_waiting(row)[0]
    for name in sorted(want.keys() | seen.keys()):
        if want[name] != seen.get(name, 0):
            yield f"bucket {name!r} says {seen.get(name, 0)}, and {want[name]} wait"
    tenants: Counter[bytes] = Counter()
    for name, waiting in want.items():
        tenants[tenant_of_bucket(name)] += waiting
    for tenant, waiting in tenants.items():
        told = Committed(rows).waiting_of(tenant)
        if told != waiting:
            yield f"of {tenant!r} {told} are told, and {waiting} wait"


def _changed_tenants(rows: OrderedMap, grown: Mapping[bytes, int]) -> dict[bytes, int]:
    changed = [(tenant, by) for tenant, by in grown.items() if by]
    before = rows.get_many([keys.META_TENANT + tenant for tenant, _ in changed])
    now = {
        tenant: by if size is None else decode_size(size) + by
        for (tenant, by), size in zip(changed, before, strict=True)
    }
    for tenant, waiting in now.items():
        if waiting < 0:
            raise Damaged(f"{waiting} schedules of {tenant!r} wait")
    return now


def _told(name: bytes, row: bytes) -> tuple[int, int, int]:
    """The content of a bucket's row; Damaged if it is not such a row."""
    try:
        return decode_waiting(row)
    except struct_error as error:
        raise Damaged(f"the row of the bucket {name!r} cannot be read: {error}") from None


_LATEST_MS: Final = 2**63 - 1
_EARLIEST_MS: Final = -(2**63)
