"""A change of the zones: what is pending by a rule of the clock is derived anew, once.

The changelog says by which version of the time zone data the partition's instants were found.  An
owner with another version looks at every schedule, some with each sweep, and writes its own version
when it has seen all.  Until then a schedule that comes due is looked at first: fired at its old
instant, it might fire again at the new one.

    old data      8 fired        9 pending
    new data                8 ◄──┘ not moved there, where its new instant is the one that fired
    ──────────────────┴─────┴────┴──────► UTC

What is over by now is never an answer: an instant of the same schedule may have fired there, and a
second fire would have its id.  What waits in a backlog is looked at where it is not due yet, as all
is that belongs to an isolated tenant.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from belfry.engine.effects import Effects
from belfry.engine.waiting import SCHEDULE_ID, SEQ, TENANT, Waiting
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.rule import ZONED
from belfry.schedules.triggers import trigger_of, zones
from belfry.store import keys
from belfry.store.readable import why_unreadable
from belfry.store.records import (
    IN_BACKLOG,
    IN_PAUSED,
    IN_TIMELINE,
    KIND_CODES,
    PLACE,
    PendingRow,
    decode_place,
    decode_row,
    encode_zones,
    next_record,
    paused,
)
from belfry.store.schedules import ScheduleStore

NOMINAL: Final = 1
ACCEPTED: Final = 2
OCCURRENCE: Final = 6
KIND: Final = 7
JITTER: Final = 9
RULE: Final = 16
# Kinds whose instants are times on a wall.
ON_A_WALL: Final = frozenset(KIND_CODES[name] for name in ZONED)
KIND_AT: Final = 2
LOOKED_AT: Final = frozenset({IN_TIMELINE, IN_PAUSED, IN_BACKLOG})
# Most are looked at and left alone, so a sweep may see more of them than it would end markers.
MORE: Final = 20

Found = tuple[PendingRow, bytes]


class ZoneChange:
    """Derives the pending occurrences of one partition anew, where the data has changed."""

    def __init__(self, store: ScheduleStore, waiting: Waiting) -> None:
        self._store = store
        self._waiting = waiting
        self._cursor = keys.NAMED_PREFIX
        self._version = encode_zones(zones.VERSION)
        known = store.named(keys.ZONES_KEY) == self._version
        self.under_way = not known and store.state() is not None

    def restart(self) -> None:
        """Begin again: the last steps were not committed."""
        self._cursor = keys.NAMED_PREFIX
        known = self._store.named(keys.ZONES_KEY) == self._version
        self.under_way = not known and self._store.state() is not None

    def settle(self, effects: Effects) -> None:
        """All instants are as this version of the data says."""
        self.under_way = False
        effects.rows[keys.ZONES_KEY] = self._version
        self._store.set_named(keys.ZONES_KEY, self._version)

    def sweep(self, now_ms: int, at_most: int, effects: Effects) -> None:
        """Look at the next schedules, a multiple of `at_most`."""
        if not self.under_way:
            return
        some = at_most * MORE
        rows = list(islice(self._store.rows.scan(self._cursor, keys.NAMED_END), some))
        over_ms = max(now_ms, self._waiting.reach.newest_ms)
        for key, _ in rows:
            # It may have moved in this very step.
            row = self._store.named(key[1:])
            if row is not None and row[1] == PLACE:
                self._look(key[1:], row, over_ms, effects)
        if len(rows) == some:
            self._cursor = rows[-1][0] + b"\0"
        else:
            self.settle(effects)

    def derived(
        self, row: PendingRow, record: bytes, over_ms: int, effects: Effects
    ) -> Found | None:
        """The row at its new instant, where that is another; it is in the effects then.

        What is due up to `over_ms` has fired, or fires in this step.
        """
        if row[KIND] not in ON_A_WALL or why_unreadable(record):
            return None
        trigger = trigger_of(row[RULE])
        nominal_ms = trigger.rederived_ms(row[NOMINAL], row[ACCEPTED], over_ms)
        if nominal_ms is None or nominal_ms == row[NOMINAL]:
            return None
        name = row[TENANT] + b"/" + row[SCHEDULE_ID]
        due_ms = nominal_ms + (jitter_ms(name, nominal_ms, row[JITTER]) if row[JITTER] else 0)
        kept = effects.rows[name] = next_record(record, due_ms, nominal_ms, row[OCCURRENCE])
        effects.rederived += 1
        return (due_ms, nominal_ms, *row[2:]), kept

    def _look(self, name: bytes, place: bytes, over_ms: int, effects: Effects) -> None:
        where, due_ms, _ = decode_place(place)
        if where not in LOOKED_AT or (where == IN_BACKLOG and due_ms <= over_ms):
            # Due already: it fires, or is late, as it was to.
            return
        record = self._store.pending_at(name, place)
        if record[KIND_AT] not in ON_A_WALL:
            return
        found = self.derived(decode_row(record), record, over_ms, effects)
        if found is None:
            return
        row, kept = found
        self._waiting.left(row[TENANT], place)
        self._store.remove(name, place)
        if paused(kept):
            self._store.put(name, kept, (IN_PAUSED, row[0], row[SEQ]))
        else:
            self._waiting.keep(row, kept)
