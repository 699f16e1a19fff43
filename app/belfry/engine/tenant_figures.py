"""Figures of each tenant in a partition: how many wait, fired, how late, and were refused.

Nothing here is done per event.  A step leaves lists by tenant in its effects, and a commit adds
them up; a step that is rolled back has counted nothing.  How much is pending the store keeps beside
its minute buckets; it is read once, when an owner begins, and followed from commit to commit.

Counters begin at 0 with each owner; a reader of rates sees that as it sees a restart.  So that a
flood of made-up names costs no memory, names beyond `MOST` share the counters of `REST`.

The partition's thread adds up and others read.  Each counter is written in one go, so a reader may
see figures of two commits beside one another, and never a wrong number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from belfry.engine.effects import Effects
from belfry.store.schedules import ScheduleStore
from belfry.tenants.step_tenants import StepTenants
from belfry.tenants.waits import Wait

MOST: Final = 100_000
MOST_BY_REFUSALS: Final = 1_000
# No tenant has no name.
REST: Final = b""


class TenantFigures(NamedTuple):
    """One tenant in one partition; counts are since its owner began.

    `late_ms` is the sum, over all fires, of the time from due to the step that fires. `accepted` is
    the count of metering; `delivered` is counted by dispatchers, and 0 here.
    """

    pending: int = 0
    fired: int = 0
    late_ms: int = 0
    rejected: int = 0
    wait: Wait | None = None
    accepted: int = 0
    delivered: int = 0


@dataclass(slots=True)
class Tally:
    """Counters of one tenant."""

    fired: int = 0
    late_ms: int = 0
    rejected: int = 0
    accepted: int = 0


class Tallies:
    """The figures of all tenants of a partition."""

    def __init__(self, store: ScheduleStore, tenants: StepTenants) -> None:
        self._store = store
        self._tenants = tenants
        self._tallies: dict[bytes, Tally] = {REST: Tally()}
        self._by_refusals = 0
        self.pending = store.waiting_by_tenant()

    def figures(self, waits: Mapping[bytes, Wait]) -> dict[bytes, TenantFigures]:
        """Figures by tenant, `REST` for those that are not told apart; from any thread.

        `waits` says why the events of some of them wait.
        """
        # Each once, and in an order that is the same in each process.
        known = dict.fromkeys((*waits, *self.pending.copy(), *self._tallies.copy()))
        return {name: self._of(name, waits.get(name)) for name in known}

    def _of(self, name: bytes, wait: Wait | None) -> TenantFigures:
        tally = self._tallies.get(name) or Tally()
        pending = self.pending.get(name, 0)
        counts = tally.fired, tally.late_ms, tally.rejected
        return TenantFigures(pending, *counts, wait, tally.accepted)

    def committed(self, effects: Effects) -> None:
        """Count the work of a step; called once the store has it."""
        for name, late_ms in effects.lateness.items():
            tally = self._tally(name.encode())
            tally.fired += len(late_ms)
            tally.late_ms += sum(late_ms)
        for accepted_of, accepted in effects.accepted.items():
            self._tally(accepted_of).accepted += accepted
        for tenant, waiting in self._store.waiting_changed.items():
            if waiting:
                self.pending[tenant] = waiting
            else:
                self.pending.pop(tenant, None)
        for name, refused in effects.refused.items():
            self._tally(self._known(name)).rejected += refused

    def _tally(self, name: bytes) -> Tally:
        found = self._tallies.get(name)
        if found is None:
            name = name if len(self._tallies) < MOST else REST
            found = self._tallies.setdefault(name, Tally())
        return found

    def _known(self, name: str) -> bytes:
        """The tenant that a refused request names, where there is one of that name.

        Refusals alone make few names known: anybody can send them under names that are made up.
        """
        given = name.encode(errors="replace")
        if given in self._tallies or given in self.pending:
            return given
        if self._tenants.known(given) is None or self._by_refusals == MOST_BY_REFUSALS:
            return REST
        self._by_refusals += 1
        return given


def merged(found: Iterable[TenantFigures]) -> TenantFigures:
    """The figures of a tenant that lives in several partitions; it waits as its oldest does."""
    every = list(found)
    if len(every) == 1:
        # So it is with nearly all tenants, and there may be many.
        return every[0]
    waits = [each.wait for each in every if each.wait is not None]
    dues = [each.oldest_due_ms for each in waits if each.oldest_due_ms is not None]
    wait = min(waits, key=_age, default=None)
    if wait is not None:
        oldest_ms, waiting = min(dues, default=None), sum(each.waiting for each in waits)
        wait = wait._replace(oldest_due_ms=oldest_ms, waiting=waiting)
    return TenantFigures(
        pending=sum(each.pending for each in every),
        fired=sum(each.fired for each in every),
        late_ms=sum(each.late_ms for each in every),
        rejected=sum(each.rejected for each in every),
        wait=wait,
        accepted=sum(each.accepted for each in every),
        delivered=sum(each.delivered for each in every),
    )


def _age(wait: Wait) -> tuple[bool, int, int]:
    return wait.oldest_due_ms is None, wait.oldest_due_ms or 0, wait.since_ms
