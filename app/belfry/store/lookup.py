"""What a store says about schedules: by name, by prefix, by due range; for those who only look.

    standing_of(rows, name, now)   one schedule, or None
    standings_of(rows, names, now) several, in two reads
    page(rows, wanted, after, now) the next schedules that are wanted, and where to go on

These read the ordered map itself, never an overlay, so what they tell has been committed.  They may
run in another thread than the engine: a schedule that moves between two reads is looked up again.

A page ends when it is full, when `examined` rows have been looked at, or at the end of the range;
`after` is the last key that was looked at, None at the end.  A page by due instant walks what is
held back or catches up first, for it is due before the rest, then the timeline.  Paused schedules
wait for no instant: they show by name only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, NamedTuple

from belfry.store import keys
from belfry.store.ordered_map import OrderedMap
from belfry.store.records import (
    CONTENT_AT,
    ENDED_CANCELLED,
    ENDED_COMPLETED,
    ENDED_FIRED,
    ENDED_MISSED,
    MARKER,
    PENDING,
    PLACE,
    Marker,
    Pending,
    decode_marker,
    decode_pending,
    paused,
)
from belfry.store.schedules import record_key
from belfry.store.sweep import MARKER_MS

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
# In the order of their keys, which come before those of the timeline.
_LINES: Final = (keys.BACKLOG_PREFIX, keys.CATCH_UP_PREFIX)
_TENANT_SIZE: Final = 68
_PAYLOAD_SIZE: Final = slice(84, 88)


class Moving(Exception):
    """A schedule changes place faster than it can be read: try again."""


class Standing(NamedTuple):
    """A schedule as it stands: the pending row while it waits, the marker once it is over."""

    name: bytes
    state: str
    pending: Pending | None
    marker: Marker | None
    payload_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a page is to show; a due range selects by instant, otherwise names are walked."""

    tenant: bytes
    prefix: bytes = b""
    due_from_ms: int | None = None
    due_until_ms: int | None = None
    state: str | None = None
    group: bytes | None = None
    event_type: bytes | None = None

    @property
    def by_due(self) -> bool:
        """Whether the timeline is walked instead of the names."""
        return self.due_from_ms is not None or self.due_until_ms is not None


class Page(NamedTuple):
    """Schedules without their payloads, the rows that were looked at, and where to go on."""

    found: list[Standing]
    examined: int
    after: bytes | None


def standing_of(rows: OrderedMap, name: bytes, now_ms: int) -> Standing | None:
    """The schedule of this changelog key, or None; raises `Moving`."""
    for _ in range(TRIES):
        row = rows.get(keys.NAMED_PREFIX + name)
        if row is None:
            return None
        if row[1] == MARKER:
            return _over(name, row, now_ms)
        record = rows.get(record_key(name, row))
        if record is not None:
            return _waits(name, record)
    raise Moving(f"{name!r} changes faster than it can be read")


def standings_of(rows: OrderedMap, names: Sequence[bytes], now_ms: int) -> list[Standing | None]:
    """The schedules of these changelog keys, None for what is none; raises `Moving`.

    All of them take two reads of many rows.  Where rows lie on disk, that is two waits instead of
    two for each of them; and RocksDB's binding lets other threads run in such a read only.
    """
    places = [keys.NAMED_PREFIX + name for name in names]
    chunk = list(zip(places, rows.get_many(places), strict=True))
    return [standing for _, standing in _read(rows, b"", chunk, now_ms)]


def page(
    rows: OrderedMap, wanted: Wanted, after: bytes | None, now_ms: int, *, limit: int, examine: int
) -> Page:
    """At most `limit` wanted schedules behind the key `after`, among the next `examine` rows."""
    walk = _dues(rows, wanted, after) if wanted.by_due else _names(rows, wanted, after)
    found: list[Standing] = []
    examined = 0
    last: bytes | None = None
    while examined < examine and len(found) < limit:
        chunk = list(islice(walk, min(CHUNK, examine - examined)))
        if not chunk:
            return Page(found, examined, None)
        for key, standing in _read(rows, wanted.tenant, chunk, now_ms):
            examined += 1
            last = key
            if standing is not None and _is_wanted(standing, wanted):
                found.append(_without_payload(standing))
                if len(found) == limit:
                    break
    return Page(found, examined, last)


def counts(
    rows: OrderedMap, wanted: Wanted, after: bytes | None, *, examine: int
) -> tuple[dict[int, int], int, bytes | None]:
    """Waiting schedules per minute (epoch ms of its start), rows examined, and where to go on."""
    found: dict[int, int] = {}
    examined, last = 0, None
    walk = _dues(rows, wanted, after)
    for key, record in islice(walk, examine):
        examined += 1
        last = key
        if record is not None and _is_of(record, wanted.tenant):
            minute_ms = decode_due(record) // keys.MINUTE_MS * keys.MINUTE_MS
            found[minute_ms] = found.get(minute_ms, 0) + 1
    return found, examined, last if examined == examine else None


def decode_due(record: bytes) -> int:
    """Due instant of a pending record, epoch ms."""
    return int.from_bytes(record[4:12], "big", signed=True)


# -- walking: pairs of a key and what lies under it, in order ------------------------------------


def _names(
    rows: OrderedMap, wanted: Wanted, after: bytes | None
) -> Iterator[tuple[bytes, bytes | None]]:
    start = keys.NAMED_PREFIX + wanted.tenant + b"/" + wanted.prefix
    end = following(start)
    return iter(rows.scan(_behind(start, after), end))


def _dues(
    rows: OrderedMap, wanted: Wanted, after: bytes | None
) -> Iterator[tuple[bytes, bytes | None]]:
    """Rows of the tenant's lines, then of the timeline, within the due range."""
    low_ms = max(wanted.due_from_ms or 0, 0)
    until_ms = wanted.due_until_ms
    lines = (
        (key, record)
        for line in _LINES
        for key, record in rows.scan(
            _behind(keys.line_key(line, wanted.tenant, low_ms, 0), after),
            following(keys.line_prefix(line, wanted.tenant)),
        )
        if until_ms is None or keys.line_due(key) < until_ms
    )
    end = keys.TIMELINE_END if until_ms is None else _end_of_minute(until_ms)
    timeline = rows.scan(_behind(_start_of_minute(low_ms), after), end)
    return chain(lines, timeline)


def _start_of_minute(due_ms: int) -> bytes:
    return keys.timeline_key(due_ms // keys.MINUTE_MS * keys.MINUTE_MS, 0)


def _end_of_minute(due_ms: int) -> bytes:
    return keys.timeline_key((due_ms // keys.MINUTE_MS + 1) * keys.MINUTE_MS, 0)


def _behind(start: bytes, after: bytes | None) -> bytes:
    """The first key to look at: behind `after`, but never before the range."""
    return start if after is None else max(start, after + b"\0")


def following(prefix: bytes) -> bytes:
    """The first key behind all those with a prefix, whose last byte is not 255."""
    return prefix[:-1] + bytes((prefix[-1] + 1,))


def _read(
    rows: OrderedMap, tenant: bytes, chunk: list[tuple[bytes, bytes | None]], now_ms: int
) -> Iterator[tuple[bytes, Standing | None]]:
    """What the rows of a walk say of a tenant; places are followed in one call."""
    wanted = [record_key(key[1:], row) for key, row in chunk if row and row[1] == PLACE]
    records = iter(rows.get_many(wanted)) if wanted else iter(())
    for key, row in chunk:
        if not row:
            yield key, None
        elif row[1] == PLACE:
            record = next(records)
            # Gone means moved, since the walk began: the name knows where to.
            yield (
                key,
                standing_of(rows, key[1:], now_ms) if record is None else _waits(key[1:], record),
            )
        elif row[1] == PENDING:
            yield key, _waits(_name_in(row), row) if _is_of(row, tenant) else None
        else:
            yield key, _over(key[1:], row, now_ms) if row[1] == MARKER else None


# -- judging -------------------------------------------------------------------------------------


def _is_of(record: bytes, tenant: bytes) -> bool:
    return record[_TENANT_SIZE] == len(tenant) and record.startswith(tenant, CONTENT_AT)


def _is_wanted(standing: Standing, wanted: Wanted) -> bool:
    name, tenant = standing.name, wanted.tenant
    if not name.startswith(tenant + b"/" + wanted.prefix):
        return False
    if wanted.state is not None and standing.state != wanted.state:
        return False
    row = standing.pending
    if row is None:
        return wanted.group is None and wanted.event_type is None
    return (
        (wanted.group is None or row.group == wanted.group)
        and (wanted.event_type is None or row.event_type == wanted.event_type)
        and (wanted.due_from_ms is None or row.due_ms >= wanted.due_from_ms)
        and (wanted.due_until_ms is None or row.due_ms < wanted.due_until_ms)
    )


def _name_in(record: bytes) -> bytes:
    row = decode_pending(record)
    return b"%b/%b" % (row.tenant, row.schedule_id)


def _waits(name: bytes, record: bytes) -> Standing:
    size = int.from_bytes(record[_PAYLOAD_SIZE], "big", signed=True)
    state = HELD if paused(record) else WAITS
    return Standing(name, state, decode_pending(record), None, None if size < 0 else size)


def _over(name: bytes, row: bytes, now_ms: int) -> Standing | None:
    marker = decode_marker(row)
    if now_ms - marker.ended_ms >= MARKER_MS:
        return None
    return Standing(name, ENDS.get(marker.how, "FIRED"), None, marker)


def _without_payload(standing: Standing) -> Standing:
    row = standing.pending
    return standing if row is None else standing._replace(pending=row._replace(payload=None))
