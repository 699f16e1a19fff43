"""Why a schedule waits besides its due instant, as single looks and lists show it.

    ack_lock        a fire of its group, or of itself, is not acknowledged yet
    tenant_blocked  its tenant's events are held back: by the policy, or for their topic's sake
    tenant_queue    its tenant's own queue, which a rate, a priority or a crowd makes it wait in
    catch_up        it is late, and each late occurrence is to fire, a few at a time
    firing          it is overdue, and nothing of its partition fires: the clock, or a take-over
    later_release   this version cannot fire it
    day_file        its payload lies in a day file that was not read back yet
    resume          it is paused
    acknowledgement another schedule, or all of a group, are to be acknowledged before it is due

The location under a schedule's name says in which queue it lies, and that decides most of it; the
tenant's policy and the partition's state add the reason. It needs no read beyond those of the look.
The words are those of `tenants/waits.py`.

    order-7 is due at 12:00:00, and the tenant may fire 5 a second
    11:59:58  no field: it waits for its due instant alone
    12:00:02  waiting_for: tenant_queue, with the cause (the rate) and since when
"""

from __future__ import annotations

from typing import Any, Final

from belfry.api.json.shapes import moment
from belfry.store.layout.dependence import OF_GROUP, OF_SCHEDULE
from belfry.store.layout.locations import (
    BEHIND_LOCK,
    IN_BACKLOG,
    IN_CATCH_UP,
    IN_PAUSED,
    IN_TIMELINE,
    decode_location,
)
from belfry.store.layout.pending import Away
from belfry.store.lookup import ScheduleStatus
from belfry.tenants.effective import Tenant
from belfry.tenants.waits import (
    ACK_LOCK,
    ACKNOWLEDGEMENT,
    CATCH_UP,
    DAY_FILE,
    LATER_RELEASE,
    QUEUE,
    TENANT_BLOCKED,
    TENANT_QUEUE,
    Wait,
    Why,
    why,
)

# A due schedule leaves within a step, and needs no reason until then.
OVERDUE_MS: Final = 1_000
_RESUME: Final = Why("resume", "resume", "it is paused: resume it")
_QUEUE: Final = Why(TENANT_QUEUE, QUEUE, "it is due, and others of its tenant's queue leave first")


def waiting(
    standing: ScheduleStatus,
    tenant: Tenant | None,
    now_ms: int,
    wait: Wait | None = None,
    stands_still: Why | None = None,
) -> dict[str, Any]:
    """The fields that say why a schedule waits; none if it only waits for its due instant.

    `tenant` is as this worker knows it, None where it has no policy. `wait` is what its tenant
    waits for, `stands_still` why nothing of its partition fires. `waiting_since` is given where the
    tenant waits for the same cause; else it is null.
    """
    found = _waits(standing, tenant, now_ms, stands_still)
    if found is None:
        return {}
    same = wait is not None and wait.why.cause == found.cause
    since_ms = wait.since_ms if wait is not None and same else None
    return {
        "waiting_for": found.waiting_for,
        "waiting_cause": found.cause,
        "waiting_reason": found.reason,
        "waiting_since": moment(since_ms),
    }


def _waits(
    standing: ScheduleStatus, tenant: Tenant | None, now_ms: int, stands_still: Why | None
) -> Why | None:
    """Why it does not fire, by the place where it lies; None for what is over, or not due."""
    if not standing.place or standing.pending is None:
        return None
    where, due_ms, _, lock = decode_location(standing.place)
    if where == IN_PAUSED:
        return _RESUME
    if where == BEHIND_LOCK:
        return _behind(lock, away=type(standing.pending.payload) is Away)
    if where == IN_TIMELINE:
        return stands_still if due_ms + OVERDUE_MS < now_ms else None
    if where not in (IN_BACKLOG, IN_CATCH_UP) or due_ms > now_ms:
        return None
    if tenant is None:
        return _QUEUE
    if tenant.stopped:
        return why(TENANT_BLOCKED, tenant)
    return stands_still or why(CATCH_UP if where == IN_CATCH_UP else TENANT_QUEUE, tenant)


def _behind(lock: bytes, *, away: bool) -> Why:
    """Which lock it waits behind, by its first letter; the rest is the name of whom it is.

    `away`: its payload lies in a day file.
    """
    name = lock[1:].decode(errors="replace")
    if lock[:1] == b"g":
        reason = f"a fire of its group {name!r} is not acknowledged: see locks"
        return Why(ACK_LOCK, ACK_LOCK, reason)
    if lock[:1] == OF_SCHEDULE:
        reason = f"it waits for the acknowledgement of {name!r}"
        return Why(ACKNOWLEDGEMENT, ACKNOWLEDGEMENT, reason)
    if lock[:1] == OF_GROUP:
        reason = f"it waits until all of group {name!r} are acknowledged"
        return Why(ACKNOWLEDGEMENT, ACKNOWLEDGEMENT, reason)
    if lock[:1] == b"s":
        return Why(ACK_LOCK, ACK_LOCK, "a fire of its own is not acknowledged: see locks")
    if away:
        return Why(DAY_FILE, DAY_FILE, "its payload lies in a day file that is not read back yet")
    return Why(LATER_RELEASE, LATER_RELEASE, "this version cannot fire it")
