"""Time-outs: fires that were not acknowledged in time, and what waited for them."""

from __future__ import annotations

from belfry.engine.effects import Effects
from belfry.engine.waiting import Waiting
from belfry.schedules.instants import format_instant
from belfry.schedules.outcomes import Outcome
from belfry.schedules.tenants import StepTenants
from belfry.store.layout import keys
from belfry.store.layout.records import Awaited
from belfry.wire.lifecycle import LifecycleEvent


class TimeOuts:
    """Lets what waits go on, in one partition."""

    def __init__(self, tenants: StepTenants, waiting: Waiting) -> None:
        self._tenants = tenants
        self._waiting = waiting

    def settle(self, now_ms: int, effects: Effects) -> None:
        """End a step of firing: await no longer what is overdue, and let go what may leave."""
        gates = self._waiting.gates
        for key, awaited in list(gates.overdue(now_ms)):
            self._waiting.let_go(gates.open(key))
            self._tell(key, awaited, now_ms, effects)
        let_go = gates.drain()
        self._waiting.let_go(let_go)
        effects.moved = effects.moved or bool(let_go)

    def _tell(self, key: bytes, awaited: Awaited, now_ms: int, effects: Effects) -> None:
        effects.outcomes[Outcome.FAILED] += 1
        name, identity = keys.awaited_names(key)
        tenant = self._tenants.of_bytes(name)
        if Outcome.FAILED not in tenant.written:
            return
        effects.lifecycle.append(
            LifecycleEvent(
                tenant=tenant.name,
                schedule_id=awaited.schedule_id.decode(),
                outcome=Outcome.FAILED,
                fire_id=identity.decode(),
                version=awaited.version,
                at=now_ms,
                due_at=awaited.due_ms,
                code="ack_timeout",
                reason=f"fired at {format_instant(awaited.fired_ms)} and not acknowledged until"
                f" {format_instant(awaited.until_ms)}: what waits for it goes on",
            )
        )
