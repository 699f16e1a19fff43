"""Schedules with a rule: what recurs, and what says how late it may be.

    due row ─► in time?  ── fires ──────────────────────────► next occurrence, in the same step
                 │ late                                        │    └ none left: COMPLETED, a marker
                 ├ FIRE_ONCE   the last late one fires ────────┤
                 ├ SKIP        none fires ─────────────────────┤
                 └ FIRE_ALL    joins its tenant's catch-up     │
                                                               └► changelog row of the same name

Firing and the next occurrence are one change of one row, so neither can be without the other.  What
a policy gives up is counted as MISSED.  Occurrences are numbered by fires: what is given up leaves
no gap.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.effects import Effects
from belfry.engine.firing import RULE, emit, told
from belfry.engine.gates import own_gate, unreadable_gate
from belfry.engine.plan import QUEUE_ONE, Plan, plan_of
from belfry.engine.queues import Turn
from belfry.engine.waiting import SCHEDULE_ID, SEQ, TENANT, Waiting
from belfry.engine.zone_change import ZoneChange
from belfry.firing.catch_up_rate import CatchUpRate
from belfry.schedules.identity import fire_id
from belfry.schedules.instants import format_instant
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.misfire import (
    FIRE_ALL,
    FIRE_ONCE,
    SKIP,
    LateRun,
    Spread,
    due_last,
    late_run,
    policy_of,
    run_up_to,
)
from belfry.schedules.outcomes import Outcome
from belfry.schedules.tenant import Tenant
from belfry.store.readable import why_unreadable
from belfry.store.records import (
    ENDED_COMPLETED,
    ENDED_FIRED,
    ENDED_MISSED,
    IN_CATCH_UP,
    PendingRow,
    encode_marker,
    next_record,
)
from belfry.store.schedules import ScheduleStore

NOMINAL: Final = 1
LIFE: Final = 4
VERSION: Final = 5
OCCURRENCE: Final = 6
KIND: Final = 7
JITTER: Final = 9
GROUP: Final = 12

# Occurrences of one schedule that leave in one step: an interval may be shorter than a step.
MOST_AT_ONCE: Final = 100

# What follows an occurrence: due instant, nominal instant, number of the next fire, record.
Next = tuple[int, int, int, bytes]


class Ruled:
    """Fires rows that have a rule; `begin` says in which step."""

    def __init__(self, store: ScheduleStore, waiting: Waiting, zones: ZoneChange) -> None:
        self._store = store
        self._waiting = waiting
        self.zones = zones
        self._now_ms = 0
        self._place_ms = 0
        self._effects = Effects()
        self.rate = CatchUpRate()

    def begin(self, now_ms: int, effects: Effects) -> None:
        """What leaves from now on leaves at this instant, into these effects."""
        self._now_ms, self._effects = now_ms, effects
        self._waiting.slowed.clear()
        self.rate.fill(now_ms)

    def leave(self, row: PendingRow, record: bytes, tenant: Tenant, place_ms: int) -> None:
        """Fire a due row that was taken from its place, or judge it, and keep what follows.

        Its place may be later than its due instant: that of the last of a run, which fires for it.
        """
        self._store.added -= 1
        if self.holds_unreadable(row, record):
            return
        self._place_ms = place_ms
        if self.zones.under_way:
            found = self.zones.derived(row, record, self._waiting.edge_ms, self._effects)
            if found is not None and found[0][0] > self._waiting.edge_ms:
                self._waiting.keep_again(*found)
                return
            row, record = found or (row, record)
        plan = plan_of(row[RULE])
        for _ in range(MOST_AT_ONCE):
            following = self._turn(row, record, plan, tenant)
            if following is None:
                return
            due_ms, _, _, record = following
            if due_ms > self._waiting.edge_ms:
                name = b"k%b/%b" % (row[TENANT], row[SCHEDULE_ID])
                self._store.put_timeline(name, record, due_ms, row[SEQ])
                return
            row = next_row(row, following)
            if due_ms > self._now_ms:
                # The clock went back: it waits for the instant to come again.
                self._waiting.hold_again(row, record)
                return
            if row[GROUP]:
                # Those of its group that are due between the two come first.
                self._waiting.hold_again(row, record)
                return
            if self._effects.room <= 0:
                break
        self._waiting.keep_again(row, record)

    def holds_unreadable(self, row: PendingRow, record: bytes) -> bool:
        """Hold a schedule back that this version cannot fire, and say so; the others go on."""
        why = why_unreadable(record)
        if not why:
            return False
        self._waiting.gates.hold(unreadable_gate(row), row, record)
        name = row[TENANT] + b"/" + row[SCHEDULE_ID]
        self._effects.unreadable.append((name, why))
        self._effects.moved = True
        return True

    def _turn(self, row: PendingRow, record: bytes, plan: Plan, tenant: Tenant) -> Next | None:
        """One occurrence, or a run of late ones; what follows, if there is anything to keep."""
        if plan.overlap and self._waiting.gates.is_closed(own_gate(row)):
            return self._overlap(row, record, plan, tenant)
        if row[GROUP] and self._place_ms > row[0]:
            run_here = run_up_to(plan.trigger, row[NOMINAL], self._place_ms, _spread(row))
            return self._fire_for(run_here, (row, record), plan, tenant)
        if plan.overlap == QUEUE_ONE and (run := self._queue(row, plan, tenant)) is not None:
            return self._fire_for(run, (row, record), plan, tenant)
        if self._now_ms - row[0] <= plan.limit_ms:
            return self.fire(row, record, plan, tenant)
        policy = policy_of(plan.rule, tenant.misfire)
        if not plan.recurs:
            return self._late_one_shot(row, record, plan, tenant, policy)
        if policy == FIRE_ALL:
            return self._catch_up(row, record, plan, tenant)
        return self._late_run(row, record, plan, tenant, policy)

    def fire(
        self,
        row: PendingRow,
        record: bytes,
        plan: Plan,
        tenant: Tenant,
        run: LateRun | None = None,
    ) -> Next | None:
        """Fire one occurrence, or one for a run; what follows, or None where that is nothing."""
        name = row[TENANT] + b"/" + row[SCHEDULE_ID]
        identity = fire_id(name, row[LIFE], row[VERSION], row[NOMINAL])
        missed, passed_ms = (0, row[NOMINAL]) if run is None else (run.number - 1, run.last_ms)
        emit(row, tenant, (identity, self._now_ms), self._effects, missed)
        if plan.awaits is not None:
            fire = identity, self._now_ms
            self._waiting.gates.close(row, fire, plan.awaits, self._effects)
        if Outcome.FIRED in tenant.written:
            event = told(row, tenant, Outcome.FIRED, self._now_ms)
            event.fire_id = identity.decode()
            self._effects.lifecycle.append(event)
        occurrence = row[OCCURRENCE] + 1
        following_ms = plan.after_ms(passed_ms) if occurrence < plan.max_fires else None
        if following_ms is None:
            self._end(row, ENDED_COMPLETED if plan.recurs else ENDED_FIRED, occurrence, tenant)
            return None
        return self._next(row, record, following_ms, occurrence)

    def _next(self, row: PendingRow, record: bytes, following_ms: int, occurrence: int) -> Next:
        name = row[TENANT] + b"/" + row[SCHEDULE_ID]
        jitter = row[JITTER]
        due_ms = following_ms + (jitter_ms(name, following_ms, jitter) if jitter else 0)
        kept = next_record(record, due_ms, following_ms, occurrence)
        self._effects.rows[name] = kept
        return due_ms, following_ms, occurrence, kept

    def _end(self, row: PendingRow, how: int, occurrence: int, tenant: Tenant) -> None:
        name = row[TENANT] + b"/" + row[SCHEDULE_ID]
        marker = encode_marker((how, self._now_ms, row[0], row[LIFE], row[VERSION], occurrence))
        self._effects.rows[name] = marker
        self._store.set_named(name, marker)
        if how == ENDED_COMPLETED:
            self._effects.outcomes[Outcome.COMPLETED] += 1
            if Outcome.COMPLETED in tenant.written:
                event = told(row, tenant, Outcome.COMPLETED, self._now_ms)
                self._effects.lifecycle.append(event)

    # -- what is late ----------------------------------------------------------------------------

    def _late_one_shot(
        self, row: PendingRow, record: bytes, plan: Plan, tenant: Tenant, policy: str
    ) -> Next | None:
        if policy != SKIP:
            return self.fire(row, record, plan, tenant)
        self.give_up(row, tenant, 1, f"to {format_instant(row[NOMINAL])}")
        self._end(row, ENDED_MISSED, row[OCCURRENCE], tenant)
        return None

    def _late_run(
        self, row: PendingRow, record: bytes, plan: Plan, tenant: Tenant, policy: str
    ) -> Next | None:
        """Fire the last of a late run for all of it, or none."""
        run = late_run(plan.trigger, row[NOMINAL], self._now_ms - plan.limit_ms, _spread(row))
        if policy == FIRE_ONCE:
            return self._fire_for(run, (row, record), plan, tenant)
        self.give_up(row, tenant, run.number, f"to {format_instant(run.last_ms)}")
        return self._go_on(row, record, run.following_ms, tenant)

    def _fire_for(
        self, run: LateRun, first: tuple[PendingRow, bytes], plan: Plan, tenant: Tenant
    ) -> Next | None:
        """Fire the last of a run, which begins with this row, for all of it.

        In a group it waits for its place: what is due before the last of the run comes first.
        """
        row, record = first
        last_ms = run.last_ms
        if row[GROUP] and row[JITTER]:
            last_ms = due_last(plan.trigger, row[NOMINAL], run, _spread(row))
        due_ms = _spread(row).due_ms(last_ms)
        if row[GROUP] and due_ms > max(row[0], self._place_ms):
            self._waiting.hold_again((due_ms, *row[1:]), record)
            self._effects.moved = True
            return None
        if run.number > 1:
            end = f"on: the one of {format_instant(last_ms)} fires for them"
            self.give_up(row, tenant, run.number - 1, end)
        last = (due_ms, last_ms, *row[2:])
        return self.fire(last, record, plan, tenant, run)

    # -- what is due while the last fire is awaited ----------------------------------------------

    def _overlap(self, row: PendingRow, record: bytes, plan: Plan, tenant: Tenant) -> Next | None:
        """Hold an occurrence back until the last fire is acknowledged, or give it up."""
        if plan.overlap == QUEUE_ONE:
            self._waiting.gates.hold(own_gate(row), row, record)
            self._effects.moved = True
            return None
        run = late_run(plan.trigger, row[NOMINAL], self._now_ms + 1, _spread(row))
        end = f"to {format_instant(run.last_ms)}: the last fire is not acknowledged"
        self.give_up(row, tenant, run.number, end, "overlap")
        return self._go_on(row, record, run.following_ms, tenant)

    def _queue(self, row: PendingRow, plan: Plan, tenant: Tenant) -> LateRun | None:
        """The run up to now, where several are due and one fires for all of them."""
        following_ms = plan.after_ms(row[NOMINAL])
        if following_ms is None or following_ms > self._now_ms:
            return None
        spread = _spread(row)
        run = late_run(plan.trigger, row[NOMINAL], self._now_ms + 1, spread)
        late = self._now_ms - spread.due_ms(run.last_ms) > plan.limit_ms
        given_up = late and policy_of(plan.rule, tenant.misfire) == SKIP
        return None if given_up or run.number == 1 else run

    def _go_on(
        self, row: PendingRow, record: bytes, following_ms: int | None, tenant: Tenant
    ) -> Next | None:
        """What follows occurrences that were given up."""
        if following_ms is None:
            self._end(row, ENDED_COMPLETED, row[OCCURRENCE], tenant)
            return None
        return self._next(row, record, following_ms, row[OCCURRENCE])

    def _catch_up(self, row: PendingRow, record: bytes, plan: Plan, tenant: Tenant) -> Next | None:
        """Line a schedule up that fires each of its late occurrences, when there is time for it.

        One with a group stays where the group's order is kept.
        """
        if self.too_old(row, plan, tenant):
            return self.pass_over(row, record, plan, tenant)
        if row[GROUP] and self.rate.left:
            self.rate.take(1)
        elif row[GROUP]:
            self._waiting.hold_again(row, record)
            self._effects.moved = True
            return None
        if row[GROUP] or plan.overlap:
            return self.fire(row, record, plan, tenant)
        self._waiting.hold(row, record, IN_CATCH_UP)
        self._effects.moved = True
        return None

    def has_to_slow(self, row: PendingRow, record: bytes, turn: Turn) -> bool:
        """Whether a group's late occurrence, and all that lies behind it, waits for the rate."""
        if self.rate.left or not row[GROUP] or not row[RULE] or why_unreadable(record):
            return False
        plan, tenant = plan_of(row[RULE]), turn.tenant
        late = plan.recurs and self._now_ms - row[0] > plan.limit_ms
        slow = late and policy_of(plan.rule, tenant.misfire) == FIRE_ALL
        if slow and not self.too_old(row, plan, tenant):
            self._waiting.slowed.add(turn.name)
            return True
        return False

    def too_old(self, row: PendingRow, plan: Plan, tenant: Tenant) -> bool:
        """Whether an occurrence lies further back than its tenant looks."""
        return row[0] < self._now_ms - max(tenant.look_back_ms, plan.limit_ms)

    def pass_over(self, row: PendingRow, record: bytes, plan: Plan, tenant: Tenant) -> Next | None:
        """Give up the occurrences that are too old; what follows them."""
        floor_ms = self._now_ms - max(tenant.look_back_ms, plan.limit_ms)
        run = late_run(plan.trigger, row[NOMINAL], floor_ms, _spread(row))
        self.give_up(row, tenant, run.number, f"to {format_instant(run.last_ms)}")
        return self._go_on(row, record, run.following_ms, tenant)

    def give_up(
        self, row: PendingRow, tenant: Tenant, number: int, end: str, code: str = "late"
    ) -> None:
        """Count occurrences from this one on that will not fire; `end` says how far, in words."""
        self._effects.outcomes[Outcome.MISSED] += number
        if Outcome.MISSED not in tenant.written:
            return
        event = told(row, tenant, Outcome.MISSED, self._now_ms)
        event.code = code
        several = "occurrence" if number == 1 else "occurrences"
        first = format_instant(row[NOMINAL])
        event.reason = f"{number} {several} did not fire, from {first} {end}"
        self._effects.lifecycle.append(event)


def _spread(row: PendingRow) -> Spread:
    return Spread(row[TENANT] + b"/" + row[SCHEDULE_ID], row[JITTER])


def next_row(row: PendingRow, following: Next) -> PendingRow:
    """The row of the occurrence that follows."""
    due_ms, nominal_ms, occurrence, _ = following
    return (due_ms, nominal_ms, *row[2:OCCURRENCE], occurrence, *row[KIND:])
