"""Rows of a key group as they leave a partition, and as they come to another one.

    row                      here                              there
    schedule that waits      leaves its place                  waits by its instant, behind what
                                                               came before it
    marker, answer, job      a tombstone                       kept for the rest of its time
    awaited fire             its locks are forgotten           closes the same locks
    calendar                 a tombstone                       followed again, if it was changed

Data that lies in the local store alone (places, buckets, counts) follows from the rows, as in a
replay.  A pending schedule is ordered by the offset of the record that brought it: the offset of
its request may be that of another schedule there.
"""

from __future__ import annotations

from belfry.engine.arrived_rows import ArrivedRows
from belfry.engine.calendars import Calendars
from belfry.engine.step import Step
from belfry.engine.waiting import Waiting
from belfry.engine.zone_change import ZoneChange
from belfry.store.layout import keys
from belfry.store.layout.calendars import CALENDAR_PREFIX, CalendarRow
from belfry.store.layout.ends import kept_ms_of, kept_since_ms
from belfry.store.layout.locations import IN_PAUSED, Location, is_location
from belfry.store.layout.pending import Pending
from belfry.store.layout.pending_bytes import depends, paused
from belfry.store.layout.records import Awaited, is_marker
from belfry.store.schedules import ScheduleStore
from belfry.tenants.step_tenants import StepTenants


class MovedRows:
    """Takes rows out of one partition's state, and puts rows of others into it."""

    def __init__(
        self,
        store: ScheduleStore,
        tenants: StepTenants,
        waiting: Waiting,
        calendars: Calendars,
        zone_change: ZoneChange,
    ) -> None:
        self._store = store
        self._tenants = tenants
        self._waiting = waiting
        self._calendars = calendars
        self._zones = zone_change

    @property
    def zones(self) -> bytes:
        """By which time zone data the instants here were found, behind its size."""
        row = self._store.named(keys.ZONES_KEY) or b""
        return bytes((len(row),)) + row

    def row_of(self, name: bytes) -> bytes | None:
        """The record of the changelog under a key."""
        row = self._store.named(name)
        return self._store.pending_at(name, row) if is_location(row) else row

    # -- out of here -----------------------------------------------------------------------------

    def take(self, name: bytes, step: Step) -> bytes | None:
        """Take the row under a key out of the state; None if there is no such row."""
        row = self.row_of(name)
        if row is None:
            return None
        if name.startswith(keys.AWAITED_PREFIX):
            self._waiting.let_go(self._waiting.locks.open(name))
        elif name.startswith(CALENDAR_PREFIX):
            self._calendars.forget(name)
        else:
            self._drop(name)
        step.effects.moved = True
        return row

    def _drop(self, name: bytes) -> None:
        place = self._store.named(name)
        if is_location(place):
            self._waiting.left(keys.tenant_of(name), place)
            self._store.remove(name, place)
        else:
            self._store.note(name, None)

    # -- into here -------------------------------------------------------------------------------

    def put(self, arrived: ArrivedRows, step: Step) -> None:
        """Put rows that came in a record into the state."""
        for name, row, decoded in arrived.rows:
            step.effects.room -= len(row)
            if isinstance(decoded, Awaited):
                if self._store.named(name) is None:
                    self._waiting.locks.take_in(name, decoded)
            elif isinstance(decoded, CalendarRow):
                # Its followers are here, and some may have left before they were looked at.
                self._calendars.note(name, decoded._replace(cursor=""), step)
            elif decoded is not None:
                self._keep(name, row, decoded, step)
            else:
                self._remember(name, row)
        self._zones.arrived(arrived.zones)

    def _keep(self, name: bytes, record: bytes, row: Pending, step: Step) -> None:
        """Let a schedule wait here."""
        if self._store.named(name) is not None:
            self._drop(name)
        step.effects.tenants.add(row.tenant.decode())
        self._store.rewrite(name, record)
        if paused(record):
            self._store.move(name, record, Location(IN_PAUSED, *row.sort_key))
        elif depends(record):
            self._waiting.dependents.hold(row, record)
        else:
            self._waiting.put(row, record, step)

    def _remember(self, name: bytes, row: bytes) -> None:
        """Keep a row that is over, for the rest of its time."""
        if is_location(self._store.named(name)):
            self._drop(name)
        self._store.note(name, row)
        since_ms = kept_since_ms(row)
        if since_ms is not None:
            kept_ms = self._tenants.remember_ms(name) if is_marker(row) else kept_ms_of(row)
            self._store.ends.keep_on(name, since_ms, kept_ms)
