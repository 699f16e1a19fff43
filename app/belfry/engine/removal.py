"""Removed tenants: what is pending of them is cancelled, a few schedules at a time.

Their requests are refused already and nothing of them fires, so who has nothing left stays so.
"""

from __future__ import annotations

from belfry.engine.effects import Effects
from belfry.engine.waiting import Waiting
from belfry.schedules.outcomes import Outcome
from belfry.schedules.tenant import Tenant, Tenants
from belfry.store.records import PLACE, decode_pending
from belfry.store.schedules import ScheduleStore
from belfry.wire.lifecycle import LifecycleEvent


class Removal:
    """Cancels what removed tenants have pending in one partition."""

    def __init__(self, store: ScheduleStore, tenants: Tenants, waiting: Waiting) -> None:
        self._store = store
        self._tenants = tenants
        self._waiting = waiting
        self._done: set[bytes] = set()

    def sweep(self, now_ms: int, at_most: int, effects: Effects) -> None:
        """Cancel at most `at_most` schedules of removed tenants."""
        if not self._tenants.removed:
            return
        self._done &= self._tenants.removed
        for name in self._tenants.removed - self._done:
            ended = self._cancel(self._tenants.of_bytes(name), now_ms, at_most, effects)
            at_most -= ended
            if at_most <= 0:
                return
            if not ended:
                self._done.add(name)

    def restart(self) -> None:
        """Look again: the last step was not committed."""
        self._done.clear()

    def _cancel(self, tenant: Tenant, now_ms: int, at_most: int, effects: Effects) -> int:
        start = b"k" + tenant.name_bytes + b"/"
        ended = 0
        for key, place in self._store.rows.scan(start, start[:-1] + b"0"):
            if ended == at_most:
                break
            if place[1] == PLACE and key not in self._store.writes:
                self._end(tenant, key[1:], place, now_ms, effects)
                ended += 1
        return ended

    def _end(
        self, tenant: Tenant, name: bytes, place: bytes, now_ms: int, effects: Effects
    ) -> None:
        row = decode_pending(self._store.pending_at(name, place))
        self._waiting.left(tenant.name_bytes, place)
        self._store.remove(name, place)
        self._store.set_named(name, None)
        effects.rows[name] = None
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
