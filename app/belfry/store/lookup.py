"""Schedules of a store, by name and by prefix; for readers who change nothing.

    standing_of(rows, name, now)   one schedule, or None
    standings_of(rows, names, now) several, in two reads
    page(rows, wanted, after, now) the next schedules that are wanted, and where to go on

A list by due instant is `due_lookup.py`.

These read the ordered map itself, never an overlay, so they tell committed rows only.  They may
run in another thread than the engine: a schedule that moves between two reads is looked up again.

A page ends when it is full, when `examined` rows have been looked at, or at the end of the range;
`after` is the last key that was looked at, None at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from belfry.store.layout import keys
from belfry.store.layout.keys import following
from belfry.store.layout.locations import is_location, record_key
from belfry.store.layout.pending import Away, Pending, decode_pending
from belfry.store.layout.pending_bytes import paused, payload_bytes
from belfry.store.layout.records import (
    ENDED_CANCELLED,
    ENDED_COMPLETED,
    ENDED_FIRED,
    ENDED_MISSED,
    MARKER_MS,
    Marker,
    decode_marker,
    is_marker,
)
from belfry.store.ordered_map import OrderedMap

TRIES: Final = 8
CHUNK: Final = 64
WAITS: Final = "PENDING"
ENDS: Final = {
    ENDED_FIRED: "FIRED",
    ENDED_CANCELLED: "CANCELLED",
    ENDED_COMPLETED: "COMPLETED",
    ENDED_MISSED: "MISSED",
}
HELD: Final = "PAUSED"
STATES: Final = (WAITS, HELD, *ENDS.values())


class Moving(Exception):
    """A schedule changes place faster than it can be read: try again."""


class ScheduleStatus(NamedTuple):
    """A schedule as it stands: the pending row while it waits, the marker once it is over."""

    name: bytes
    state: str
    pending: Pending | None
    marker: Marker | None
    payload_bytes: int | None = None
    place: bytes = b""
    """The row under its name while it waits: where its record lies."""
    record: bytes = b""
    """That record."""

    def without_payload(self) -> ScheduleStatus:
        """The same, as lists show it; that a payload is away remains."""
        row = self.pending
        if row is None:
            return self
        stands = Away() if type(row.payload) is Away else None
        return self._replace(pending=row._replace(payload=stands), record=b"")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The content of a page; where a due range is given, in the order of `due_lookup.py`."""

    tenant: bytes
    prefix: bytes = b""
    due_from_ms: int | None = None
    due_until_ms: int | None = None
    state: str | None = None
    group: bytes | None = None
    event_type: bytes | None = None
    exact: bool = False
    """Whether `prefix` is the whole id."""

    @property
    def names(self) -> tuple[bytes, bytes]:
        """The changelog keys between which the names lie, by id."""
        first = self.tenant + b"/" + self.prefix
        return first, first + b"\0" if self.exact else following(first)

    @property
    def by_due(self) -> bool:
        """Whether a due range is given."""
        return self.due_from_ms is not None or self.due_until_ms is not None

    def in_range(self, due_ms: int) -> bool:
        """Whether a schedule that is due then lies in the range."""
        return (self.due_from_ms is None or due_ms >= self.due_from_ms) and (
            self.due_until_ms is None or due_ms < self.due_until_ms
        )


class Page(NamedTuple):
    """Schedules without their payloads, the rows that were looked at, and where to go on."""

    found: list[ScheduleStatus]
    examined: int
    after: bytes | None


def standing_of(rows: OrderedMap, name: bytes, now_ms: int) -> ScheduleStatus | None:
    """The schedule of this changelog key, or None; raises `Moving`."""
    for _ in range(TRIES):
        row = rows.get(keys.NAMED_PREFIX + name)
        if row is None:
            return None
        if is_marker(row):
            return _over(name, row, now_ms)
        record = rows.get(record_key(name, row))
        if record is not None:
            return _waits(name, record, row)
    raise Moving(f"{name!r} changes faster than it can be read")


def standings_of(
    rows: OrderedMap, names: Sequence[bytes], now_ms: int
) -> list[ScheduleStatus | None]:
    """The schedules of these changelog keys, None for a key without one; raises `Moving`.

    All of them take two reads of many rows.  Where rows lie on disk, that is two waits instead of
    two for each of them; and RocksDB's binding lets other threads run in such a read only.
    """
    places = [keys.NAMED_PREFIX + name for name in names]
    chunk = list(zip(places, rows.get_many(places), strict=True))
    return [standing for _, standing in read_rows(rows, chunk, now_ms)]


def page(
    rows: OrderedMap, wanted: Wanted, after: bytes | None, now_ms: int, *, limit: int, examine: int
) -> Page:
    """At most `limit` wanted schedules behind the key `after`, among the next `examine` rows."""
    start = keys.NAMED_PREFIX + wanted.tenant + b"/" + wanted.prefix
    first = start if after is None else max(start, after + b"\0")
    walk = iter(rows.scan(first, following(start)))
    found: list[ScheduleStatus] = []
    examined = 0
    last: bytes | None = None
    while examined < examine and len(found) < limit:
        chunk = list(islice(walk, min(CHUNK, examine - examined)))
        if not chunk:
            return Page(found, examined, None)
        for key, standing in read_rows(rows, chunk, now_ms):
            examined += 1
            last = key
            if standing is not None and is_selected(standing, wanted):
                found.append(standing.without_payload())
                if len(found) == limit:
                    break
    return Page(found, examined, last)


def read_rows(
    rows: OrderedMap, chunk: Sequence[tuple[bytes, bytes | None]], now_ms: int
) -> Iterator[tuple[bytes, ScheduleStatus | None]]:
    """The content of rows under names; the records of those that wait are read in one call."""
    wanted = [record_key(key[1:], row) for key, row in chunk if is_location(row)]
    records = iter(rows.get_many(wanted)) if wanted else iter(())
    for key, row in chunk:
        if not row:
            yield key, None
        elif is_location(row):
            record = next(records)
            # Gone means moved, since the walk began: the name knows where to.
            yield (
                key,
                standing_of(rows, key[1:], now_ms)
                if record is None
                else _waits(key[1:], record, row),
            )
        else:
            yield key, _over(key[1:], row, now_ms) if is_marker(row) else None


# -- judging -------------------------------------------------------------------------------------


def is_selected(standing: ScheduleStatus, wanted: Wanted) -> bool:
    """Whether a schedule is wanted, whenever it is due."""
    name, tenant = standing.name, wanted.tenant
    if not name.startswith(tenant + b"/" + wanted.prefix):
        return False
    if wanted.state is not None and standing.state != wanted.state:
        return False
    row = standing.pending
    if row is None:
        return wanted.group is None and wanted.event_type is None
    return fits(row, wanted)


def fits(row: Pending, wanted: Wanted) -> bool:
    """Whether a schedule that waits has the group and the type that are wanted."""
    return (wanted.group is None or row.group == wanted.group) and (
        wanted.event_type is None or row.event_type == wanted.event_type
    )


def in_state(wanted: Wanted, *, is_paused: bool) -> bool:
    """Whether a schedule that waits, or is paused, is in the state that is wanted."""
    return wanted.state is None or wanted.state == (HELD if is_paused else WAITS)


def _waits(name: bytes, record: bytes, place: bytes) -> ScheduleStatus:
    state = HELD if paused(record) else WAITS
    size = payload_bytes(record)
    return ScheduleStatus(name, state, decode_pending(record), None, size, place, record)


def _over(name: bytes, row: bytes, now_ms: int) -> ScheduleStatus | None:
    marker = decode_marker(row)
    if now_ms - marker.ended_ms >= MARKER_MS:
        return None
    return ScheduleStatus(name, ENDS.get(marker.how, "FIRED"), None, marker)
