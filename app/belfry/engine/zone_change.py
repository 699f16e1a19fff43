"""A change of the zones: pending instants by a rule of the clock are derived anew, once.

The changelog says by which version of the time zone data the partition's instants were found.  An
owner with another version looks at every schedule, some with each sweep, and writes its own version
when it has seen all.  Until then a schedule that comes due is looked at first: fired at its old
instant, it might fire again at the new one.

    old data      8 fired        9 pending
    new data                8 ◄──┘ not moved there, where its new instant is the one that fired
    ──────────────────┴─────┴────┴──────► UTC

An instant that is over by now is never an answer: one of the same schedule may have fired there,
and a second fire would have its id.  A row in a backlog is looked at where it is not due yet, as
are all rows of an isolated tenant.

    12:00:00.000   a worker with tzdata 2027a takes over; the changelog says 2026c
    12:00:00.230   it fires; each due schedule is derived anew first
    12:00:00.500   sweep after sweep looks at some thousand names
    12:04:10.000   all are seen: 2027a is written down, in the step of the last sweep

A new owner before 12:04:10 begins again from the first name; schedules that were moved already are
found to be right.  That holds for one with the old data as well, for by then some instants are by
the new: so the owner's first step takes the old version away, and until a walk is at its end the
changelog names none.

    12:00:00.000   tzdata 2027a takes over: its first step takes 2026c away
    12:01:00.000   2026c takes over again: no version is written down, so it looks at all
"""

from __future__ import annotations

from typing import Final

from belfry.engine.culprits import FAULTS, ZONES, Culprits
from belfry.engine.step import Step
from belfry.engine.undo import UndoLog
from belfry.engine.unforeseen import pass_over
from belfry.engine.waiting import Waiting
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.rule import ZONED, leaves_out
from belfry.schedules.triggers import trigger_of, zones
from belfry.store.layout import keys
from belfry.store.layout.locations import (
    IN_BACKLOG,
    IN_PAUSED,
    IN_TIMELINE,
    Location,
    decode_location,
    is_location,
)
from belfry.store.layout.pending import KIND_CODES, Pending, decode_pending
from belfry.store.layout.pending_bytes import has_rule, next_record, paused
from belfry.store.layout.records import encode_zones
from belfry.store.readable import why_unreadable
from belfry.store.schedules import ScheduleStore

# Kinds whose instants are times on a wall.
ON_A_WALL: Final = frozenset(KIND_CODES[name] for name in ZONED)
LOOKED_AT: Final = frozenset({IN_TIMELINE, IN_PAUSED, IN_BACKLOG})
# Most are looked at and left alone, so a sweep may see more of them than it would end markers.
MORE: Final = 20

Found = tuple[Pending, bytes]


class ZoneChange:
    """Derives the pending occurrences of one partition anew, where the data has changed."""

    def __init__(
        self, store: ScheduleStore, waiting: Waiting, undo: UndoLog, culprits: Culprits
    ) -> None:
        self._culprits = culprits
        self._store = store
        self._waiting = waiting
        self._undo = undo
        self._cursor: bytes | None = None
        self._version = encode_zones(zones.VERSION)
        known = store.named(keys.ZONES_KEY) == self._version
        self.under_way = not known and store.state() is not None

    def begin(self) -> None:
        """From here on some instants may be by this version, and others by the one of before."""
        if self.under_way and self._store.named(keys.ZONES_KEY) is not None:
            self._store.note(keys.ZONES_KEY, None)

    def settle(self) -> None:
        """All instants are as this version of the data says."""
        self._undo.attribute(self, "under_way")
        self.under_way = False
        self._store.note(keys.ZONES_KEY, self._version)

    def arrived(self, version: bytes) -> None:
        """Schedules came whose instants are by this version of the data (its row, or empty)."""
        if version == self._version:
            return
        for attribute in ("under_way", "_cursor"):
            self._undo.attribute(self, attribute)
        # A walk that is under way may have passed their names.
        self.under_way, self._cursor = True, None
        # Those that were here are by another one, so neither version holds for all.
        self.begin()

    def sweep(self, step: Step, at_most: int) -> None:
        """Look at the next schedules, a multiple of `at_most`."""
        if not self.under_way:
            return
        some = at_most * MORE
        rows = list(self._store.names(self._cursor, some))
        over_ms = max(step.now_ms, step.scan.reached_ms)
        looked_at = 0
        for name, _ in rows:
            if self._culprits.enough:
                break
            looked_at += 1
            # It may have moved in this very step.
            row = self._store.named(name)
            if row is None or not is_location(row):
                continue
            if self._culprits.some and pass_over(self._culprits, (ZONES, name), step):
                continue
            try:
                self._look(name, row, over_ms, step)
            except FAULTS as error:
                self._culprits.blame(error, (ZONES, name))
                raise
        self._undo.attribute(self, "_cursor")
        if looked_at == some or looked_at < len(rows):
            self._cursor = rows[looked_at - 1][0] if looked_at else self._cursor
        else:
            self.settle()

    def derived(self, row: Pending, record: bytes, over_ms: int, step: Step) -> Found | None:
        """The row at its new instant, where that is another; it is in the effects then.

        All that is due up to `over_ms` has fired, or fires in this step.
        """
        if not _on_a_wall(row) or why_unreadable(record):
            return None
        trigger = trigger_of(row.extra)
        nominal_ms = trigger.rederived_ms(row.nominal_ms, row.accepted_ms, over_ms)
        if nominal_ms is None or nominal_ms == row.nominal_ms:
            return None
        name = row.name
        due_ms = nominal_ms + (jitter_ms(name, nominal_ms, row.jitter_ms) if row.jitter_ms else 0)
        kept = next_record(record, due_ms, nominal_ms, row.occurrence)
        self._store.rewrite(name, kept)
        step.effects.rederived += 1
        return row.at(due_ms, nominal_ms), kept

    def _look(self, name: bytes, place: bytes, over_ms: int, step: Step) -> None:
        where, due_ms, _, _ = decode_location(place)
        if where not in LOOKED_AT or (where == IN_BACKLOG and due_ms <= over_ms):
            # Due already: it fires, or is late, as it was to.
            return
        record = self._store.pending_at(name, place)
        if not has_rule(record):
            return
        found = self.derived(decode_pending(record), record, over_ms, step)
        if found is None:
            return
        row, kept = found
        self._waiting.left(row.tenant, place)
        self._store.remove(name, place)
        self._store.rewrite(name, kept)
        if paused(kept):
            self._store.move(name, kept, Location(IN_PAUSED, *row.sort_key))
        else:
            self._waiting.put(row, kept, step)


def _on_a_wall(row: Pending) -> bool:
    """Whether a zone matters to its instants: to their rule, to `except_cron` or to a calendar."""
    return row.kind in ON_A_WALL or leaves_out(row.extra)
