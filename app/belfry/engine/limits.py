"""Limits of tenants: how many schedules may wait, how many requests and fires a second.

Most tenants have none, and nothing here is asked for them.  All limits hold per partition, so a
tenant that is spread over shards has them once for each.

- Requests are counted by the broker's clock, as they arrived: requests that waited while no worker
  ran are not refused for coming at once.
- Pending schedules are counted when a tenant with such a limit asks for the first time.  That reads
  all of its rows, which may be millions, so a step reads at most `SLICE` of them:

      names      a … … … … … … k │ l … … … … … … … z
      counted    ───────────────►│ cursor                a write up to the cursor changes the count,
                                                         one behind it is yet to be read

  What has been counted by then is the count so far, and from then on it is kept up with what each
  step commits.

Fires beyond their rate are no rejections: they wait (`queues.py`).
"""

from __future__ import annotations

from typing import Final

from belfry.engine.step import Tracked, UndoLog
from belfry.firing.rates import Rate
from belfry.schedules.rejections import Rejection
from belfry.store.layout.keys import tenant_of
from belfry.store.layout.records import is_location
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Tenant

# What may come at once after a silence, in time at the limit's rate.
REQUEST_BURST_MS: Final = 1_000.0
SLICE: Final = 20_000
# Behind every name of a tenant: the count is complete.
_END: Final = b"\xff"


class Limits:
    """What tenants with limits have used up of them, in one partition."""

    def __init__(self, store: ScheduleStore, undo: UndoLog) -> None:
        self._requests = Rate(REQUEST_BURST_MS, Tracked(undo))
        self._pending = Counts(store, undo)
        # Schedules that the step has begun, by tenant.
        self._begun: dict[bytes, int] = {}
        undo.scratch(self._begun.clear)

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

    def keep_up(self) -> None:
        """Follow what a step changes; called before the store writes it."""
        self._pending.keep_up()


class Counts:
    """How many schedules of a tenant wait in one partition, of those that were asked for.

    A count is of what is committed, so a roll-back leaves it as it is.
    """

    def __init__(self, store: ScheduleStore, undo: UndoLog) -> None:
        self._store = store
        # By tenant: the count, and the name up to which it goes.
        self._counted: dict[bytes, tuple[int, bytes]] = {}
        self._read_of: set[bytes] = set()
        undo.scratch(self._read_of.clear)

    def of(self, name: bytes) -> int:
        """How many wait, as far as they have been counted; reads one slice in a step."""
        count, cursor = self._counted.get(name, (0, b""))
        if cursor != _END and name not in self._read_of:
            self._read_of.add(name)
            count, cursor = self._counted[name] = self._go_on(name, count, cursor)
        return count

    def keep_up(self) -> None:
        """Follow what a step changes; called before the store writes it."""
        if not self._counted:
            return
        for name, change in self._store.waiting_changes(self._passed):
            count, cursor = self._counted[tenant_of(name)]
            self._counted[tenant_of(name)] = (count + change, cursor)

    def _go_on(self, name: bytes, count: int, cursor: bytes) -> tuple[int, bytes]:
        rows = list(self._store.names_of(name, cursor or None, SLICE))
        count += sum(is_location(row) for _, row in rows)
        return count, rows[-1][0] if len(rows) == SLICE else _END

    def _passed(self, name: bytes) -> bool:
        counted = self._counted.get(name[: name.find(b"/")])
        return counted is not None and name <= counted[1]
