"""Schedules that have not fired though their rules say so: looked for in rounds, by their rows.

`oldest.py` sees overdue events.  An occurrence that was given up is not overdue: its schedule waits
for the next one, and may lose that as well, for weeks.  So each row of a recurring schedule is
asked when its rule had it fire next after its last fire:

    09:00  fired          the last fire in the row
    10:00  given up       the first that has not fired: it is stale since then
    11:00  given up
    12:00  is due next    what `oldest.py` sees; on time

A schedule that has never fired by its rule counts from its acceptance, or from the change of the
rule.  If a row tells nothing of its last fire (`BELFRY_LAST_FIRES` is off), only its pending
occurrence counts.

Schedules that wait because somebody wanted it, or that are told of elsewhere, are left out: one
that is paused, one whose rule this release cannot read, a tenant that is blocked, and belfry's own.
An occurrence that passed meanwhile counts once that is over, until the next fire: no row tells when
it was resumed.

A look reads at most `LOOKS` names, once in `EVERY_MS`, and belongs to sweeps, as maintenance does.
It asks `COSTLY` rules of RFC 5545 at most: one may take ten milliseconds, in which nothing fires.
The findings of a round are told from its end on, so with 100 000 names it is a quarter of an hour
old.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.engine.compiled_rule import compiled
from belfry.engine.culprits import FAULTS
from belfry.store.layout.locations import is_location
from belfry.store.layout.pending import Pending, decode_pending
from belfry.store.layout.pending_bytes import has_rule, last_fires, paused
from belfry.store.readable import why_unreadable
from belfry.store.schedules import ScheduleStore
from belfry.tenants.canary import CANARY
from belfry.tenants.step_tenants import StepTenants

# Late by less is nothing to tell of: take-overs and catching up take minutes.
STALE_AFTER_MS: Final = 300_000
LOOKS: Final = 100
EVERY_MS: Final = 1_000
COSTLY: Final = 4
RRULE: Final = "RRULE"


class StaleSchedules(NamedTuple):
    """How many schedules are stale, and the one that has been for longest (epoch ms).

    `name` is its changelog key, `tenant/schedule_id`.
    """

    number: int = 0
    since_ms: int = 0
    name: str = ""


NONE_STALE: Final = StaleSchedules()


class Stale:
    """Walks through a partition's schedules; `found` is told from any thread."""

    def __init__(self, store: ScheduleStore, tenants: StepTenants) -> None:
        self._store = store
        self._tenants = tenants
        self._cursor: bytes | None = None
        self._looked_ms = 0
        self._round = self.found = NONE_STALE

    def look(self, now_ms: int) -> None:
        """Look at some more, unless a look was a moment ago."""
        if 0 <= now_ms - self._looked_ms < EVERY_MS:
            return
        self._looked_ms = now_ms
        rows = list(self._store.names(self._cursor, LOOKS))
        costly = 0
        for name, row in rows:
            # Schedules that this step has changed have just fired, or were asked for.
            if is_location(row) and name not in self._store.changed:
                record = self._store.pending_at(name, row)
                try:
                    costly += self._judge(name, record, now_ms)
                except FAULTS:
                    # A look stops nobody: whether it can fire is found out when it is due.
                    costly += 1
            self._cursor = name
            if costly == COSTLY:
                return
        if len(rows) < LOOKS:
            self.found, self._cursor, self._round = self._round, None, NONE_STALE

    def _judge(self, name: bytes, record: bytes, now_ms: int) -> bool:
        """Note a schedule where it is stale; whether it took a costly rule to know."""
        if not has_rule(record) or paused(record) or why_unreadable(record):
            return False
        row = decode_pending(record)
        fires = last_fires(record)
        if now_ms - (fires[-1].nominal_ms if fires else row.accepted_ms) < STALE_AFTER_MS:
            # Whatever its rule says, it cannot be late by so much.
            return False
        self._note(name, row, unfired_since_ms(row, record), now_ms)
        return compiled(row.extra).rule.kind == RRULE

    def _note(self, name: bytes, row: Pending, since_ms: int | None, now_ms: int) -> None:
        """Count a schedule that has not fired since then, if that is long ago."""
        if since_ms is None or now_ms - since_ms < STALE_AFTER_MS + row.jitter_ms:
            return
        if self._tenants.of_bytes(row.tenant).stopped or row.tenant.decode() == CANARY:
            return
        number, oldest_ms, oldest = self._round
        if not number or since_ms < oldest_ms:
            oldest_ms, oldest = since_ms, name.decode()
        self._round = StaleSchedules(number + 1, oldest_ms, oldest)


def unfired_since_ms(row: Pending, record: bytes) -> int | None:
    """The first instant of a schedule's rule that it has not fired for (epoch ms).

    It is in the future where nothing was given up.  None if the schedule does not recur.
    """
    rule = compiled(row.extra)
    if not rule.recurs:
        return None
    fires = last_fires(record)
    if not row.occurrence:
        # The schedule or its rule is new: the fires in its row are by another rule.
        first_ms = rule.trigger.first_ms(row.accepted_ms)
    elif fires:
        first_ms = rule.after_ms(fires[-1].nominal_ms)
    else:
        return row.nominal_ms
    return row.nominal_ms if first_ms is None else min(first_ms, row.nominal_ms)
