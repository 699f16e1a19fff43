"""Where schedules wait: the timeline, a queue of their tenant, or behind an ack lock.

    due later                            timeline
    due, held back                       its tenant's backlog    in due order, before the timeline
    due whenever, of an isolated tenant  its tenant's backlog    in due order, when its turn is
    late, and each late one is to fire   its catch-up queue      when nothing else is to be done
    due, and an earlier fire is awaited  behind a lock           when the lock lets it go
    due once others are acknowledged     behind a lock           then (`dependents.py`)

A row must not go where the scan has passed, for the scan would never meet it:

                         scan position        horizon
    timeline   ─────────────────┼────────────────┼──────────────────►
    due here     backlog        │  set aside     │   timeline
                                │  until the step knows its position

While a step fires, its scan position is not known yet.  A schedule that comes due again before the
horizon of the step (the next second of a schedule of each second, say) is set aside, and `settle`
puts it into the timeline or the backlog.

A tenant is *isolated* while it is hot (`firing/hot_tenants.py`), or where its policy asks for it.
Then all of its events wait in its backlog, however far they are away, and `hints` holds an instant
before which none of them is due.  A hint may be too early, never too late:

    hint        10        10            40
    backlog     ──── 40 ────── 12 joins ──── 12 leaves ────►        the hint follows at a turn's end

Where a row waits is a *location* under its name; a replay derives it anew, for only the schedule
itself is in the changelog.  A row that is due then goes to the backlog, and from there it finds its
lock closed, or its rate used up, once more.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from belfry.engine.ack_locks import AckLocks
from belfry.engine.dependents import Dependents
from belfry.engine.levels import Levels
from belfry.engine.releasing import Held
from belfry.engine.step import Step
from belfry.engine.undo import Tracked, TrackedOrder, UndoLog
from belfry.firing.due import ScanPosition
from belfry.schedules.triggers.levels import level_in
from belfry.store.layout.day_reference import DayFile
from belfry.store.layout.keys import SortKey
from belfry.store.layout.locations import (
    IN_BACKLOG,
    IN_CATCH_UP,
    IN_PAUSED,
    Location,
    decode_location,
)
from belfry.store.layout.pending import Pending
from belfry.store.layout.pending_bytes import due_and_seq
from belfry.store.layout.pending_bytes import held as paused_record
from belfry.store.schedules import ScheduleStore

QUEUES: Final = (IN_BACKLOG, IN_CATCH_UP)

# Sort key, row and record of a schedule that was put back into a backlog amid its turn.
PutBack = tuple[SortKey, Pending, bytes]


class Waiting:
    """Puts records of one partition's store where they wait, and counts each tenant's queues.

    `backlog` and `catch_up` are sizes by tenant, of all `levels` together; the first tenant in them
    has the next turn. `recalled` are day files that a request wants back, a hint that no step
    undoes. `slowed` are tenants whose backlog waits for the rate of catching up.  `held_up_to_ms`:
    a backlog may hold rows that are due until then, later than the scan position.  `hints` are
    epoch ms by tenant, and a tenant is isolated exactly while it has one.
    """

    def __init__(self, store: ScheduleStore, undo: UndoLog, scan: ScanPosition) -> None:
        self._store = store
        self._undo = undo
        self.levels = Levels(store, undo, scan.reached_ms + 1)
        self.backlog = TrackedOrder(undo, self.levels.totals(IN_BACKLOG))
        self.catch_up = TrackedOrder(undo, self.levels.totals(IN_CATCH_UP))
        self.held_up_to_ms = 0
        self.slowed: set[bytes] = set()
        self.recalled: dict[DayFile, None] = {}
        self.hints = self.levels.hints
        self.locks = AckLocks(store, undo)
        self.dependents = Dependents(store, undo, self.locks.dependences)
        # Rows that were put back in the turn of a backlog that is under way, the first on top.
        self._turn: list[PutBack] | None = None
        self._first_put_back: SortKey | None = None
        undo.scratch(self._forget_turn)

    @property
    def unsaid(self) -> tuple[object, ...]:
        """All that is counted here, to compare; where the order is that of turns, as a list."""
        ordered = self.backlog, self.catch_up, self.locks.releasing
        in_order = [list(each.items()) for each in ordered]
        return in_order, dict(self.hints), self.slowed, self.held_up_to_ms, self.levels.unsaid

    # -- putting a record where it waits ---------------------------------------------------------

    def isolate(self, tenant: bytes) -> None:
        """Let the tenant's further events wait in its backlog, however far they are away."""
        if tenant not in self.hints:
            # Nothing is known of them but that none is due before the beginning of time.
            self.hints[tenant] = 0

    def put(self, row: Pending, record: bytes, step: Step) -> None:
        """Put a record into the timeline, or the backlog if its time is over or it is isolated.

        "Over" are rows that the scan has passed, not those before now: only the former are never
        met.
        """
        sort_key = row.sort_key
        if step.scan.has_passed(sort_key) or row.tenant in self.hints:
            self.hold(row, record)
        else:
            self._store.move_to_timeline(row.name, record, *sort_key)

    def keep_isolated(self, name: bytes, tenant: bytes, record: bytes, sort_key: SortKey) -> None:
        """Keep a new schedule of an isolated tenant in its backlog."""
        self._store.keep_in_backlog(name, tenant, record, sort_key)
        self.backlog[tenant] = self.backlog.get(tenant, 0) + 1
        self.hints[tenant] = min(self.hints[tenant], sort_key[0])

    def hold(self, row: Pending, record: bytes, queue: int = IN_BACKLOG) -> None:
        """Put a record that is due into its tenant's backlog, or the catch-up queue."""
        tenant = row.tenant
        where = Location(queue, *row.sort_key, level_in(row.extra))
        self._store.move(row.name, record, where)
        sizes = self._sizes(queue)
        sizes[tenant] = sizes.get(tenant, 0) + 1
        if where.within:
            self.levels.joins(where, tenant)
        elif queue == IN_BACKLOG and row.due_ms < self.hints.get(tenant, 0):
            self.hints[tenant] = row.due_ms

    def pause(self, row: Pending, record: bytes) -> bytes:
        """Put a record that was taken from its place where paused ones lie; the kept row."""
        kept = paused_record(record)
        self._store.rewrite(row.name, kept)
        self._store.move(row.name, kept, Location(IN_PAUSED, *due_and_seq(kept)))
        return kept

    def let_go(self, held: list[Held]) -> None:
        """Put records that a lock no longer holds into the backlog, before rows that come due."""
        for row, record in held:
            self.hold(row, record)
            if row.tenant not in self.hints and row.due_ms > self.held_up_to_ms:
                self._undo.attribute(self, "held_up_to_ms")
                self.held_up_to_ms = row.due_ms

    def hold_again(self, row: Pending, record: bytes) -> None:
        """Put a record into the backlog at once, for others of its group must not overtake it.

        It may be due later than the scan position, so the backlog waits for that instant, should
        the clock go back.  Amid a turn it takes its place among the rows that leave in the turn.
        """
        if self._turn is None:
            self.let_go([(row, record)])
        else:
            heappush(self._turn, (row.sort_key, row, record))

    def settle(self, scan: ScanPosition, step: Step) -> None:
        """The step has emptied the timeline so far: put all that was set aside in its place."""
        step.scan = scan
        for row, record in step.set_aside:
            self.put(row, record, step)
        step.set_aside.clear()

    # -- counting rows that leave
    # --------------------------------------------------------------------

    def left(self, tenant: bytes, row: bytes) -> None:
        """Count one that left its location without a fire."""
        where, _, _, level = decode_location(row)
        if where not in QUEUES:
            return
        self.levels.grow(where, tenant, level, -1)
        sizes = self._sizes(where)
        sizes[tenant] -= 1
        if not sizes[tenant]:
            del sizes[tenant]

    def shrink(self, tenant: bytes, gone: int, queue: int = IN_BACKLOG) -> None:
        """Count rows that left a queue; a tenant that has more goes to the end, behind the others.

        The order of the dictionary is the order of turns.
        """
        sizes = self._sizes(queue)
        left = sizes[tenant] - gone
        del sizes[tenant]
        if left > 0 and gone:
            sizes[tenant] = left

    def begin_slowing(self) -> None:
        """A step fires: it finds out anew whose backlog has to wait for the rate."""
        if self.slowed:
            self._undo.attribute(self, "slowed")
            self.slowed = set()

    def slow(self, tenant: bytes) -> None:
        """The tenant's backlog waits for the rate of catching up."""
        self._undo.attribute(self, "slowed")
        self.slowed = {*self.slowed, tenant}

    # -- the turn of a backlog -------------------------------------------------------------------

    def begin_turn(self) -> None:
        """Rows that leave from now on leave a tenant's backlog, in order."""
        self._first_put_back, self._turn = None, []

    @property
    def next_put_back(self) -> PutBack | None:
        """The first that was put back in this turn, if there is any."""
        return self._turn[0] if self._turn else None

    @property
    def put_back_ms(self) -> int | None:
        """Due instant of the first that was put back in this turn, and has not left in it."""
        return None if self._first_put_back is None else self._first_put_back[0]

    def take_put_back(self) -> None:
        """The first that was put back in this turn leaves."""
        assert self._turn, "nothing was put back"
        heappop(self._turn)

    def end_turn(self) -> None:
        """The turn is over: rows that were put back and have not left wait in the backlog."""
        left, self._turn = self._turn or [], None
        for sort_key, row, record in left:
            self.let_go([(row, record)])
            self._first_put_back = min(sort_key, self._first_put_back or sort_key)

    def overtakes(self, sort_key: SortKey, tenant: bytes, step: Step) -> bool:
        """Whether a row here in a backlog has to let the timeline's rows pass.

        A row that was put back may be due later than the scan position.
        """
        return tenant not in self.hints and not step.scan.has_passed(sort_key)

    def _forget_turn(self) -> None:
        self._turn = None

    def _sizes(self, queue: int) -> Tracked[bytes, int]:
        return self.backlog if queue == IN_BACKLOG else self.catch_up
