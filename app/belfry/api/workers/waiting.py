"""What a schedule waits for besides its due instant, as single looks and lists show it.

ack_lock        a fire of its group, or of itself, is not acknowledged yet
tenant_blocked  its tenant's events are held back: by the policy, or for their topic's sake
tenant_queue    its tenant's own queue, which a rate, a priority or a crowd makes it wait in
catch_up        it is late, and each late occurrence is to fire, a few at a time
later_release   this version cannot fire it
resume          it is paused
"""

from __future__ import annotations

from typing import Any

from belfry.store.layout.records import (
    BEHIND_LOCK,
    IN_BACKLOG,
    IN_CATCH_UP,
    IN_PAUSED,
    decode_location,
)
from belfry.store.lookup import Standing
from belfry.tenants.effective import Tenant


def waiting(standing: Standing, tenant: Tenant | None, now_ms: int) -> dict[str, Any]:
    """The fields that say what a schedule waits for; none for nothing but its due instant."""
    what, why = _waits(standing, tenant, now_ms)
    return {"waiting_for": what, "waiting_reason": why} if what else {}


def _waits(standing: Standing, tenant: Tenant | None, now_ms: int) -> tuple[str, str]:
    if not standing.place or standing.pending is None:
        return "", ""
    where, due_ms, _, lock = decode_location(standing.place)
    if where == IN_PAUSED:
        return "resume", "it is paused: resume it"
    if where == BEHIND_LOCK:
        return _behind(lock)
    if where not in (IN_BACKLOG, IN_CATCH_UP) or due_ms > now_ms:
        return "", ""
    if tenant is not None and tenant.stopped:
        return "tenant_blocked", tenant.stopped
    if where == IN_CATCH_UP:
        return "catch_up", "each of its late occurrences fires, in the room that others leave"
    return "tenant_queue", "it is due, and others of its tenant's queue leave before it"


def _behind(lock: bytes) -> tuple[str, str]:
    name = lock[1:].decode(errors="replace")
    if lock[:1] == b"g":
        return (
            "ack_lock",
            f"a fire of its group {name!r} is not acknowledged: see locks",
        )
    if lock[:1] == b"s":
        return "ack_lock", "a fire of its own is not acknowledged: see locks"
    return "later_release", "this version cannot fire it"
