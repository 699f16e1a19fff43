"""Limits of tenants: how many schedules may wait, how many requests and fires a second.

Most tenants have none, and nothing here is asked for them.  All limits hold per partition, so a
tenant that is spread over shards has them once for each.

- Requests are counted by the broker's clock, as they arrived: requests that waited while no worker
  ran are not refused for coming at once.
- Pending schedules are counted when a tenant with such a limit asks for the first time, some
  thousand a step, and from then on kept up with what each step commits (`counts.py`).

Fires beyond their rate are no rejections: they wait (`queues.py`).
"""

from __future__ import annotations

from typing import Final

from belfry.engine.counts import Counts
from belfry.firing.rates import Rate
from belfry.schedules.rejections import Rejection
from belfry.schedules.tenant import Tenant
from belfry.store.schedules import ScheduleStore

# What may come at once after a silence, in time at the limit's rate.
REQUEST_BURST_MS: Final = 1_000.0


class Limits:
    """What tenants with limits have used up of them, in one partition."""

    def __init__(self, store: ScheduleStore) -> None:
        self._requests = Rate(REQUEST_BURST_MS)
        self._pending = Counts(store)
        self._begun: dict[bytes, int] = {}

    def too_many_requests(self, tenant: Tenant, arrived_ms: int) -> Rejection | None:
        """Why a request is one too many, or None; it counts either way."""
        limit = tenant.terms.policy.max_requests_per_second
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
        limit = tenant.terms.policy.max_pending
        if limit is None:
            return None
        name = tenant.name_bytes
        waiting = self._pending.of(name) + self._begun.get(name, 0)
        if waiting < limit:
            self._begun[name] = self._begun.get(name, 0) + 1
            return None
        return Rejection(
            "too_many_pending",
            f"Tenant {tenant.name} has {waiting} pending schedules, and {limit} are allowed in a"
            " partition (max_pending of its policy): cancel some, or ask for more.",
        )

    def committed(self) -> None:
        """Keep up with a step; called before its writes go to the store."""
        self._requests.committed()
        self._begun.clear()
        self._pending.committed()

    def aborted(self) -> None:
        """Forget a step."""
        self._requests.aborted()
        self._begun.clear()
        self._pending.aborted()
