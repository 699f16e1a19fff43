"""The history at rest: records by time and by schedule, counters by the hour.

Records and the offset behind them go into the store in one batch, so each record is counted once,
whatever a crash takes away.  A store may hold rows of a partition that another worker follows now,
so each question says which partitions count.

A reader looks at a bounded number of rows and is told where the rest begins, whether the rows were
to be shown or not: a look never takes longer than the loop that it runs in can do without.

    rows      r1 r2 r3 r4 r5 …        limit 2, of which r2 belongs to another worker's partition
    page      r1, r3                  rest: r4
    next      from r4 on

One schedule's records may be asked for from the newest on as well.  A page of those costs the same
whether the schedule has ten records or a million.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final, NamedTuple

from belfry.history import counters, layout
from belfry.history.fire_rows import FireRows
from belfry.history.layout import DAY_MS, HOUR_MS, SortKey
from belfry.schedules.outcomes import Outcome
from belfry.store.ordered_map import Parted, Range, TwoWayMap
from belfry.wire.lifecycle_heads import Headline, attempt_in, headline

EXAMINE: Final = 10_000
COUNT_ROWS: Final = 1_000
_ENDS: Final = frozenset({Outcome.DELIVERED, Outcome.FAILED})


class HistoryEntry(NamedTuple):
    """One lifecycle record: its offset, what its head says, and its body without a frame."""

    offset: int
    head: Headline
    body: bytes


class _Alike:
    """Records that are alike: how their keys begin, and their rows behind that."""

    __slots__ = ("bodies", "by_day", "by_time", "ids")

    def __init__(self, by_time: bytes, by_day: bytes) -> None:
        self.by_time, self.by_day = by_time, by_day
        self.bodies: dict[bytes, bytes | None] = {}
        self.ids: dict[bytes, bytes | None] = {}

    def parts(self) -> tuple[tuple[bytes, Mapping[bytes, bytes | None]], ...]:
        """Both kinds of rows, each behind its prefix."""
        return (self.by_time, self.bodies), (self.by_day, self.ids)


# Tenant, hour, outcome, and whether it was told in time.
_Of = tuple[bytes, int, Outcome, bool]
# Rows by time, each with its place; None in place of a record that is not to be shown.
Walk = Iterator[tuple[SortKey, bytes | None]]


class HistoryPage(NamedTuple):
    """Some records with their places, and where the rest begins; None where nothing follows.

    A page may be empty and have a rest: none of the rows that were looked at was to be shown.
    """

    found: list[tuple[SortKey, bytes]]
    rest: SortKey | None


class Counted(NamedTuple):
    """Counters by the hour's first instant (epoch ms), and the hour to go on from.

    Lists are in the order of `counters.NAMES`; `rest_ms` is None at the end.  `retries` are
    attempts beyond the first, of deliveries that ended in these hours.
    """

    hours: dict[int, list[int]]
    rest_ms: int | None
    retries: dict[int, int]


def page(walk: Walk, limit: int, examine: int = EXAMINE) -> HistoryPage:
    """At most `limit` records among the next `examine` rows."""
    found: list[tuple[SortKey, bytes]] = []
    for examined, (place, body) in enumerate(walk):
        if examined == examine or (body is not None and len(found) == limit):
            return HistoryPage(found, place)
        if body is not None:
            found.append((place, body))
    return HistoryPage(found, None)


def of_outcomes(walk: Walk, wanted: Collection[Outcome]) -> Walk:
    """The same rows, those of other outcomes not to be shown; all where none is named."""
    if not wanted:
        return walk
    return (
        (place, body if body is not None and headline(body).outcome in wanted else None)
        for place, body in walk
    )


class HistoryStore:
    """One worker's history; written by one thread, read by any.

    `rows` is the map that holds it: RocksDB in a worker, memory in tests.
    """

    def __init__(self, rows: TwoWayMap) -> None:
        self._rows = rows
        self.fires = FireRows(rows)

    def position(self, partition: int) -> int | None:
        """The offset to read next, None where nothing was read yet."""
        stored = self._rows.get(layout.position_key(partition))
        return None if stored is None else layout.read_offset(stored)

    def add(
        self, partition: int, notes: Iterable[tuple[int, Headline, bytes]], next_offset: int
    ) -> None:
        """Keep records of a partition, each a `HistoryEntry`, and go on behind them; one batch.

        What many records have in common is made once: how keys of a tenant's day begin, and how
        often an outcome was told in an hour.
        """
        writes: dict[bytes, bytes | None] = {}
        told: dict[_Of, _Alike] = {}
        retries: Counter[tuple[bytes, int]] = Counter()
        pack = layout.pack_place
        for offset, (tenant, schedule_id, outcome, at_ms, due_ms), body in notes:
            in_time = due_ms is not None and at_ms - due_ms <= counters.IN_TIME_MS
            what = (tenant, at_ms // HOUR_MS, outcome, in_time)
            alike = told.get(what)
            if alike is None:
                alike = told[what] = _Alike(*layout.prefixes(tenant, at_ms // DAY_MS))
            place = pack(at_ms, partition, offset)
            alike.bodies[place] = body
            alike.ids[b"%b\0%b" % (schedule_id, place)] = b""
            if outcome in _ENDS and (attempts := attempt_in(body) or 1) > 1:
                retries[tenant, at_ms // HOUR_MS] += attempts - 1
        writes.update(self._counted(partition, told))
        for of_hour, more in retries.items():
            key = layout.retries_key(*of_hour, partition)
            writes[key] = layout.pack_offset(self._retries(key) + more)
        writes[layout.position_key(partition)] = layout.pack_offset(next_offset)
        parts = chain.from_iterable(alike.parts() for alike in told.values())
        self._rows.write(Parted(*parts, (b"", writes)))

    def _counted(self, partition: int, told: Mapping[_Of, _Alike]) -> dict[bytes, bytes]:
        """Rows of the counters that these change, which are read together."""
        keys = [layout.counters_key(tenant, hour, partition) for tenant, hour, _, _ in told]
        counted = dict(zip(keys, self._rows.get_many(keys), strict=True))
        values = {
            key: counters.empty() if row is None else counters.unpack(row)
            for key, row in counted.items()
        }
        for key, ((_, _, outcome, in_time), alike) in zip(keys, told.items(), strict=True):
            counters.count(values[key], outcome, len(alike.bodies), in_time=in_time)
        return {key: counters.pack(value) for key, value in values.items()}

    def _retries(self, key: bytes) -> int:
        stored = self._rows.get(key)
        return 0 if stored is None else layout.read_offset(stored)

    def of_tenant(
        self, tenant: bytes, start: SortKey, until_ms: int, partitions: Collection[int]
    ) -> Walk:
        """A tenant's records by time, from a place on; None for those of other partitions."""
        low, high = layout.time_range(tenant, start, until_ms)
        for key, body in self._rows.scan(low, high):
            place = layout.place_in(key)
            yield place, body if place.partition in partitions else None

    def of_schedule(self, tenant: bytes, schedule_id: bytes, start: SortKey, until_ms: int) -> Walk:
        """One schedule's records by time, from a place on; None at the end of each day."""
        first_ms = self._first_ms(tenant)
        if first_ms is None:
            return
        for low, high in layout.days(max(start, SortKey(first_ms, 0, 0)), until_ms):
            for key, _ in self._rows.scan(*layout.schedule_range(tenant, schedule_id, low, high)):
                place = layout.place_in(key)
                yield place, self._rows.get(layout.by_time(tenant, place))
            yield high, None

    def newest_of_schedule(
        self, tenant: bytes, schedule_id: bytes, start: SortKey, until: SortKey
    ) -> Walk:
        """One schedule's records from a place on, before another one, the newest first.

        None between two days.
        """
        first_ms = self._first_ms(tenant)
        if first_ms is None:
            return
        first = max(start, SortKey(first_ms, 0, 0))
        for low, high in layout.days_back(first, until):
            keys = layout.schedule_range(tenant, schedule_id, low, high)
            for key, _ in self._rows.scan_back(*keys):
                place = layout.place_in(key)
                yield place, self._rows.get(layout.by_time(tenant, place))
            if low > first:
                # A page may end here, and the next one has to begin behind all of this day.
                yield layout.day_before(low), None

    def _first_ms(self, tenant: bytes) -> int | None:
        first = next(iter(self._rows.scan(*layout.tenant_range(tenant))), None)
        return None if first is None else layout.place_in(first[0]).at_ms

    def statistics(
        self, tenant: bytes, from_ms: int, until_ms: int, partitions: Collection[int]
    ) -> Counted:
        """Counters of the first of those hours that a range touches; a whole hour at a time."""
        found: dict[int, list[int]] = {}
        low, high = layout.hour_range(tenant, from_ms, until_ms)
        before = -1
        for examined, (key, stored) in enumerate(self._rows.scan(low, high)):
            hour, partition = layout.hour_in(key)
            if examined >= COUNT_ROWS and hour != before:
                rest_ms = hour * HOUR_MS
                return Counted(found, rest_ms, self._retried(tenant, from_ms, rest_ms, partitions))
            before = hour
            if partition in partitions:
                counted = found.setdefault(hour * HOUR_MS, counters.empty())
                counters.add(counted, counters.unpack(stored))
        return Counted(found, None, self._retried(tenant, from_ms, until_ms, partitions))

    def _retried(
        self, tenant: bytes, from_ms: int, until_ms: int, partitions: Collection[int]
    ) -> dict[int, int]:
        """Further attempts by hour; each row has one of counters beside it, so they are no more."""
        found: Counter[int] = Counter()
        for key, stored in self._rows.scan(*layout.retry_range(tenant, from_ms, until_ms)):
            hour, partition = layout.hour_in(key)
            if partition in partitions:
                found[hour * HOUR_MS] += layout.read_offset(stored)
        return dict(found)

    def tenants(self) -> Iterator[tuple[bytes, int]]:
        """Tenants that have records, each with the instant of its first; a seek for each tenant."""
        start = b"h"
        while True:
            first = list(islice(self._rows.scan(start, b"i"), 1))
            if not first:
                return
            key = first[0][0]
            tenant = layout.tenant_in(key)
            yield tenant, layout.place_in(key).at_ms
            start = b"h%b\1" % tenant

    def forget(self, tenant: bytes, before_ms: int) -> None:
        """Drop a tenant's records that are older than an instant (epoch ms), by range deletions."""
        cleared: list[Range] = layout.forgotten(tenant, before_ms)
        self._rows.write({}, cleared)
