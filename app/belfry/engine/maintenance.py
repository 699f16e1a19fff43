"""Maintenance: rounds of a partition through its rows, a few of them with each sweep.

    retention     markers, verdicts and jobs whose time is over become tombstones (`retention.py`)
    removal       what removed tenants have pending is cancelled
    zone change   pending instants by a rule of the clock are derived anew (`zone_change.py`)
    oldest        since when the oldest due event waits, and for what (`oldest.py`)
    stale         what recurs and has not fired though its rule says so (`stale.py`)

Retention reads rows that are over.  Each of the others walks through names from a cursor on, and
goes on there with the next sweep.  A cursor that a step moved goes back with the step.

    names     a  b  c  d  e  f  g          at most 3 with each sweep
    sweep 1   ───────►                     cursor c
    sweep 2            ───────►            cursor f
    sweep 3                     ──►        the end: begin anew, from a

Sweeps belong to steps, so rows are forgotten in a transaction, as tombstones of the changelog, and
a replay forgets it too.  The partition's loop (`partitions/upkeep.py`) sweeps every so often, and
more often while sweeps have not caught up with the writes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.engine.oldest import Oldest
from belfry.engine.retention import Retention
from belfry.engine.stale import Stale
from belfry.engine.step import Step
from belfry.engine.tenant_figures import Tallies
from belfry.engine.undo import Tracked, UndoLog
from belfry.engine.waiting import Waiting
from belfry.engine.zone_change import ZoneChange
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.locations import is_location
from belfry.store.layout.pending import decode_pending
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Tenant
from belfry.tenants.step_tenants import StepTenants
from belfry.wire.lifecycle import LifecycleEvent

# Most names are left alone, so a sweep may see more of them than it may cancel.
MORE: Final = 20


class Maintenance:
    """All that one partition looks through now and then.

    `oldest` and `stale` are told from any thread; everything else belongs to the partition's own.
    """

    def __init__(
        self,
        store: ScheduleStore,
        tenants: StepTenants,
        waiting: Waiting,
        zones: ZoneChange,
        tallies: Tallies,
        undo: UndoLog,
    ) -> None:
        self.retention = Retention(store, undo, tenants.remember_ms)
        self._removal = Removal(store, tenants, waiting, undo)
        self._zones = zones
        self.oldest = Oldest(store, tenants, waiting, lambda: tallies.pending)
        self.stale = Stale(store, tenants)

    def sweep(self, step: Step, at_most: int) -> None:
        """Look at the next rows: `at_most` of them, or a multiple where most are left alone."""
        self.retention.sweep(step, at_most)
        self._removal.sweep(step, at_most)
        self.oldest.look(step.now_ms)
        self.stale.look(step.now_ms)
        self._zones.sweep(step, at_most)


class Walk(NamedTuple):
    """Where a walk through a tenant's names goes on, and whether it has met a pending schedule.

    `cursor` is the last name that was looked at, None at the beginning.
    """

    cursor: bytes | None
    met: bool


# Nothing was met from the start to the end.
DONE: Final = Walk(None, met=False)


class Room(NamedTuple):
    """How many names a sweep may still look at, and how many schedules it may cancel."""

    names: int
    ends: int


class Removal:
    """Cancels the pending schedules of removed tenants in one partition.

    Their requests are refused already and nothing of them fires, so one that has nothing left stays
    so.  A tenant that was walked through from the start without meeting a pending schedule is done,
    until key groups come or leave.  Nothing is cancelled while its group is on its way, so the
    other partition gets exactly the rows that leave this one, and cancels them there.
    """

    def __init__(
        self, store: ScheduleStore, tenants: StepTenants, waiting: Waiting, undo: UndoLog
    ) -> None:
        self._store = store
        self._tenants = tenants
        self._waiting = waiting
        self._walks: Tracked[bytes, Walk] = Tracked(undo)
        self._regroupings = 0

    def sweep(self, step: Step, at_most: int) -> None:
        """Cancel at most `at_most` schedules of removed tenants, among a multiple of names."""
        removed = self._tenants.removed
        gone, self._regroupings = self._regroupings, self._tenants.regroupings
        for name in self._walks.keys() - (removed if gone == self._regroupings else ()):
            # It came back, and is walked through anew once it is removed again; or schedules of it
            # may have come with its group.
            del self._walks[name]
        room = Room(at_most * MORE, at_most)
        for name in removed:
            if self._walks.get(name) == DONE or self._tenants.is_quiet(name):
                continue
            room = self._walk(self._tenants.of_bytes(name), room, step)
            if room.names <= 0 or room.ends <= 0:
                return

    def _walk(self, tenant: Tenant, room: Room, step: Step) -> Room:
        """Walk on through a tenant's names as far as there is room; the room that is left."""
        # A schedule that was accepted in the step in which the tenant was removed is not to be seen
        # yet, so its first walk is never its last.
        cursor, met = self._walks.get(tenant.name_bytes) or Walk(None, met=True)
        looked, ends = 0, room.ends
        for name, row in self._store.names_of(tenant.name_bytes, cursor, room.names):
            if not ends:
                break
            if is_location(row):
                met = True
                if name not in self._store.changed:
                    self._end(tenant, name, row, step)
                    ends -= 1
            cursor = name
            looked += 1
        else:
            if looked < room.names:
                cursor, met = (None, False) if met else DONE
        self._walks[tenant.name_bytes] = Walk(cursor, met)
        return Room(room.names - looked, ends)

    def _end(self, tenant: Tenant, name: bytes, location: bytes, step: Step) -> None:
        row = decode_pending(self._store.pending_at(name, location))
        self._waiting.left(tenant.name_bytes, location)
        self._store.remove(name, location)
        step.effects.outcomes[Outcome.CANCELLED] += 1
        if Outcome.CANCELLED in tenant.written:
            step.effects.lifecycle.append(
                LifecycleEvent(
                    tenant=tenant.name,
                    schedule_id=row.schedule_id.decode(),
                    outcome=Outcome.CANCELLED,
                    version=row.version,
                    at=step.now_ms,
                    due_at=row.due_ms,
                    reason="the tenant was removed",
                )
            )
