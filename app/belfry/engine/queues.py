"""Per-tenant queues: whose turn it is, and how many events each may fire in a step.

A step shares its room among the tenants that have a backlog, those of the highest priority first:

    room of the step   ├───────────── 1 000 ─────────────┤
    priority 5         a: 1 000 waiting  500  b: 120 waiting  120      each of n gets room / n;
    priority 0         c: 900 waiting    380                           what it leaves goes on

A blocked tenant has no turn.  A tenant's rate is looked at here, and so is the due instant.  The
backlog of an isolated tenant holds events that are not due yet, and fires only up to the instant
that the timeline has been emptied up to, so that an event which waited there from before comes
first:

    timeline   ──────● its own, due 5 ─────┼ scan position 8
    backlog          ● due 3   ● due 7     ┆  ● due 9              3, 5 and 7 may leave; 9 waits

Any backlog may hold rows that are due after now, where the clock went back, or a new owner's is
behind the old one's: they wait.

Three tenants in time, with room for 1 000 in a step and `h` hot:

    12:00:00.000   h has 100 000 due, a and b one each in the timeline
    step 1         h fires 500, which is half of the room; then a and b
    step 2 …       h alone: nothing else is due within half a second, so it has all of the room
    12:00:01.500   c is due in half a second: from now on h has half of the room again
    12:00:02.000   c fires with the step that follows the one under way

So a tenant with many events costs another one a step, however many they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from belfry.engine.step import Step
from belfry.engine.undo import Tracked, UndoLog
from belfry.engine.waiting import Waiting
from belfry.firing.due import Most, take
from belfry.firing.rates import Rate
from belfry.store.layout import keys
from belfry.store.layout.locations import IN_BACKLOG
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Tenant
from belfry.tenants.step_tenants import StepTenants

FIRE_BURST_MS: Final = 100.0
# A step that others wait for is over soon.
SHORT_STEP: Final = 2_000
SOON_MS: Final = 500
ALL: Final = 2**62

Rows = list[tuple[bytes, bytes]]


class Turn(NamedTuple):
    """A tenant whose backlog may fire now.

    Rows due up to `until_ms` may leave, at most `most` of them, as its rate allows.  `behind` says
    that the backlog may hold rows that are due after now, since a clock went back.
    """

    name: bytes
    tenant: Tenant
    until_ms: int
    most: int
    behind: bool


class Look(NamedTuple):
    """The next rows of a turn (key, record) in a level of the backlog, in due order.

    Behind them nothing is due before `beyond_ms`; `most` is how many events may leave.
    """

    level: bytes
    rows: Rows
    beyond_ms: int
    most: int


class Queues:
    """Gives turns to the backlogs of one partition."""

    def __init__(
        self, store: ScheduleStore, tenants: StepTenants, waiting: Waiting, undo: UndoLog
    ) -> None:
        self._store = store
        self._tenants = tenants
        self._waiting = waiting
        self._rate = Rate(FIRE_BURST_MS, Tracked(undo))

    def next_ms(self) -> int | None:
        """When the next isolated tenant may fire; None for never."""
        found = [
            self._ready_ms(name, hint)
            for name in self._waiting.hints
            if name in self._waiting.backlog
            and name not in self._waiting.slowed
            and not self._tenants.of_bytes(name).stopped
            and (hint := self._waiting.levels.first_hint(name)) is not None
        ]
        return min(found, default=None)

    @property
    def any_ready(self) -> bool:
        """Whether a tenant that is neither blocked nor isolated has a backlog to fire."""
        found, others = False, self._waiting.hints.keys() | self._waiting.slowed
        for name in self._waiting.backlog:
            tenant = self._tenants.of_bytes(name)
            if tenant.queued:
                self._waiting.isolate(name)
            elif not (tenant.stopped or name in others):
                found = True
        return found

    def room(self, at_most: int, next_due_ms: int | None, now_ms: int) -> int:
        """How many events backlogs may fire in a step: the room that others need is left to them.

        `next_due_ms` is the first instant of the timeline.  Where that is near, backlogs have half
        of the step and at most `SHORT_STEP`, so that the step is over when it comes.
        """
        if next_due_ms is None or next_due_ms > now_ms + SOON_MS:
            return at_most
        return max(1, min(at_most // 2, SHORT_STEP))

    def turns(self, step: Step) -> Iterator[tuple[Turn, int]]:
        """Each turn, with the number of turns of its priority that are left, itself included."""
        found = [self._turn(name, step) for name in self._waiting.backlog]
        ready = [turn for turn in found if turn is not None]
        if any(turn.tenant.effective.policy.priority for turn in ready):
            ready.sort(key=_priority)
        for _, equals in groupby(ready, key=_priority):
            level = list(equals)
            for number, turn in enumerate(level):
                yield turn, len(level) - number

    def levels(self, turn: Turn) -> Sequence[bytes]:
        """The levels of a turn's backlog, in the order in which they leave."""
        return self._waiting.levels.of(IN_BACKLOG, turn.name)

    def peek(self, turn: Turn, level: bytes, share: Most) -> Look:
        """The next rows of a turn in one level; `took` says how many of them have left."""
        hint = self._waiting.levels.hint(turn.name, level)
        rows = self._store.queue_between(IN_BACKLOG, turn.name, hint, turn.until_ms, level)
        most = max(1, share.rows)
        found, more = take(rows, Most(most, share.size))
        beyond_ms = keys.due_of(found[-1][0]) if more else turn.until_ms + 1
        return Look(level, found, beyond_ms, most)

    def took(self, turn: Turn, look: Look, left: int, fired: int, step: Step) -> None:
        """Count rows that have left, and fired, for the turns to come."""
        self._waiting.levels.grow(IN_BACKLOG, turn.name, look.level, -left)
        if turn.name in self._waiting.hints:
            self._move_hint(turn, look, left)
        limit = turn.tenant.effective.policy.max_fires_per_second
        if limit is not None and fired:
            self._rate.take(turn.name, limit, step.now_ms, fired)

    def extra_room(self, tenant: Tenant, step: Step) -> int:
        """How many events more of a tenant its rate allows, besides those of its schedules.

        Backfills ask it: their fires count for the same rate (`max_fires_per_second`).
        """
        limit = tenant.effective.policy.max_fires_per_second
        return ALL if limit is None else self._rate.room(tenant.name_bytes, limit, step.now_ms)

    def took_extra(self, tenant: Tenant, fired: int, step: Step) -> None:
        """So many of these have fired."""
        limit = tenant.effective.policy.max_fires_per_second
        if limit is not None and fired:
            self._rate.take(tenant.name_bytes, limit, step.now_ms, fired)

    def _turn(self, name: bytes, step: Step) -> Turn | None:
        tenant = self._tenants.of_bytes(name)
        if tenant.stopped:
            return None
        limit = tenant.effective.policy.max_fires_per_second
        most = ALL if limit is None else self._rate.room(name, limit, step.now_ms)
        hint = self._waiting.levels.first_hint(name)
        behind = step.now_ms < max(step.scan.reached_ms, self._waiting.held_up_to_ms)
        until_ms = step.now_ms if behind else ALL
        if hint is not None:
            until_ms = min(step.scan.watermark_ms, step.now_ms)
        if most < 1 or (hint is not None and hint > until_ms):
            return None
        return Turn(name, tenant, until_ms, most, behind)

    def _move_hint(self, turn: Turn, look: Look, left: int) -> None:
        """No event of the level is due before its first committed row, or those of the step."""
        levels, rows, level = self._waiting.levels, look.rows, look.level
        if rows:
            due_ms = keys.due_of(rows[left][0]) if left < len(rows) else look.beyond_ms
            again_ms = self._waiting.put_back_ms
            levels.set_hint(turn.name, level, min(due_ms, again_ms or due_ms))
            return
        before_ms = levels.hint(turn.name, level) or 0
        first_ms = self._store.first_of_queue_ms(IN_BACKLOG, turn.name, before_ms, level)
        levels.set_hint(turn.name, level, ALL if first_ms is None else first_ms)
        if levels.first_hint(turn.name) == ALL and not turn.tenant.queued:
            # The tenant is no longer hot; its next events wait in the timeline again.
            del levels.hints[turn.name]

    def _ready_ms(self, name: bytes, hint: int) -> int:
        limit = self._tenants.of_bytes(name).effective.policy.max_fires_per_second
        if limit is None:
            return hint
        return int(min(ALL, max(hint, self._rate.ready_ms(name, limit) + 1)))


def _priority(turn: Turn) -> int:
    return -turn.tenant.effective.policy.priority
