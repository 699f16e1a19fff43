"""Limits of tenants: how many schedules may wait, how many requests and fires a second.

Most tenants have none, and nothing here is asked for them.  All limits hold per partition, so a
tenant that is spread over shards has them once for each.

- Requests are counted by the broker's clock, as they arrived: requests that waited while no worker
  ran are not refused for coming at once.
- Pending schedules are those that the store counts beside its minute buckets: one small read for a
  tenant and step, however many wait.  Schedules that the step itself has begun come on top; those
  that it has ended make room for the next one.

Fires beyond their rate are no rejections: they wait (`queues.py`).

With `max_requests_per_second` 2, the burst of a second, and requests by their arrival:

    arrived    12:00:00.000   .100   .200     12:00:00.500
    verdict    taken in       taken  refused  taken in        `too_many_requests` at .200

The same holds if all four are read at 12:07, and if the step is done again.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.undo import Tracked, UndoLog
from belfry.firing.rates import Rate
from belfry.schedules.rejections import Rejection
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Tenant

# How much may come at once after a silence, in time at the limit's rate.
REQUEST_BURST_MS: Final = 1_000.0


class Limits:
    """The used parts of tenants' limits, in one partition.

    Of a tenant without limits (`Tenant.limited`) nothing is counted.
    """

    def __init__(self, store: ScheduleStore, undo: UndoLog) -> None:
        self._requests = Rate(REQUEST_BURST_MS, Tracked(undo))
        self._store = store
        # How many wait, with those that the step has begun, by tenant; read once in a step.
        self._waiting: dict[bytes, int] = {}
        undo.scratch(dict.clear, self._waiting)

    def too_many_requests(self, tenant: Tenant, arrived_ms: int) -> Rejection | None:
        """Why a request is one too many, or None; only a request that is taken in uses the rate.

        `arrived_ms` is the request's arrival by the broker's clock, so a step that is done again
        gives the same answer.
        """
        limit = tenant.effective.policy.max_requests_per_second
        if limit is None:
            return None
        if self._requests.room(tenant.name_bytes, limit, arrived_ms):
            self._requests.take(tenant.name_bytes, limit, arrived_ms, 1)
            return None
        return Rejection(
            "too_many_requests",
            f"Tenant {tenant.name} may send {limit:g} requests per second and partition"
            " (max_requests_per_second of its policy): send fewer, or ask for more.",
        )

    def too_many_pending(self, tenant: Tenant) -> Rejection | None:
        """Why a new schedule is one too many, or None; then it counts."""
        limit = tenant.effective.policy.max_pending
        if limit is None:
            return None
        name = tenant.name_bytes
        if name not in self._waiting:
            self._waiting[name] = self._store.waiting_of(name)
        waiting = self._waiting[name]
        if waiting < limit:
            self._waiting[name] = waiting + 1
            return None
        return Rejection(
            "too_many_pending",
            f"Tenant {tenant.name} has {waiting} pending schedules, and {limit} are allowed in a"
            " partition (max_pending of its policy): cancel some, or ask for more.",
        )
