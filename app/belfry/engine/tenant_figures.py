"""What a partition counts of each tenant: what is pending, what fired, how late, what was refused.

Nothing here is done per event.  A step leaves lists by tenant in its effects, and a commit adds
them up; a step that is rolled back has counted nothing.

How much is pending follows from what steps begin and end, once it was counted.  That is done in
slices with the first sweeps of an owner, over the names in their order:

    names      a/1 … a/9  b/1 … b/5 │ b/6 … b/9  c/1 … z/9
    counted    ────────────────────►│ cursor
    a step     all of `a` counts    │ of `b`, what lies before the cursor    none of `c` to `z`

Counters begin at 0 with each owner; a reader of rates sees that as it sees a restart.  So that a
flood of made-up names costs no memory, names beyond `MOST` share the counters of `REST`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from belfry.engine.effects import Effects
from belfry.store.layout.keys import tenant_of
from belfry.store.layout.records import is_location
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import StepTenants
from belfry.tenants.waits import Wait

SLICE: Final = 5_000
MOST: Final = 100_000
# No tenant has no name.
REST: Final = b""
# Before the first schedule's name, and behind what other rows are called.
_FIRST: Final = b"\1"


class TenantFigures(NamedTuple):
    """One tenant in one partition; counts are since its owner began.

    `is_counted`: `pending` is all that there is, and not only what has been counted so far.
    `late_ms` is the sum over what fired of the time from due to the step that fires it.
    """

    pending: int = 0
    is_counted: bool = True
    fired: int = 0
    late_ms: int = 0
    rejected: int = 0
    wait: Wait | None = None


@dataclass(slots=True)
class Tally:
    """Counters of one tenant."""

    fired: int = 0
    late_ms: int = 0
    rejected: int = 0


class Tallies:
    """The figures of all tenants of a partition."""

    def __init__(self, store: ScheduleStore, tenants: StepTenants) -> None:
        self._store = store
        self._tenants = tenants
        self._tallies: dict[bytes, Tally] = {REST: Tally()}
        self.pending: dict[bytes, int] = {}
        # The name up to which it was counted; None: all of them.
        self._cursor: bytes | None = _FIRST

    @property
    def is_counted(self) -> bool:
        """Whether all that is pending was counted."""
        return self._cursor is None

    def of(self, name: bytes, wait: Wait | None) -> TenantFigures:
        """The figures of a tenant; from any thread."""
        tally = self._tallies.get(name) or Tally()
        pending = self.pending.get(name, 0)
        counts = tally.fired, tally.late_ms, tally.rejected
        return TenantFigures(pending, self.is_counted, *counts, wait)

    def names(self) -> set[bytes]:
        """Tenants of which anything is known, `REST` for those that are not told apart."""
        return {*self.pending.copy(), *self._tallies.copy()}

    def sweep(self) -> None:
        """Count some more of what is pending."""
        if self._cursor is None:
            return
        rows = list(self._store.names(self._cursor, SLICE))
        for tenant, count in Counter(tenant_of(n) for n, row in rows if is_location(row)).items():
            self._change(tenant, count)
        self._cursor = rows[-1][0] if len(rows) == SLICE else None

    def committed(self, effects: Effects) -> None:
        """Count what a step did; called before the store writes it."""
        changes = effects.pending
        for tenant, fires in Counter(effects.go_on).items():
            changes[tenant] = changes.get(tenant, 0) + fires
        for name, late_ms in effects.lateness.items():
            tenant = name.encode()
            # A fire ends its schedule, but for those that go on.
            changes[tenant] = changes.get(tenant, 0) - len(late_ms)
            tally = self._tally(tenant)
            tally.fired += len(late_ms)
            tally.late_ms += sum(late_ms)
        for name, refused in effects.refused.items():
            self._tally(self._known(name)).rejected += refused
        for tenant, change in changes.items():
            self._follow(tenant, change)

    def _follow(self, tenant: bytes, change: int) -> None:
        """So many more of a tenant are pending than before the step."""
        cursor = self._cursor
        if cursor is None:
            self._change(tenant, change)
            return
        prefix, counting = tenant + b"/", cursor[: cursor.find(b"/") + 1]
        if prefix < counting:
            self._change(tenant, change)
        elif prefix == counting:
            passed = self._store.waiting_changes(
                lambda name: name.startswith(prefix) and name <= cursor
            )
            self._change(tenant, sum(by for _, by in passed))

    def _change(self, tenant: bytes, by: int) -> None:
        now = self.pending.get(tenant, 0) + by
        if now:
            self.pending[tenant] = now
        else:
            self.pending.pop(tenant, None)

    def _tally(self, name: bytes) -> Tally:
        found = self._tallies.get(name)
        if found is None:
            name = name if len(self._tallies) < MOST else REST
            found = self._tallies.setdefault(name, Tally())
        return found

    def _known(self, name: str) -> bytes:
        """The tenant that a refused request names, where there is one of that name."""
        given = name.encode(errors="replace")
        return given if self._tenants.known(given) is not None else REST


def merged(found: Iterable[TenantFigures]) -> TenantFigures:
    """The figures of a tenant that lives in several partitions; it waits as its oldest does."""
    every = list(found)
    waits = [each.wait for each in every if each.wait is not None]
    dues = [each.oldest_due_ms for each in waits if each.oldest_due_ms is not None]
    wait = min(waits, key=_age, default=None)
    if wait is not None:
        oldest_ms, waiting = min(dues, default=None), sum(each.waiting for each in waits)
        wait = wait._replace(oldest_due_ms=oldest_ms, waiting=waiting)
    return TenantFigures(
        pending=sum(each.pending for each in every),
        is_counted=all(each.is_counted for each in every),
        fired=sum(each.fired for each in every),
        late_ms=sum(each.late_ms for each in every),
        rejected=sum(each.rejected for each in every),
        wait=wait,
    )


def _age(wait: Wait) -> tuple[bool, int, int]:
    return wait.oldest_due_ms is None, wait.oldest_due_ms or 0, wait.since_ms
