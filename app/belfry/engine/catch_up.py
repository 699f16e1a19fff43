"""Catching up: schedules that fire each occurrence they missed, slowly and after everybody else.

A rate per partition keeps a week of missed seconds from filling the output topics at once, and a
step gives catching up the room that live events leave, or a little where they leave none.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.effects import Effects
from belfry.engine.plan import plan_of
from belfry.engine.ruled import Ruled, next_row
from belfry.engine.waiting import Waiting
from belfry.firing.due import Most, take
from belfry.schedules.tenant import Tenant
from belfry.schedules.tenants import StepTenants
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.records import IN_CATCH_UP
from belfry.store.schedules import ScheduleStore

LEAST_SHARE: Final = 16


class CatchUp:
    """Fires the lines of those that catch up, as fast as `CatchUpRate` lets them."""

    def __init__(
        self, store: ScheduleStore, tenants: StepTenants, waiting: Waiting, ruled: Ruled
    ) -> None:
        self._store = store
        self._tenants = tenants
        self._waiting = waiting
        self._ruled = ruled
        self._rate = ruled.rate

    @property
    def next_ms(self) -> int | None:
        """When there is something to fire, or None."""
        waiting = (*self._waiting.catch_up, *self._waiting.slowed)
        ready = any(not self._tenants.of_bytes(name).stopped for name in waiting)
        return self._rate.again_ms if ready else None

    def fire(self, now_ms: int, room: int, effects: Effects) -> None:
        """Fire late occurrences, as many as there is room and rate for."""
        self._rate.fill(now_ms)
        left = budget = min(room, self._rate.left)
        ready = [n for n in self._waiting.catch_up if not self._tenants.of_bytes(n).stopped]
        for turn, name in enumerate(ready):
            share = -(-left // (len(ready) - turn))
            if share > 0:
                left -= self._fire_of(name, share, now_ms, effects)
                effects.moved = True
        self._rate.take(budget - left)

    def committed(self) -> None:
        """What a step took of the rate stays taken."""
        self._rate.committed()

    def aborted(self) -> None:
        """Give back what a step took of the rate."""
        self._rate.aborted()

    def _fire_of(self, name: bytes, share: int, now_ms: int, effects: Effects) -> int:
        """Fire a tenant's share; the number of its fires."""
        tenant = self._tenants.of_bytes(name)
        queue = self._store.queue(IN_CATCH_UP, name)
        rows, _ = take(queue, Most(share, effects.room // 2))
        if not rows:
            # They joined in this step.
            return 0
        self._store.take(rows)
        fired = 0
        for turn, (_, record) in enumerate(rows):
            burst = max(1, (share - fired) // (len(rows) - turn))
            fired += self._fire_some(record, tenant, (burst, now_ms), effects)
        self._waiting.shrink(name, len(rows), IN_CATCH_UP)
        return fired

    def _fire_some(
        self, record: bytes, tenant: Tenant, burst_at: tuple[int, int], effects: Effects
    ) -> int:
        """Fire a schedule's next few late occurrences, and put it where it waits then."""
        burst, now_ms = burst_at
        row = decode_pending(record)
        if self._ruled.holds_unreadable(row, record):
            return 0
        plan = plan_of(row.extra)
        fired = 0
        while fired < burst and now_ms - row.due_ms > plan.limit_ms:
            if fired and effects.room <= 0:
                break
            if self._ruled.too_old(row, plan, tenant):
                following = self._ruled.pass_over(row, record, plan, tenant)
            else:
                following = self._ruled.fire(row, record, plan, tenant)
                fired += 1
            if following is None:
                return fired
            row, record = next_row(row, following), following[3]
        if now_ms - row.due_ms > plan.limit_ms:
            self._waiting.hold(row, record, IN_CATCH_UP)
        else:
            self._waiting.keep_again(row, record)
        return fired
