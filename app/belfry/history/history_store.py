"""The history at rest: records by time and by schedule, counters by the hour.

Records and the offset behind them go into the store in one batch, so each record is counted once,
in spite of crashes.  A store may hold rows of a partition that another worker follows now, so each
query says which partitions count.

A query looks at a bounded number of rows, shown or not, and returns where the rest begins.  So it
never holds up the loop that it runs in for long.

    rows      r1 r2 r3 r4 r5 …        limit 2, of which r2 belongs to another worker's partition
    page      r1, r3                  rest: r4
    next      from r4 on

One schedule's records may be asked for from the newest on as well.  A page of those costs the same
whether the schedule has ten records or a million.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple

from belfry.history import counters, layout
from belfry.history.chunks import MOST, packed, record_in, records_in
from belfry.history.fire_rows import FireRows
from belfry.history.layout import DAY_MS, HOUR_MS, OFFSET_BYTES, SortKey
from belfry.schedules.outcomes import Outcome
from belfry.store.ordered_map import Parted, Range, TwoWayMap
from belfry.wire.lifecycle_heads import Headline, attempt_in, headline
from belfry.wire.missed import missed_in

EXAMINE: Final = 10_000
COUNT_ROWS: Final = 1_000
_ENDS: Final = frozenset({Outcome.DELIVERED, Outcome.FAILED})
# Of these outcomes further fields count as well.
_DETAILED_OUTCOMES: Final = _ENDS | {Outcome.FIRED, Outcome.MISSED}


class HistoryEntry(NamedTuple):
    """One lifecycle record: its offset, the fields of its head, and its body without a frame."""

    offset: int
    head: Headline
    body: bytes


# Tenant, and instant (epoch ms).
_TenantInstant = tuple[bytes, int]
# Offset, head and body of a record: a `HistoryEntry`, or a tuple like it.
_Note = tuple[int, Headline, bytes]
# Rows by time, each with its place; None in place of a record that is not to be shown.
Walk = Iterator[tuple[SortKey, bytes | None]]


class HistoryPage(NamedTuple):
    """Some records with their places, and where the rest begins; None where no row follows.

    A page may be empty and have a rest: then none of its rows was to be shown.
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


def _count(value: list[int], alike: Sequence[_Note]) -> int:
    """Count records in place; returns the further attempts of deliveries that ended."""
    outcomes = {head[2] for _, head, _ in alike}
    if len(outcomes) == 1 and not outcomes & _DETAILED_OUTCOMES:
        counters.count(value, outcomes.pop(), len(alike), in_time=False)
        return 0
    retries = 0
    for _, (_, _, outcome, at_ms, due_ms), body in alike:
        in_time = due_ms is not None and at_ms - due_ms <= counters.IN_TIME_MS
        times = missed_in(body) if outcome is Outcome.MISSED else 1
        counters.count(value, outcome, times, in_time=in_time)
        if outcome in _ENDS:
            retries += max(0, (attempt_in(body) or 1) - 1)
    return retries


class HistoryStore:
    """One worker's history; written by one thread, read by any.

    `rows` is the map that holds it: RocksDB in a worker, memory in tests.
    """

    def __init__(self, rows: TwoWayMap) -> None:
        self._rows = rows
        self.fires = FireRows(rows)

    def position(self, partition: int) -> int | None:
        """The offset to read next, None where no record was read yet."""
        stored = self._rows.get(layout.position_key(partition))
        return None if stored is None else layout.read_offset(stored)

    def add(self, partition: int, notes: Iterable[_Note], next_offset: int) -> None:
        """Keep records of a partition, each a `HistoryEntry`, and go on behind them; one batch.

        Offsets rise.  A head may lack the due instant, except for a fire. Records of one tenant and
        instant share a row, and most of the work for it. A record whose tenant or instant does not
        fit into keys is not belfry's, and is passed over.
        """
        grouped: defaultdict[_TenantInstant, list[_Note]] = defaultdict(list)
        for note in notes:
            head = note[1]
            grouped[head[0], head[3]].append(note)
        for odd in [each for each in grouped if not layout.fits(*each)]:
            del grouped[odd]
        by_schedule: dict[bytes, dict[bytes, bytes | None]] = {}
        writes: dict[bytes, bytes | None] = {**self._counted(partition, grouped)}
        for (tenant, at_ms), alike in grouped.items():
            by_time, by_day = layout.prefixes(tenant, at_ms // DAY_MS)
            for at in range(0, len(alike), MOST):
                some = alike[at : at + MOST]
                place, row, keys = packed(at_ms, partition, some)
                writes[by_time + place] = row
                leading: dict[bytes, bytes | None] = dict.fromkeys(keys, place[-OFFSET_BYTES:])
                if (others := by_schedule.setdefault(by_day, leading)) is not leading:
                    others.update(leading)
        writes[layout.position_key(partition)] = layout.pack_offset(next_offset)
        self._rows.write(Parted(*by_schedule.items(), (b"", writes)))

    def _counted(
        self, partition: int, grouped: Mapping[_TenantInstant, Sequence[_Note]]
    ) -> dict[bytes, bytes]:
        """The rows of the counters that these records change; the old ones are read together."""
        hours: defaultdict[tuple[bytes, int], list[Sequence[_Note]]] = defaultdict(list)
        for (tenant, at_ms), alike in grouped.items():
            hours[tenant, at_ms // HOUR_MS].append(alike)
        keys = [layout.counters_key(tenant, hour, partition) for tenant, hour in hours]
        rows = self._rows.get_many(keys)
        written: dict[bytes, bytes] = {}
        for (tenant, hour), key, row in zip(hours, keys, rows, strict=True):
            value = counters.empty() if row is None else counters.unpack(row)
            retries = sum(_count(value, alike) for alike in hours[tenant, hour])
            written[key] = counters.pack(value)
            if retries:
                retried = layout.retries_key(tenant, hour, partition)
                written[retried] = layout.pack_offset(self._retries(retried) + retries)
        return written

    def _retries(self, key: bytes) -> int:
        stored = self._rows.get(key)
        return 0 if stored is None else layout.read_offset(stored)

    def of_tenant(
        self, tenant: bytes, start: SortKey, until_ms: int, partitions: Collection[int]
    ) -> Walk:
        """A tenant's records by time, from a place on; None for those of other partitions."""
        if start.at_ms >= until_ms:
            return
        low, high = layout.time_range(tenant, start, until_ms)
        # The next record lies here or behind: where a topic was read anew, rows overlap.
        rest = start
        for key, row in chain(self._around(tenant, start, low), self._rows.scan(low, high)):
            place = layout.place_in(key)
            if place.partition not in partitions:
                if place >= rest:
                    yield place, None
                continue
            for offset, body in records_in(row, place.offset):
                if (found := place._replace(offset=offset)) >= rest:
                    yield found, body
            rest = max(rest, layout.after(found))

    def _around(self, tenant: bytes, start: SortKey, low: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The row before a place whose records may reach to that place, if there is one."""
        if start.offset:
            first = layout.by_time(tenant, layout.first_of(start))
            yield from islice(self._rows.scan_back(first, low), 1)

    def of_schedule(self, tenant: bytes, schedule_id: bytes, start: SortKey, until_ms: int) -> Walk:
        """One schedule's records by time, from a place on; None at the end of each day."""
        first_ms = self._first_ms(tenant)
        if first_ms is None:
            return
        for low, high in layout.days(max(start, SortKey(first_ms, 0, 0)), until_ms):
            keys = layout.schedule_range(tenant, schedule_id, low, high)
            for key, row_at in self._rows.scan(*keys):
                place = layout.place_in(key)
                yield place, self._body(tenant, place, row_at)
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
            for key, row_at in self._rows.scan_back(*keys):
                place = layout.place_in(key)
                yield place, self._body(tenant, place, row_at)
            if low > first:
                # A page may end here, and the next one has to begin behind all of this day.
                yield layout.day_before(low), None

    def _body(self, tenant: bytes, place: SortKey, row_at: bytes) -> bytes | None:
        """The record at a place, in the row whose offset is given, or in its own row if none is.

        None where the record was forgotten.
        """
        offset = layout.read_offset(row_at) if row_at else place.offset
        row = self._rows.get(layout.by_time(tenant, place._replace(offset=offset)))
        return None if row is None else record_in(row, offset, place.offset)

    def _first_ms(self, tenant: bytes) -> int | None:
        first = next(iter(self._rows.scan(*layout.tenant_range(tenant))), None)
        return None if first is None else layout.place_in(first[0]).at_ms

    def statistics(
        self, tenant: bytes, from_ms: int, until_ms: int, partitions: Collection[int]
    ) -> Counted:
        """Counters of the first hours that a range touches; always of whole hours."""
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
        """Further attempts by hour; there are at most as many rows as rows of counters."""
        found: Counter[int] = Counter()
        for key, stored in self._rows.scan(*layout.retry_range(tenant, from_ms, until_ms)):
            hour, partition = layout.hour_in(key)
            if partition in partitions:
                found[hour * HOUR_MS] += layout.read_offset(stored)
        return dict(found)

    def tenants(self) -> Iterator[tuple[bytes, int]]:
        """Tenants with records, each with the instant of its first; a seek for each tenant."""
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
