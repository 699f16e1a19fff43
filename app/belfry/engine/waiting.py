"""Where schedules wait: the timeline, their tenant's backlog, or the line of those catching up.

    due later                            timeline
    due up to the reach, held back       backlog of its tenant   in due order, before the timeline
    due whenever, of a tenant apart      backlog of its tenant   in due order, when its turn is
    late, and each late one is to fire   catch-up of its tenant  when nothing else is to be done
    due, and an earlier fire is awaited  behind a gate           when the gate lets it go

`reach` is how far the step has emptied the timeline: what is due before it must not go there, for
the scan has passed.  While a step fires, its reach is not known yet; what comes due again before
`edge_ms` is set aside, and put where it belongs at the step's end.

A tenant is *apart* while it crowds the timeline, or where its policy asks for it: then all of its
events wait in its backlog, and `heads` holds an instant before which none of them is due.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from belfry.engine.gates import Gates, Held
from belfry.engine.undoing import Undoable
from belfry.firing.due import ScanPosition
from belfry.store.layout.pending import Pending
from belfry.store.layout.records import IN_BACKLOG, IN_CATCH_UP, Location, decode_location
from belfry.store.schedules import ScheduleStore

LINES: Final = (IN_BACKLOG, IN_CATCH_UP)


class Waiting:
    """Puts records of one partition's store where they wait, and counts each tenant's lines."""

    def __init__(self, store: ScheduleStore, reach: ScanPosition) -> None:
        self._store = store
        self._again: list[tuple[Pending, bytes]] = []
        self.reach = reach
        self.edge_ms = 0
        self.backlog = Undoable(store.queue_sizes(IN_BACKLOG))
        self.catch_up = Undoable(store.queue_sizes(IN_CATCH_UP))
        self.held_up_to_ms = self._held_before_ms = 0
        self._first_again: tuple[int, int] | None = None
        # What was put back in the turn of a backlog that is under way, the first of it on top.
        self._turn: list[tuple[tuple[int, int], Pending, bytes]] | None = None
        # Tenants whose backlog waits for the rate at which late occurrences are made up for.
        self.slowed: set[bytes] = set()
        self.heads = Undoable(dict.fromkeys(self._apart(), 0))
        self.gates = Gates(store)

    def _apart(self) -> list[bytes]:
        """Tenants with something in their backlog that is not due yet."""
        later_ms = self.reach.horizon_ms + 1
        line = self._store.first_of_queue_ms
        return [tenant for tenant in self.backlog if line(IN_BACKLOG, tenant, later_ms)]

    def committed(self) -> None:
        """The step is in the store."""
        for counts in (self.backlog, self.catch_up, self.heads):
            counts.committed()
        self._held_before_ms = self.held_up_to_ms
        self.gates.committed()

    def aborted(self) -> None:
        """The step was rolled back: all waits where it did before, at the step's own cost."""
        for counts in (self.backlog, self.catch_up, self.heads):
            counts.aborted()
        self.held_up_to_ms = self._held_before_ms
        self._again.clear()
        self._turn = None
        self.slowed.clear()
        self.gates.aborted()

    def set_apart(self, tenant: bytes) -> None:
        """Let the tenant's further events wait in its backlog, however far they are away."""
        if tenant not in self.heads:
            # Nothing is known of them but that none is due before the beginning of time.
            self.heads[tenant] = 0

    def keep(self, row: Pending, record: bytes) -> None:
        """Put a record into the timeline, or the backlog if its time is over or it is apart."""
        if not self.reach.has_passed(row.sort_key) and row.tenant not in self.heads:
            self._store.move_to_timeline(row.name, record, *row.sort_key)
        else:
            self.hold(row, record)

    def keep_plain(self, name: bytes, tenant: bytes, record: bytes, spot: tuple[int, int]) -> None:
        """Put a plain request of a tenant that is apart into its line; `name` is the local key."""
        self._store.keep_in_backlog(name, tenant, record, spot)
        self.backlog[tenant] = self.backlog.get(tenant, 0) + 1
        head = self.heads[tenant]
        if spot[0] < head:
            self.heads[tenant] = spot[0]

    def keep_again(self, row: Pending, record: bytes) -> None:
        """Keep a record at the end of the step: it is due before `edge_ms`."""
        self._again.append((row, record))

    def hold_again(self, row: Pending, record: bytes) -> None:
        """Put a record into the backlog at once, for others of its group must not overtake it.

        It may be due later than the step's reach, so the backlog waits for that instant, should the
        clock go back.  Amid a turn of the backlog it takes its place among what leaves in the turn.
        """
        if self._turn is None:
            self.let_go([(row, record)])
        else:
            heappush(self._turn, (row.sort_key, row, record))

    def let_go(self, held: list[Held]) -> None:
        """Put records that a gate no longer holds into the backlog: before what comes due now."""
        for row, record in held:
            self.hold(row, record)
            if row.tenant not in self.heads:
                self.held_up_to_ms = max(self.held_up_to_ms, row.due_ms)

    @property
    def put_back_ms(self) -> int | None:
        """Due instant of the first row that was put back in this turn."""
        return None if self._first_again is None else self._first_again[0]

    def begin_turn(self) -> None:
        """What leaves from now on leaves a tenant's backlog, in order."""
        self._first_again, self._turn = None, []

    @property
    def next_again(self) -> tuple[tuple[int, int], Pending, bytes] | None:
        """Place, row and record of the first that was put back in this turn, if there is any."""
        return self._turn[0] if self._turn else None

    def take_again(self) -> None:
        """The first that was put back in this turn leaves."""
        assert self._turn, "nothing was put back"
        heappop(self._turn)

    def end_turn(self) -> None:
        """The turn is over: what was put back and has not left waits in the backlog."""
        left, self._turn = self._turn or [], None
        for place, row, record in left:
            self.let_go([(row, record)])
            self._first_again = min(place, self._first_again or place)

    def overtakes(self, place: tuple[int, int], tenant: bytes) -> bool:
        """Whether what lies at this place of a backlog has to let the timeline's rows pass.

        What was put back may be due later than the reach.
        """
        return tenant not in self.heads and not self.reach.has_passed(place)

    def settle(self, reach: ScanPosition) -> None:
        """The step has emptied the timeline so far: put what was set aside in its place."""
        self.reach = reach
        for row, record in self._again:
            self.keep(row, record)
        self._again.clear()

    def hold(self, row: Pending, record: bytes, line: int = IN_BACKLOG) -> None:
        """Put a record that is due into its tenant's backlog, or another line."""
        self._store.move(row.name, record, Location(line, *row.sort_key))
        sizes = self._line(line)
        sizes[row.tenant] = sizes.get(row.tenant, 0) + 1
        if line == IN_BACKLOG and row.due_ms < self.heads.get(row.tenant, 0):
            self.heads[row.tenant] = row.due_ms

    def left(self, tenant: bytes, place: bytes) -> None:
        """Count one that left its place without a fire."""
        where = decode_location(place)[0]
        if where not in LINES:
            return
        sizes = self._line(where)
        sizes[tenant] -= 1
        if not sizes[tenant]:
            del sizes[tenant]

    def shrink(self, tenant: bytes, gone: int, line: int = IN_BACKLOG) -> None:
        """Count what left a line; who has more goes to the end, so that others come first."""
        sizes = self._line(line)
        left = sizes[tenant] - gone
        del sizes[tenant]
        if left > 0 and gone:
            sizes[tenant] = left

    def _line(self, line: int) -> Undoable[bytes, int]:
        return self.backlog if line == IN_BACKLOG else self.catch_up
