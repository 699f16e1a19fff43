"""Judgement: the outcome of a due occurrence that does not simply fire.

    in time, and the fire before it is still awaited     by its overlap: held, given up, or fires
    late by more than its limit     FIRE_ONCE            the last late one fires for all of them
                                    SKIP                 none fires
                                    FIRE_ALL             joins the catch-up queue of its tenant
    further back than its tenant looks                   given up, whatever the policy says
    of a group, for a run                                waits for the place of the last of the run

An occurrence that is given up is counted as MISSED, with all others of its run at once.

A schedule of each minute with FIRE_ONCE, no worker from 12:00 to 12:05, and a limit of a minute:

    12:00  12:01  12:02  12:03  12:04  │  12:05:10 the worker is back
    ─ MISSED, one record ─────►  fires │  12:04 is late by 70 s and the last such: `missed` 4
                                       │  12:05 is late by 10 s: it fires by itself
"""

from __future__ import annotations

from belfry.engine.awaited_fires import ask_other
from belfry.engine.compiled_rule import (
    CANCEL_OTHER,
    FOR_LATEST,
    QUEUE_ALL,
    TERMINATE_OTHER,
    CompiledRule,
)
from belfry.engine.emit import Route, tell_missed
from belfry.engine.fires import Fires, Next
from belfry.engine.late_runs import queued_run, spread_of, too_old
from belfry.engine.locks import own_lock
from belfry.engine.queues import Turn
from belfry.engine.step import Step
from belfry.engine.undo import UndoLog
from belfry.engine.waiting import Waiting
from belfry.firing.rates import CatchUpRate
from belfry.schedules.instants import format_instant
from belfry.schedules.misfire import (
    FIRE_ALL,
    FIRE_ONCE,
    SKIP,
    LateRun,
    due_last,
    late_run,
    policy_of,
    run_up_to,
)
from belfry.store.layout.locations import IN_CATCH_UP
from belfry.store.layout.pending import Pending
from belfry.store.layout.records import ENDED_MISSED

# A row, its record, and the due instant of the place at which it lay.
Due = tuple[Pending, bytes, int]


class Judgement:
    """Judges occurrences of one partition.

    `rate` says how many late occurrences may still fire under FIRE_ALL.
    """

    def __init__(self, waiting: Waiting, fires: Fires, undo: UndoLog) -> None:
        self._waiting = waiting
        self._fires = fires
        self._undo = undo
        self.rate = CatchUpRate()

    def begin(self, step: Step) -> None:
        """A step fires: find out anew which tenants are slowed by the rate."""
        self._waiting.begin_slowing()
        self.set_rate(self.rate.filled(step.now_ms))

    def set_rate(self, rate: CatchUpRate) -> None:
        """From now on this is left of the rate."""
        self._undo.attribute(self, "rate")
        self.rate = rate

    def occur(self, due: Due, rule: CompiledRule, route: Route, step: Step) -> Next | None:
        """One occurrence, or a run of late ones; the successor, if there is one to keep."""
        row, record, place_ms = due
        overlap = rule.overlap
        if overlap and overlap != TERMINATE_OTHER and self._waiting.locks.is_locked(own_lock(row)):
            return self._overlap(due, rule, route, step)
        if overlap == QUEUE_ALL:
            passes = self.pass_over if too_old(row, rule, route.tenant, step) else self._fires.fire
            return passes(row, record, rule, route, step)
        if row.group and place_ms > row.due_ms:
            run_here = run_up_to(rule.trigger, row.nominal_ms, place_ms, spread_of(row))
            return self._fire_for(run_here, due, rule, route, step)
        if overlap in FOR_LATEST and (run := queued_run(row, rule, route.tenant, step)) is not None:
            return self._fire_for(run, due, rule, route, step)
        if step.now_ms - row.due_ms <= rule.limit_ms:
            return self._fires.fire(row, record, rule, route, step)
        policy = policy_of(rule.rule, route.tenant.misfire)
        if not rule.recurs:
            return self._late_one_shot(due, rule, route, step, policy)
        if policy == FIRE_ALL:
            return self._catch_up(due, rule, route, step)
        return self._late_run(due, rule, route, step, policy)

    # -- late occurrences
    # ----------------------------------------------------------------------------

    def _late_one_shot(
        self, due: Due, rule: CompiledRule, route: Route, step: Step, policy: str
    ) -> Next | None:
        row, record, _ = due
        if policy != SKIP:
            return self._fires.fire(row, record, rule, route, step)
        tell_missed(row, route, step, 1, f"to {format_instant(row.nominal_ms)}")
        self._fires.end(row, ENDED_MISSED, row.occurrence, route, step)
        return None

    def _late_run(
        self, due: Due, rule: CompiledRule, route: Route, step: Step, policy: str
    ) -> Next | None:
        """Fire the last of a late run for all of it, or none."""
        row, record, _ = due
        before_ms = step.now_ms - rule.limit_ms
        run = late_run(rule.trigger, row.nominal_ms, before_ms, spread_of(row))
        if policy == FIRE_ONCE:
            return self._fire_for(run, due, rule, route, step)
        tell_missed(row, route, step, run.number, f"to {format_instant(run.last_ms)}")
        return self._fires.go_on(row, record, run, route, step)

    def _fire_for(
        self, run: LateRun, due: Due, rule: CompiledRule, route: Route, step: Step
    ) -> Next | None:
        """Fire the last of a run, which begins with this row, for all of it.

        In a group it waits for its place: rows due before the last of the run come first.
        """
        row, record, place_ms = due
        last_ms = run.last_ms
        if row.group and row.jitter_ms:
            last_ms = due_last(rule.trigger, row.nominal_ms, run, spread_of(row))
        due_ms = spread_of(row).due_ms(last_ms)
        if row.group and due_ms > max(row.due_ms, place_ms):
            self._waiting.hold_again(row.at(due_ms, row.nominal_ms), record)
            step.effects.moved = True
            return None
        if run.number > 1:
            end = f"on: the one of {format_instant(last_ms)} fires for them"
            tell_missed(row, route, step, run.number - 1, end)
        return self._fires.fire(row.at(due_ms, last_ms), record, rule, route, step, run)

    # -- what is due while the last fire is awaited ----------------------------------------------

    def _overlap(self, due: Due, rule: CompiledRule, route: Route, step: Step) -> Next | None:
        """Hold an occurrence back until the last fire is acknowledged, or give it up."""
        row, record, _ = due
        if rule.overlap != SKIP:
            if rule.overlap == CANCEL_OTHER:
                ask_other(row, route.tenant, self._waiting, step)
            self._waiting.locks.hold(own_lock(row), row, record)
            step.effects.moved = True
            return None
        run = late_run(rule.trigger, row.nominal_ms, step.now_ms + 1, spread_of(row))
        end = f"to {format_instant(run.last_ms)}: the last fire is not acknowledged"
        tell_missed(row, route, step, run.number, end, "overlap")
        return self._fires.go_on(row, record, run, route, step)

    # -- what is late and fires each -------------------------------------------------------------

    def _catch_up(self, due: Due, rule: CompiledRule, route: Route, step: Step) -> Next | None:
        """Line a schedule up that fires each of its late occurrences, when there is time for it.

        One with a group stays where the group's order is kept.
        """
        row, record, _ = due
        if too_old(row, rule, route.tenant, step):
            return self.pass_over(row, record, rule, route, step)
        if row.group and self.rate.left:
            self.set_rate(self.rate.less(1))
        elif row.group:
            self._waiting.hold_again(row, record)
            step.effects.moved = True
            return None
        if row.group or (rule.overlap and rule.overlap != TERMINATE_OTHER):
            return self._fires.fire(row, record, rule, route, step)
        self._waiting.hold(row, record, IN_CATCH_UP)
        step.effects.moved = True
        return None

    def has_to_slow(self, row: Pending, rule: CompiledRule, turn: Turn, step: Step) -> bool:
        """Whether a group's late occurrence, and all that lies behind it, waits for the rate."""
        tenant = turn.tenant
        late = rule.recurs and step.now_ms - row.due_ms > rule.limit_ms
        slow = late and policy_of(rule.rule, tenant.misfire) == FIRE_ALL
        if slow and not too_old(row, rule, tenant, step):
            self._waiting.slow(turn.name)
            return True
        return False

    def pass_over(
        self, row: Pending, record: bytes, rule: CompiledRule, route: Route, step: Step
    ) -> Next | None:
        """Give up the occurrences that are too old; their successor."""
        floor_ms = step.now_ms - max(route.tenant.look_back_ms, rule.limit_ms)
        run = late_run(rule.trigger, row.nominal_ms, floor_ms, spread_of(row))
        tell_missed(row, route, step, run.number, f"to {format_instant(run.last_ms)}")
        return self._fires.go_on(row, record, run, route, step)
