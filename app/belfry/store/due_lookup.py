"""Pending schedules of a tenant in a range of due instants: pages, by its own rows alone.

The timeline holds everybody's rows by time, so the cost of a range of it depends on the rows of
others.  Names lie tenant by tenant, and the location under a name tells when it is due.  So a page
looks at the next `examine` names (a *window*) and gives the rows that it finds there in due order:

    names      a  b  c  d  e │ f  g  h  i  j │ k …          window of five
    due        9  2  -  7  4 │ 3  8  1  -  - │
    pages      b e │ d a     │ h f │ g                      of two: 2 4 │ 7 9 │ 1 3 │ 8

A tenant with fewer names than a window has its list in due order; of a larger one each window is.
A schedule behind an ack lock or in a queue of its tenant has its location under its name as well.
Paused schedules wait for no instant and show by name only.  How many are due in each minute is told
by minute buckets, without a look at any schedule (`buckets.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from struct import Struct
from typing import Final, NamedTuple

from belfry.store.layout import keys
from belfry.store.layout.keys import following
from belfry.store.layout.locations import (
    IN_PAUSED,
    IN_TIMELINE,
    Location,
    decode_location,
    is_location,
)
from belfry.store.lookup import CHUNK, Page, ScheduleStatus, Wanted, is_selected, read_rows
from belfry.store.ordered_map import OrderedMap

# Of the last one on a page: due instant and sequence, and how long the name is that begins the
# window.  That name follows, and the one before which the window ends; empty: where the names end.
_CURSOR: Final = Struct(">qQH")
_BEFORE_ALL: Final = (-(2**63), 0)

Waits = tuple[Location, bytes, bytes]


class Window(NamedTuple):
    """Names from one on, up to another (empty: to the last), and behind which sort_key to go on."""

    begin: bytes = b""
    end: bytes = b""
    sort_key: keys.SortKey = _BEFORE_ALL

    def encode(self) -> bytes:
        """As a cursor holds it."""
        return _CURSOR.pack(*self.sort_key, len(self.begin)) + self.begin + self.end


def _window_of(after: bytes | None) -> Window:
    """The place of a cursor; one that was made up begins anywhere, but within the range."""
    if after is None or len(after) < _CURSOR.size:
        return Window()
    due_ms, seq, size = _CURSOR.unpack_from(after)
    names = after[_CURSOR.size :]
    return Window(names[:size], names[size:], (due_ms, seq))


def due_page(
    rows: OrderedMap, wanted: Wanted, after: bytes | None, now_ms: int, *, limit: int, examine: int
) -> Page:
    """At most `limit` schedules that are due in the range; `after` is that of the page before.

    The first page of a window looks at `examine` names, a later one at those between the same two:
    at most twice as many, should names have been added.
    """
    window = _window_of(after)
    most = 2 * examine if window.sort_key > _BEFORE_ALL else examine
    examined, last, waits = _look(rows, wanted, window, most)
    end = window.end if last is None else last + b"\0"
    found: list[ScheduleStatus] = []
    behind = [each for each in waits if each[0][1:3] > window.sort_key]
    left = sorted(behind, key=lambda each: each[0][1:3])
    for location, standing in _standings(rows, wanted, left, now_ms):
        found.append(standing)
        if len(found) == limit:
            more = Window(window.begin, end, (location.due_ms, location.seq))
            return Page(found, examined, more.encode())
    return Page(found, examined, Window(end).encode() if end else None)


def _look(
    rows: OrderedMap, wanted: Wanted, window: Window, most: int
) -> tuple[int, bytes | None, list[Waits]]:
    """The rows within the range in a window; how many names it has, and the last if it is cut."""
    first = keys.NAMED_PREFIX + wanted.tenant + b"/" + wanted.prefix
    end = min(following(first), window.end) if window.end else following(first)
    begin = max(first, window.begin)
    names = list(islice(rows.scan(begin, end), most)) if begin < end else []
    waits = [
        (location, key, row)
        for key, row in names
        if is_location(row)
        and (location := decode_location(row)).where != IN_PAUSED
        and wanted.in_range(location.due_ms)
    ]
    return len(names), names[-1][0] if names and len(names) == most else None, waits


def _standings(
    rows: OrderedMap, wanted: Wanted, waits: list[Waits], now_ms: int
) -> Iterator[tuple[Location, ScheduleStatus]]:
    """Those that are wanted, without their payloads; their records are read as they are needed."""
    for start in range(0, len(waits), CHUNK):
        some = waits[start : start + CHUNK]
        chunk = [(key, row) for _, key, row in some]
        for (location, _, _), (_, standing) in zip(
            some, read_rows(rows, chunk, now_ms), strict=True
        ):
            if standing is None or not is_selected(standing, wanted):
                continue
            row = standing.pending
            # One that moved since its location was read may be due at another time, or at none.
            if row is not None and (location.where != IN_TIMELINE or wanted.in_range(row.due_ms)):
                yield location, standing.without_payload()
