"""Why the events of a tenant wait, as one value that every surface shows.

    engine (each sweep) ──► Wait of a tenant ──► metrics, /v1/tenants, /healthz/ready, doctor, page
    one schedule        ──► Wait of it       ──► `GET` of the schedule, lists

`waiting_for` is one of a few words that metrics and answers have always used; `cause` names the
exact reason among those of the word. The sentence is for people.

    waiting_for      cause
    tenant_blocked   output_topic, paused, not_served
    tenant_queue     rate, priority, queue
    ack_lock         ack_lock
    catch_up         catch_up
    later_release    later_release
    day_file         day_file
    firing           firing, clock, partition

A tenant may wait for several reasons at once; then the reason of its oldest due event is shown.
`stopped` beats all others, since nothing of the tenant fires before that is mended.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.tenants.effective import Tenant

FIRING: Final = "firing"
TENANT_QUEUE: Final = "tenant_queue"
TENANT_BLOCKED: Final = "tenant_blocked"
CATCH_UP: Final = "catch_up"
ACK_LOCK: Final = "ack_lock"
LATER_RELEASE: Final = "later_release"
DAY_FILE: Final = "day_file"
# The schedule is not due before an acknowledgement comes; so this is not among REASONS.
ACKNOWLEDGEMENT: Final = "acknowledgement"
REASONS: Final = (
    *(FIRING, TENANT_QUEUE, TENANT_BLOCKED, CATCH_UP, ACK_LOCK, LATER_RELEASE, DAY_FILE),
)

OUTPUT_TOPIC: Final = "output_topic"
PAUSED: Final = "paused"
NOT_SERVED: Final = "not_served"
RATE: Final = "rate"
PRIORITY: Final = "priority"
QUEUE: Final = "queue"
CLOCK: Final = "clock"
PARTITION: Final = "partition"
# Causes that keep all due events of a tenant from firing until a person acts.
BLOCKING: Final = (OUTPUT_TOPIC, PAUSED, NOT_SERVED)
CAUSES: Final = (*(*BLOCKING, RATE, PRIORITY, QUEUE, ACK_LOCK, CATCH_UP, LATER_RELEASE, DAY_FILE),)

_SENTENCES: Final = {
    FIRING: "it is due and leaves with one of the next steps",
    CATCH_UP: "each of its late occurrences fires, in the room that others leave",
    ACK_LOCK: "a fire before it is not acknowledged: see locks",
    LATER_RELEASE: "this version cannot fire it: update the worker",
    DAY_FILE: "its payload lies in a day file that is not read back yet: see the worker's log",
}


class Why(NamedTuple):
    """The reason to wait, the cause within it, and the same in words."""

    waiting_for: str
    cause: str
    reason: str


class Wait(NamedTuple):
    """Why a tenant's events wait in one partition, since when, how many, and how old they are.

    `since_ms` is when the owner of the partition first saw this cause; for an ack lock, when the
    awaited fire left. `waiting` counts due events, up to a bound. `oldest_due_ms` is None if
    nothing is due yet.
    """

    why: Why
    since_ms: int
    waiting: int = 0
    oldest_due_ms: int | None = None


def why(waiting_for: str, tenant: Tenant) -> Why:
    """Why events of a tenant wait for this reason (one of `REASONS`), in words."""
    if waiting_for == TENANT_BLOCKED:
        return Why(waiting_for, _blocked_by(tenant), tenant.stopped)
    if waiting_for == TENANT_QUEUE:
        return _queued(tenant)
    return Why(waiting_for, waiting_for, _SENTENCES[waiting_for])


def why_locked(schedule_id: str, fire_id: str) -> Why:
    """Why events wait behind the fire of a schedule that is to be acknowledged."""
    reason = f"the fire {fire_id} of schedule {schedule_id!r} is not acknowledged"
    return Why(ACK_LOCK, ACK_LOCK, reason)


def why_not_firing(*, clock: str = "", partition: str = "") -> Why | None:
    """Why nothing of a partition fires, or None: the worker's clock, or the partition's state.

    Both are sentences of the shell; an empty one says that it is not the cause.
    """
    if partition:
        return Why(FIRING, PARTITION, f"its partition does not fire yet: {partition}")
    if clock:
        return Why(FIRING, CLOCK, f"firing is paused: {clock}")
    return None


def _blocked_by(tenant: Tenant) -> str:
    if tenant.held:
        return OUTPUT_TOPIC
    return NOT_SERVED if tenant.effective.blocked else PAUSED


def _queued(tenant: Tenant) -> Why:
    policy = tenant.effective.policy
    if policy.max_fires_per_second is not None:
        allowed = f"{policy.max_fires_per_second:g} fires a second and partition"
        return Why(TENANT_QUEUE, RATE, f"its policy allows {allowed} (max_fires_per_second)")
    if policy.priority < 0:
        return Why(TENANT_QUEUE, PRIORITY, f"others go before its priority {policy.priority}")
    return Why(TENANT_QUEUE, QUEUE, "it is due, and others of its tenant's queue leave before it")
