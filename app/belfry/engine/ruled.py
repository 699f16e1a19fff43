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
from belfry.engine.firing import emit, told
from belfry.engine.gates import own_gate, unreadable_gate
from belfry.engine.plan import QUEUE_ONE, Plan, plan_of
from belfry.engine.queues import Turn
from belfry.engine.waiting import Waiting
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
from belfry.store.layout.pending import Pending, next_record
from belfry.store.layout.records import (
    ENDED_COMPLETED,
    ENDED_FIRED,
    ENDED_MISSED,
    IN_CATCH_UP,
    Marker,
    encode_marker,
)
from belfry.store.readable import why_unreadable
from belfry.store.schedules import ScheduleStore

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

    def leave(self, row: Pending, record: bytes, tenant: Tenant, place_ms: int) -> None:
        """Fire a due row that was taken from its place, or judge it, and keep what follows.

        Its place may be later than its due instant: that of the last of a run, which fires for it.
        """
        if self.holds_unreadable(row, record):
            return
        self._place_ms = place_ms
        if self.zones.under_way:
            found = self.zones.derived(row, record, self._waiting.edge_ms, self._effects)
            if found is not None and found[0][0] > self._waiting.edge_ms:
                self._waiting.keep_again(*found)
                return
            row, record = found or (row, record)
        plan = plan_of(row.extra)
        for _ in range(MOST_AT_ONCE):
            following = self._turn(row, record, plan, tenant)
            if following is None:
                return
            due_ms, _, _, record = following
            if due_ms > self._waiting.edge_ms:
                self._store.move_to_timeline(row.name, record, due_ms, row.seq)
                return
            row = next_row(row, following)
            if due_ms > self._now_ms:
                # The clock went back: it waits for the instant to come again.
                self._waiting.hold_again(row, record)
                return
            if row.group:
                # Those of its group that are due between the two come first.
                self._waiting.hold_again(row, record)
                return
            if self._effects.room <= 0:
                break
        self._waiting.keep_again(row, record)

    def holds_unreadable(self, row: Pending, record: bytes) -> bool:
        """Hold a schedule back that this version cannot fire, and say so; the others go on."""
        why = why_unreadable(record)
        if not why:
            return False
        self._waiting.gates.hold(unreadable_gate(row), row, record)
        name = row.name
        self._effects.unreadable.append((name, why))
        self._effects.moved = True
        return True

    def _turn(self, row: Pending, record: bytes, plan: Plan, tenant: Tenant) -> Next | None:
        """One occurrence, or a run of late ones; what follows, if there is anything to keep."""
        if plan.overlap and self._waiting.gates.is_closed(own_gate(row)):
            return self._overlap(row, record, plan, tenant)
        if row.group and self._place_ms > row.due_ms:
            run_here = run_up_to(plan.trigger, row.nominal_ms, self._place_ms, _spread(row))
            return self._fire_for(run_here, (row, record), plan, tenant)
        if plan.overlap == QUEUE_ONE and (run := self._queue(row, plan, tenant)) is not None:
            return self._fire_for(run, (row, record), plan, tenant)
        if self._now_ms - row.due_ms <= plan.limit_ms:
            return self.fire(row, record, plan, tenant)
        policy = policy_of(plan.rule, tenant.misfire)
        if not plan.recurs:
            return self._late_one_shot(row, record, plan, tenant, policy)
        if policy == FIRE_ALL:
            return self._catch_up(row, record, plan, tenant)
        return self._late_run(row, record, plan, tenant, policy)

    def fire(
        self,
        row: Pending,
        record: bytes,
        plan: Plan,
        tenant: Tenant,
        run: LateRun | None = None,
    ) -> Next | None:
        """Fire one occurrence, or one for a run; what follows, or None where that is nothing."""
        name = row.name
        identity = fire_id(name, row.life, row.version, row.nominal_ms)
        missed, passed_ms = (0, row.nominal_ms) if run is None else (run.number - 1, run.last_ms)
        emit(row, tenant, (identity, self._now_ms), self._effects, missed)
        if plan.awaits is not None:
            fire = identity, self._now_ms
            self._waiting.gates.close(row, fire, plan.awaits)
        if Outcome.FIRED in tenant.written:
            event = told(row, tenant, Outcome.FIRED, self._now_ms)
            event.fire_id = identity.decode()
            self._effects.lifecycle.append(event)
        occurrence = row.occurrence + 1
        following_ms = plan.after_ms(passed_ms) if occurrence < plan.max_fires else None
        if following_ms is None:
            self._end(row, ENDED_COMPLETED if plan.recurs else ENDED_FIRED, occurrence, tenant)
            return None
        return self._next(row, record, following_ms, occurrence)

    def _next(self, row: Pending, record: bytes, following_ms: int, occurrence: int) -> Next:
        name = row.name
        jitter = row.jitter_ms
        due_ms = following_ms + (jitter_ms(name, following_ms, jitter) if jitter else 0)
        kept = next_record(record, due_ms, following_ms, occurrence)
        self._store.rewrite(name, kept)
        return due_ms, following_ms, occurrence, kept

    def _end(self, row: Pending, how: int, occurrence: int, tenant: Tenant) -> None:
        name = row.name
        ended = Marker(how, self._now_ms, row.due_ms, row.life, row.version, occurrence)
        self._store.end(name, encode_marker(ended))
        if how == ENDED_COMPLETED:
            self._effects.outcomes[Outcome.COMPLETED] += 1
            if Outcome.COMPLETED in tenant.written:
                event = told(row, tenant, Outcome.COMPLETED, self._now_ms)
                self._effects.lifecycle.append(event)

    # -- what is late ----------------------------------------------------------------------------

    def _late_one_shot(
        self, row: Pending, record: bytes, plan: Plan, tenant: Tenant, policy: str
    ) -> Next | None:
        if policy != SKIP:
            return self.fire(row, record, plan, tenant)
        self.give_up(row, tenant, 1, f"to {format_instant(row.nominal_ms)}")
        self._end(row, ENDED_MISSED, row.occurrence, tenant)
        return None

    def _late_run(
        self, row: Pending, record: bytes, plan: Plan, tenant: Tenant, policy: str
    ) -> Next | None:
        """Fire the last of a late run for all of it, or none."""
        run = late_run(plan.trigger, row.nominal_ms, self._now_ms - plan.limit_ms, _spread(row))
        if policy == FIRE_ONCE:
            return self._fire_for(run, (row, record), plan, tenant)
        self.give_up(row, tenant, run.number, f"to {format_instant(run.last_ms)}")
        return self._go_on(row, record, run.following_ms, tenant)

    def _fire_for(
        self, run: LateRun, first: tuple[Pending, bytes], plan: Plan, tenant: Tenant
    ) -> Next | None:
        """Fire the last of a run, which begins with this row, for all of it.

        In a group it waits for its place: what is due before the last of the run comes first.
        """
        row, record = first
        last_ms = run.last_ms
        if row.group and row.jitter_ms:
            last_ms = due_last(plan.trigger, row.nominal_ms, run, _spread(row))
        due_ms = _spread(row).due_ms(last_ms)
        if row.group and due_ms > max(row.due_ms, self._place_ms):
            self._waiting.hold_again(row.at(due_ms, row.nominal_ms), record)
            self._effects.moved = True
            return None
        if run.number > 1:
            end = f"on: the one of {format_instant(last_ms)} fires for them"
            self.give_up(row, tenant, run.number - 1, end)
        last = row.at(due_ms, last_ms)
        return self.fire(last, record, plan, tenant, run)

    # -- what is due while the last fire is awaited ----------------------------------------------

    def _overlap(self, row: Pending, record: bytes, plan: Plan, tenant: Tenant) -> Next | None:
        """Hold an occurrence back until the last fire is acknowledged, or give it up."""
        if plan.overlap == QUEUE_ONE:
            self._waiting.gates.hold(own_gate(row), row, record)
            self._effects.moved = True
            return None
        run = late_run(plan.trigger, row.nominal_ms, self._now_ms + 1, _spread(row))
        end = f"to {format_instant(run.last_ms)}: the last fire is not acknowledged"
        self.give_up(row, tenant, run.number, end, "overlap")
        return self._go_on(row, record, run.following_ms, tenant)

    def _queue(self, row: Pending, plan: Plan, tenant: Tenant) -> LateRun | None:
        """The run up to now, where several are due and one fires for all of them."""
        following_ms = plan.after_ms(row.nominal_ms)
        if following_ms is None or following_ms > self._now_ms:
            return None
        spread = _spread(row)
        run = late_run(plan.trigger, row.nominal_ms, self._now_ms + 1, spread)
        late = self._now_ms - spread.due_ms(run.last_ms) > plan.limit_ms
        given_up = late and policy_of(plan.rule, tenant.misfire) == SKIP
        return None if given_up or run.number == 1 else run

    def _go_on(
        self, row: Pending, record: bytes, following_ms: int | None, tenant: Tenant
    ) -> Next | None:
        """What follows occurrences that were given up."""
        if following_ms is None:
            self._end(row, ENDED_COMPLETED, row.occurrence, tenant)
            return None
        return self._next(row, record, following_ms, row.occurrence)

    def _catch_up(self, row: Pending, record: bytes, plan: Plan, tenant: Tenant) -> Next | None:
        """Line a schedule up that fires each of its late occurrences, when there is time for it.

        One with a group stays where the group's order is kept.
        """
        if self.too_old(row, plan, tenant):
            return self.pass_over(row, record, plan, tenant)
        if row.group and self.rate.left:
            self.rate.take(1)
        elif row.group:
            self._waiting.hold_again(row, record)
            self._effects.moved = True
            return None
        if row.group or plan.overlap:
            return self.fire(row, record, plan, tenant)
        self._waiting.hold(row, record, IN_CATCH_UP)
        self._effects.moved = True
        return None

    def has_to_slow(self, row: Pending, record: bytes, turn: Turn) -> bool:
        """Whether a group's late occurrence, and all that lies behind it, waits for the rate."""
        if self.rate.left or not row.group or not row.extra or why_unreadable(record):
            return False
        plan, tenant = plan_of(row.extra), turn.tenant
        late = plan.recurs and self._now_ms - row.due_ms > plan.limit_ms
        slow = late and policy_of(plan.rule, tenant.misfire) == FIRE_ALL
        if slow and not self.too_old(row, plan, tenant):
            self._waiting.slowed.add(turn.name)
            return True
        return False

    def too_old(self, row: Pending, plan: Plan, tenant: Tenant) -> bool:
        """Whether an occurrence lies further back than its tenant looks."""
        return row.due_ms < self._now_ms - max(tenant.look_back_ms, plan.limit_ms)

    def pass_over(self, row: Pending, record: bytes, plan: Plan, tenant: Tenant) -> Next | None:
        """Give up the occurrences that are too old; what follows them."""
        floor_ms = self._now_ms - max(tenant.look_back_ms, plan.limit_ms)
        run = late_run(plan.trigger, row.nominal_ms, floor_ms, _spread(row))
        self.give_up(row, tenant, run.number, f"to {format_instant(run.last_ms)}")
        return self._go_on(row, record, run.following_ms, tenant)

    def give_up(
        self, row: Pending, tenant: Tenant, number: int, end: str, code: str = "late"
    ) -> None:
        """Count occurrences from this one on that will not fire; `end` says how far, in words."""
        self._effects.outcomes[Outcome.MISSED] += number
        if Outcome.MISSED not in tenant.written:
            return
        event = told(row, tenant, Outcome.MISSED, self._now_ms)
        event.code = code
        several = "occurrence" if number == 1 else "occurrences"
        first = format_instant(row.nominal_ms)
        event.reason = f"{number} {several} did not fire, from {first} {end}"
        self._effects.lifecycle.append(event)


def _spread(row: Pending) -> Spread:
    return Spread(row.name, row.jitter_ms)


def next_row(row: Pending, following: Next) -> Pending:
    """The row of the occurrence that follows."""
    due_ms, nominal_ms, occurrence, _ = following
    return row.following(due_ms, nominal_ms, occurrence)
