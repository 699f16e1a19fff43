"""Reports of an awaited fire: its time is over, or the next occurrence is due.

    no ACK in time    FAILED, code ack_timeout, for fire 1 ── what waits for it goes on
    TERMINATE_OTHER   2 fires ── FAILED, code terminated, for fire 1 ── 1 is awaited no more
    CANCEL_OTHER      2 waits ── UPDATED, code cancel_other, for fire 1, once
                      ack of 1, or its time-out ── 2 fires

belfry runs no work, so it can stop none.  It tells the service that does the work, by an event that
names the fire.  A bit of the awaited fire's row says which event was sent, so none is sent twice
after a kill.  `ack_locks.py` has the locks that a fire closes, and the rows behind them.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.locks import own_lock
from belfry.engine.step import Step
from belfry.engine.waiting import Waiting
from belfry.schedules.instants import format_instant
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.keys import awaited_names
from belfry.store.layout.pending import Pending
from belfry.store.layout.records import Awaited
from belfry.tenants.effective import Tenant
from belfry.tenants.step_tenants import StepTenants
from belfry.wire.lifecycle import LifecycleEvent

TERMINATED: Final = "terminated"
CANCEL_ASKED: Final = "cancel_other"
ACK_TIMEOUT: Final = "ack_timeout"
# About the size of an event.
EVENT_BYTES: Final = 300


def end_other(row: Pending, tenant: Tenant, waiting: Waiting, step: Step) -> None:
    """End the wait for the last fire of a schedule, if it is still awaited: the next one fires."""
    found = waiting.locks.holder(own_lock(row))
    if found is None:
        return
    key, awaited = found
    for each, record in waiting.locks.open(key):
        # It may have locked a group as well: amid a turn, rows behind that lock keep their place.
        waiting.hold_again(each, record)
    step.effects.outcomes[Outcome.FAILED] += 1
    if Outcome.FAILED in tenant.written:
        said = "is awaited no more, for the next one fires: stop its work"
        step.effects.lifecycle.append(_told(key, awaited, tenant, step, said))


def ask_other(row: Pending, tenant: Tenant, waiting: Waiting, step: Step) -> None:
    """Ask the consumer that works on the last fire to stop, once, at every lifecycle level."""
    found = waiting.locks.asked_to_end(own_lock(row))
    if found is None:
        return
    key, awaited = found
    said = "is to be cancelled, for the next one is due: stop its work, and acknowledge it"
    event = _told(key, awaited, tenant, step, said)
    event.outcome, event.code = Outcome.UPDATED, CANCEL_ASKED
    step.effects.room -= EVENT_BYTES
    step.effects.lifecycle.append(event)


def ack_timed_out(key: bytes, awaited: Awaited, tenants: StepTenants, step: Step) -> None:
    """Tell of a fire that was not acknowledged in time: rows that wait for it go on."""
    step.effects.outcomes[Outcome.FAILED] += 1
    tenant = tenants.of_bytes(awaited_names(key)[0])
    if Outcome.FAILED in tenant.written:
        until = format_instant(awaited.until_ms)
        event = _told(key, awaited, tenant, step, "")
        event.code = ACK_TIMEOUT
        event.reason = (
            f"fired at {format_instant(awaited.fired_ms)} and not acknowledged until {until}: what"
            " waits for it goes on"
        )
        step.effects.lifecycle.append(event)


def _told(key: bytes, awaited: Awaited, tenant: Tenant, step: Step, said: str) -> LifecycleEvent:
    """The event that names an awaited fire; FAILED, as one that the next one ends."""
    return LifecycleEvent(
        tenant=tenant.name,
        schedule_id=awaited.schedule_id.decode(),
        outcome=Outcome.FAILED,
        fire_id=awaited_names(key)[1].decode(),
        version=awaited.version,
        at=step.now_ms,
        due_at=awaited.due_ms,
        code=TERMINATED,
        reason=f"the fire of {format_instant(awaited.fired_ms)} {said}",
    )
