"""Removed tenants: what is pending of them is cancelled, a few schedules at a time.

Their requests are refused already and nothing of them fires, so who has nothing left stays so.  A
tenant's names may be millions, most of them markers, so a sweep looks at some and the next one goes
on behind them.  Who was walked through from the start without meeting a pending schedule is done.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.engine.effects import Effects
from belfry.engine.undoing import Undoable
from belfry.engine.waiting import Waiting
from belfry.schedules.outcomes import Outcome
from belfry.schedules.tenant import Tenant
from belfry.schedules.tenants import StepTenants
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.records import is_location
from belfry.store.schedules import ScheduleStore
from belfry.wire.lifecycle import LifecycleEvent

# Most names are markers and left alone, so a sweep may see more of them than it may cancel.
MORE: Final = 20


class Walk(NamedTuple):
    """Where a walk through a tenant's names goes on, and whether it has met what is pending."""

    cursor: bytes | None
    met: bool


# Nothing was met from the start to the end.
DONE: Final = Walk(None, met=False)


class Room(NamedTuple):
    """How many names a sweep may still look at, and how many schedules it may cancel."""

    names: int
    ends: int


class Removal:
    """Cancels what removed tenants have pending in one partition."""

    def __init__(self, store: ScheduleStore, tenants: StepTenants, waiting: Waiting) -> None:
        self._store = store
        self._tenants = tenants
        self._waiting = waiting
        self._walks: Undoable[bytes, Walk] = Undoable()

    def sweep(self, now_ms: int, at_most: int, effects: Effects) -> None:
        """Cancel at most `at_most` schedules of removed tenants, among a multiple of names."""
        removed = self._forget_who_came_back()
        room = Room(at_most * MORE, at_most)
        for name in removed:
            if self._walks.get(name) == DONE:
                continue
            room = self._walk(self._tenants.of_bytes(name), now_ms, room, effects)
            if room.names <= 0 or room.ends <= 0:
                return

    def committed(self) -> None:
        """The step is in the store."""
        self._walks.committed()

    def aborted(self) -> None:
        """The step was rolled back: go on from where it began."""
        self._walks.aborted()
        self._forget_who_came_back()

    def _forget_who_came_back(self) -> frozenset[bytes]:
        """Walk anew through who is removed once more; who is removed now."""
        removed = self._tenants.removed
        for name in self._walks.keys() - removed:
            del self._walks[name]
        return removed

    def _walk(self, tenant: Tenant, now_ms: int, room: Room, effects: Effects) -> Room:
        """Walk on through a tenant's names as far as there is room; the room that is left."""
        # What was accepted in the step in which the tenant was removed is not to be seen yet, so
        # its first walk is never its last.
        cursor, met = self._walks.get(tenant.name_bytes) or Walk(None, met=True)
        looked, ends = 0, room.ends
        rows = self._store.names_of(tenant.name_bytes, cursor, room.names)
        for name, row in rows:
            if not ends:
                break
            if is_location(row):
                met = True
                if name not in self._store.changed:
                    self._end(tenant, name, row, now_ms, effects)
                    ends -= 1
            cursor = name
            looked += 1
        else:
            if looked < room.names:
                cursor, met = (None, False) if met else DONE
        self._walks[tenant.name_bytes] = Walk(cursor, met)
        return Room(room.names - looked, ends)

    def _end(
        self, tenant: Tenant, name: bytes, place: bytes, now_ms: int, effects: Effects
    ) -> None:
        row = decode_pending(self._store.pending_at(name, place))
        self._waiting.left(tenant.name_bytes, place)
        self._store.remove(name, place)
        effects.outcomes[Outcome.CANCELLED] += 1
        if Outcome.CANCELLED in tenant.written:
            effects.lifecycle.append(
                LifecycleEvent(
                    tenant=tenant.name,
                    schedule_id=row.schedule_id.decode(),
                    outcome=Outcome.CANCELLED,
                    version=row.version,
                    at=now_ms,
                    due_at=row.due_ms,
                    reason="the tenant was removed",
                )
            )
