"""Levels: a tenant's backlog and its catch-up queue, divided by the priorities of its schedules.

A schedule has a priority from -9 to 9.  It counts only while events of its tenant are held back,
and only among them: those of the highest priority leave first, the others in due order.

    backlog of `shop`                                        leave, three at a time
    priority 5    ● 12:00:04   ● 12:00:09                    4   9   1
    priority 0    ● 12:00:01   ● 12:00:02   ● 12:00:03       2   3   …
    priority -3   ● 12:00:00                                 last, however long it waits

Each priority has a queue of its own, the *level* (`store/layout/keys.py`), so a turn reads only
rows that leave.  That of priority 0 is the queue that a tenant has anyway.  A tenant without
priorities has no entry here, and its turns look at one level.

Where the timeline has more due than a step has room for, a tenant that has `used` priorities lets
all of it join its backlog, where it is sorted.  Moving is cheaper than firing, so the scan gets
ahead of the fires (`firing.MOST_CHUNKS`).  In a step that has room for all, nothing is moved.

Nothing raises a low priority: its events wait while higher ones keep coming (`docs/schedules.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from belfry.engine.undo import Tracked, UndoLog
from belfry.schedules.triggers.levels import first_to_last
from belfry.store.layout.locations import IN_BACKLOG, QUEUES, Location
from belfry.store.schedules import ScheduleStore

# The levels of a tenant without priorities: the one that each has.
USUAL: Final = (b"",)


class Levels:
    """How much lies in the levels of one partition's queues, beside those of priority 0.

    A queue is `IN_BACKLOG` or `IN_CATCH_UP`; a level is as in `store/layout/keys.py`.  `hints` are
    those of priority 0 in the backlogs of isolated tenants, by tenant (`waiting.py`).  `used` are
    tenants that have had a schedule with another priority than 0.
    """

    def __init__(self, store: ScheduleStore, undo: UndoLog, later_ms: int) -> None:
        """A tenant with something in its backlog that is due at `later_ms` or later is isolated."""
        self._store = store
        # By queue and tenant; the inner dictionaries are replaced, and never changed.
        self._sizes: Tracked[tuple[int, bytes], dict[bytes, int]] = Tracked(undo)
        self._hints: Tracked[tuple[bytes, bytes], int] = Tracked(undo)
        self.used: Tracked[bytes, bool] = Tracked(undo)
        for queue in QUEUES:
            for (tenant, level), size in store.level_sizes(queue).items():
                self.grow(queue, tenant, level, size)
        isolated = [each for each in self.totals(IN_BACKLOG) if self._has_later(each, later_ms)]
        self.hints = Tracked(undo, dict.fromkeys(isolated, 0))

    def _has_later(self, tenant: bytes, later_ms: int) -> bool:
        first_ms = self._store.first_of_queue_ms
        levels = self.of(IN_BACKLOG, tenant)
        return any(first_ms(IN_BACKLOG, tenant, later_ms, level) is not None for level in levels)

    @property
    def unsaid(self) -> tuple[object, ...]:
        """All that is counted here, to compare."""
        return dict(self._sizes), dict(self._hints), dict(self.used)

    def totals(self, queue: int) -> dict[bytes, int]:
        """How much is committed in all levels of each tenant's queue."""
        found = self._store.queue_sizes(queue)
        for (tenant, _), size in self._store.level_sizes(queue).items():
            found[tenant] = found.get(tenant, 0) + size
        return found

    def of(self, queue: int, tenant: bytes) -> Sequence[bytes]:
        """The levels of a tenant's queue in the order in which they leave."""
        sizes = self._sizes.get((queue, tenant))
        return USUAL if sizes is None else first_to_last([b"", *sizes])

    def grow(self, queue: int, tenant: bytes, level: bytes, by: int) -> None:
        """So much more lies in a level; that of priority 0 is not counted here."""
        if not level:
            return
        place = queue, tenant
        sizes = {**self._sizes.get(place, {})}
        sizes[level] = sizes.get(level, 0) + by
        if not sizes[level]:
            del sizes[level]
            if queue == IN_BACKLOG and (tenant, level) in self._hints:
                del self._hints[tenant, level]
        if sizes:
            self._sizes[place] = sizes
        elif place in self._sizes:
            del self._sizes[place]
        self.note_use(tenant)

    def joins(self, where: Location, tenant: bytes) -> None:
        """Something joins a level of a tenant's queue there."""
        queue, due_ms, _, level = where
        sizes = self._sizes.get((queue, tenant), {})
        known_ms = self._hints.get((tenant, level), 0)
        if queue == IN_BACKLOG and (level not in sizes or due_ms < known_ms):
            self._hints[tenant, level] = due_ms
        self.grow(queue, tenant, level, 1)

    def note_use(self, tenant: bytes) -> None:
        """A schedule of this tenant is seen that has another priority than 0."""
        if tenant not in self.used:
            self.used[tenant] = True

    # -- hints of isolated tenants ---------------------------------------------------------------

    def hint(self, tenant: bytes, level: bytes) -> int | None:
        """Before this instant nothing of the level is due; None where no tenant is isolated so."""
        hint = self.hints.get(tenant)
        return hint if hint is None or not level else self._hints.get((tenant, level), 0)

    def first_hint(self, tenant: bytes) -> int | None:
        """The same of all levels."""
        hint, sizes = self.hints.get(tenant), self._sizes.get((IN_BACKLOG, tenant))
        if hint is None or sizes is None:
            return hint
        return min(hint, *[self._hints.get((tenant, level), 0) for level in sizes])

    def set_hint(self, tenant: bytes, level: bytes, due_ms: int) -> None:
        """Nothing of an isolated tenant's level is due before this instant."""
        if not level:
            self.hints[tenant] = due_ms
        elif level in self._sizes.get((IN_BACKLOG, tenant), {}):
            self._hints[tenant, level] = due_ms
