"""The rows of a key group in a partition: their tenants, their keys, and the obstacles of a move.

A group is no range of the store: its tenants are found by a look at one row of each tenant.  Only
committed rows are found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from belfry.engine.aside import Aside
from belfry.engine.groups import Groups
from belfry.engine.kept_jobs import KeptJobs
from belfry.engine.moved_rows import MovedRows
from belfry.store.layout import keys
from belfry.store.layout.calendars import CALENDAR_PREFIX
from belfry.store.layout.jobs import JOB_PREFIX
from belfry.store.layout.locations import decode_location, is_location
from belfry.store.schedules import ScheduleStore
from belfry.tenants.step_tenants import StepTenants

# Rows that move at once: more would be late by more than a second or so.
MOST_ROWS: Final = 50_000
# Each look for the tenants of a group looks at a row of each tenant of the partition.
MOST_TENANTS: Final = 10_000
# Brokers take records of 1 MiB, unless the topic says otherwise.  A record that its target refuses
# is kept whole, so that it can be sent again (`rejected_record.py`).
MOST_ROW_BYTES: Final = 850_000

_OTHERS: Final = (keys.REQUEST_PREFIX, JOB_PREFIX)
_FAMILIES: Final = (b"", *_OTHERS, keys.AWAITED_PREFIX, CALENDAR_PREFIX)


class GroupRows:
    """Looks for the rows of key groups in one partition's store."""

    def __init__(
        self, store: ScheduleStore, tenants: StepTenants, rows: MovedRows, groups: Groups
    ) -> None:
        self._store = store
        self._tenants = tenants
        self._rows = rows
        self._groups = groups

    @property
    def too_many_tenants(self) -> bool:
        """Whether the partition has more tenants than can be looked through in a step."""
        met = 0
        for prefix in _FAMILIES:
            for _ in self._names_in(prefix):
                met += 1
                if met > MOST_TENANTS:
                    return True
        return False

    def in_the_way(self, tenants: list[bytes], aside: Aside, jobs: KeptJobs) -> str:
        """Why these tenants cannot leave now; empty where they can."""
        if aside.any:
            return "aside: requests of the partition wait for their schemas"
        running = jobs.tenants()
        busy = next((name for name in tenants if name in running), None)
        if busy is not None:
            return f"job: a bulk job of tenant {busy.decode()} is under way"
        count = 0
        for tenant in tenants:
            for name in self._names(tenant):
                count += 1
                row = self._rows.row_of(name)
                if row is not None and len(row) > MOST_ROW_BYTES:
                    return f"large: {name.decode(errors='replace')} takes {len(row)} bytes"
                if count > MOST_ROWS:
                    return f"many: the group has more than {MOST_ROWS} rows"
        return ""

    def is_spread(self, name: bytes) -> bool:
        """Whether a tenant has, or had, more than one home: its rows then stay."""
        tenant = self._tenants.of_bytes(name)
        return tenant.spread != 1 or bool(tenant.effective.policy.former_spreads)

    def tenants_of(self, group: int) -> list[bytes]:
        """Tenants of a group that have any row here."""
        found: dict[bytes, None] = {}
        for prefix in _FAMILIES:
            for name in self._names_in(prefix):
                if self._groups.of(name.decode()) == group:
                    found[name] = None
        return list(found)

    def _names_in(self, prefix: bytes) -> Iterator[bytes]:
        """Tenants that have rows of a kind, each by a look at its first row."""
        start = prefix or b"\1"
        while (key := self._first(start, prefix + b"\xff")) is not None:
            name = key[len(prefix) :].partition(b"/")[0]
            yield name
            start = prefix + name + b"0"

    def _first(self, start: bytes, end: bytes) -> bytes | None:
        return next((key for key, _ in self._store.between(start, end)), None)

    def _names(self, tenant: bytes) -> Iterator[bytes]:
        """Changelog keys of all rows of a tenant."""
        for prefix in _FAMILIES:
            for name, _ in self._store.between(prefix + tenant + b"/", prefix + tenant + b"0"):
                yield name

    def all_of(self, group: int, stays: tuple[bytes, ...]) -> list[bytes]:
        """Changelog keys of all that is left of a group, in the order in which it leaves."""
        waits: list[tuple[int, bytes]] = []
        parts: list[list[bytes]] = [[], [], []]
        for tenant in self.tenants_of(group):
            if tenant in stays:
                continue
            names = self._store.between(tenant + b"/", tenant + b"0")
            for name, row in names:
                if is_location(row):
                    waits.append((decode_location(row).seq, name))
                else:
                    parts[0].append(name)
            for part, prefixes in enumerate((_OTHERS, (keys.AWAITED_PREFIX,), (CALENDAR_PREFIX,))):
                for prefix in prefixes:
                    rows = self._store.between(prefix + tenant + b"/", prefix + tenant + b"0")
                    parts[part] += [name for name, _ in rows]
        return [name for _, name in sorted(waits)] + parts[0] + parts[1] + parts[2]
