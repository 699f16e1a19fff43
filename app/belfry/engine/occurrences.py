"""Occurrences: one due row of a schedule fires, is judged late, or is held; and what follows it.

    due row ─► understood? ─► in time?  ── fires ──────────────► next occurrence, in the same step
                 │ no           │ late                              │    └ none left: a marker
                 └ held         ├ FIRE_ONCE   the last late one ────┤
                                ├ SKIP        none fires ───────────┤
                                └ FIRE_ALL    joins the catch-up    │
                                              queue of its tenant   └► row of the same name

A fire and the next occurrence are one change of one row, so neither can be without the other.  An
occurrence that a policy gives up is counted as MISSED.  Occurrences are numbered by fires: one that
is given up leaves no gap.

A row that is in time takes `fire_once` where it has no rule, and else `leave`, `_occur` and `fire`;
the rest is for rows that are late, overlap, or have a group.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.ack_locks import own_lock, unreadable_lock
from belfry.engine.changes import Changes
from belfry.engine.compiled_rule import (
    CANCEL_OTHER,
    FOR_LATEST,
    QUEUE_ALL,
    TERMINATE_OTHER,
    CompiledRule,
    compiled,
)
from belfry.engine.emit import Emit, Route, tell_fired, tell_missed, told
from belfry.engine.late_runs import queued_run, spread_of, too_old
from belfry.engine.options import EngineOptions
from belfry.engine.overlaps import ask_other, end_other
from belfry.engine.queues import Turn
from belfry.engine.step import Step, UndoLog
from belfry.engine.waiting import Waiting
from belfry.firing.rates import CatchUpRate
from belfry.schedules.identity import fire_id
from belfry.schedules.instants import format_instant
from belfry.schedules.jitter import jitter_ms
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
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.kept_fires import packed_fire
from belfry.store.layout.locations import IN_CATCH_UP
from belfry.store.layout.pending import Pending, PendingRow, as_pending
from belfry.store.layout.pending_bytes import has_rule, next_record
from belfry.store.layout.records import (
    ENDED_COMPLETED,
    ENDED_FIRED,
    ENDED_MISSED,
    Marker,
    encode_fired_marker,
    encode_marker,
)
from belfry.store.readable import UNREADABLE, why_unreadable
from belfry.store.schedules import ScheduleStore

# Occurrences of one schedule that leave in one step: an interval may be shorter than a step.
MOST_AT_ONCE: Final = 100

# A row, its record, and the due instant of the place at which it lay.
Due = tuple[Pending, bytes, int]
# The next occurrence, where the same step may fire it: due instant, nominal instant, number of the
# next fire, record.
Next = tuple[int, int, int, bytes]


class Occurrences:
    """Fires rows of one partition that were taken from their place.

    `rate` says how many late occurrences may still fire under FIRE_ALL.
    """

    def __init__(
        self,
        store: ScheduleStore,
        waiting: Waiting,
        changes: Changes,
        undo: UndoLog,
        emitter: Emit,
        options: EngineOptions,
    ) -> None:
        self._emit, self._keeps_fires = emitter, options.last_fires
        self._store = store
        self._waiting = waiting
        self._changes = changes
        self._undo = undo
        # By the bytes that lie in records, with what `compiled` cuts off; of this step alone.
        self._rules: dict[bytes, CompiledRule] = {}
        self.rate = CatchUpRate()

    def begin(self, step: Step) -> None:
        """A step fires: find out anew which tenants are slowed by the rate."""
        self._rules.clear()
        self._waiting.begin_slowing()
        self.set_rate(self.rate.filled(step.now_ms))

    def set_rate(self, rate: CatchUpRate) -> None:
        """From now on this is left of the rate."""
        self._undo.attribute(self, "rate")
        self.rate = rate

    def fire_once(self, row: PendingRow, route: Route, step: Step) -> None:
        """Fire a one-shot without a rule: it is over then."""
        (due_ms, nominal_ms, _, _, life, version, occurrence, _, _, _,
         tenant, schedule_id, _, _, _, _, _, _) = row  # fmt: skip
        name = b"".join((tenant, b"/", schedule_id))
        identity = fire_id(name, life, version, nominal_ms)
        fired = self._emit  # As a local: a call of an attribute costs five times as much.
        fired(row, route, identity, step)
        marker = encode_fired_marker(step.now_ms, due_ms, life, version, occurrence + 1)
        self._store.end(name, marker)
        if route.told:
            tell_fired(as_pending(row), route, identity, step)

    def leave(self, row: Pending, record: bytes, place_ms: int, route: Route, step: Step) -> None:
        """Fire a row that has a rule, or judge it, and keep what follows.

        Its place may be later than its due instant: that of the last of a run, which fires for it.
        """
        followed = self.followed(row, record, step, zones=self._changes.zones.under_way)
        if followed is None:
            return
        row, record, rule = followed
        for _ in range(MOST_AT_ONCE):
            in_time = step.now_ms - row.due_ms <= rule.limit_ms and place_ms == row.due_ms
            if in_time and rule.simple:
                following = self.fire(row, record, rule, route, step)
            else:
                following = self._occur((row, record, place_ms), rule, route, step)
            if following is None:
                return
            due_ms, nominal_ms, occurrence, record = following
            row = row.following(due_ms, nominal_ms, occurrence)
            if due_ms > step.now_ms or row.group:
                # The clock went back, and it waits for the instant to come again; or those of its
                # group that are due between the two come first.
                self._waiting.hold_again(row, record)
                return
            if step.effects.room <= 0:
                break
        step.set_aside.append((row, record))

    def _rule_of(self, row: Pending, record: bytes) -> CompiledRule | None:
        """The compiled rule; None where this version cannot fire the schedule."""
        if not row.extra or not has_rule(record):
            return None
        rule = self._rules.get(row.extra)
        if rule is not None:
            return rule
        try:
            rule = self._rules[row.extra] = compiled(row.extra)
        except UNREADABLE:
            return None
        return rule

    def followed(
        self, row: Pending, record: bytes, step: Step, *, zones: bool = False
    ) -> tuple[Pending, bytes, CompiledRule] | None:
        """A row that was taken from its place, by the days (and the zones) of now; and its rule.

        None where it does not fire now, as what this version cannot fire is held back.
        """
        rule = self._rule_of(row, record)
        if rule is None:
            self._hold_unreadable(row, record, step)
            return None
        if zones or rule.calendar is not None:
            follow = self._changes.followed if zones else self._changes.by_calendar
            found = follow(row, record, rule, step)
            if found is None:
                return None
            if found[0].extra != row.extra:
                rule = compiled(found[0].extra)
            row, record = found
        return row, record, rule

    def _hold_unreadable(self, row: Pending, record: bytes, step: Step) -> None:
        why = why_unreadable(record)
        assert why, f"{row.name!r} can be read, and has no rule"
        self._waiting.locks.hold(unreadable_lock(row), row, record)
        step.effects.unreadable.append((row.name, why))
        step.effects.moved = True

    def _occur(self, due: Due, rule: CompiledRule, route: Route, step: Step) -> Next | None:
        """One occurrence, or a run of late ones; what follows, if there is anything to keep."""
        row, record, place_ms = due
        overlap = rule.overlap
        if overlap and overlap != TERMINATE_OTHER and self._waiting.locks.is_locked(own_lock(row)):
            return self._overlap(due, rule, route, step)
        if overlap == QUEUE_ALL:
            passes = self.pass_over if too_old(row, rule, route.tenant, step) else self.fire
            return passes(row, record, rule, route, step)
        if row.group and place_ms > row.due_ms:
            run_here = run_up_to(rule.trigger, row.nominal_ms, place_ms, spread_of(row))
            return self._fire_for(run_here, due, rule, route, step)
        if overlap in FOR_LATEST and (run := queued_run(row, rule, route.tenant, step)) is not None:
            return self._fire_for(run, due, rule, route, step)
        if step.now_ms - row.due_ms <= rule.limit_ms:
            return self.fire(row, record, rule, route, step)
        policy = policy_of(rule.rule, route.tenant.misfire)
        if not rule.recurs:
            return self._late_one_shot(due, rule, route, step, policy)
        if policy == FIRE_ALL:
            return self._catch_up(due, rule, route, step)
        return self._late_run(due, rule, route, step, policy)

    def fire(
        self,
        row: Pending,
        record: bytes,
        rule: CompiledRule,
        route: Route,
        step: Step,
        run: LateRun | None = None,
    ) -> Next | None:
        """Fire one occurrence, or one for a run; what follows, where that is for this step."""
        (due_ms, nominal_ms, _, _, life, version, occurrence, _, _, _,
         tenant, schedule_id, _, _, _, _, _, _) = row  # fmt: skip
        name = b"".join((tenant, b"/", schedule_id))
        identity = fire_id(name, life, version, nominal_ms)
        missed, passed_ms = (0, nominal_ms) if run is None else (run.number - 1, run.last_ms)
        fired = self._emit
        fired(row, route, identity, step, missed)
        if rule.awaits is not None:
            if rule.overlap == TERMINATE_OTHER:
                end_other(row, route.tenant, self._waiting, step)
            self._waiting.locks.close(row, (identity, step.now_ms), rule.awaits)
        if route.told:
            tell_fired(row, route, identity, step)
        occurrence += 1
        following_ms = rule.after_ms(passed_ms) if occurrence < rule.max_fires else None
        if following_ms is None:
            how = ENDED_COMPLETED if rule.recurs else ENDED_FIRED
            if run is not None:
                row = row.at(row.due_ms, passed_ms)
            self._end(row, how, occurrence, route, step)
            return None
        fired_now = None
        if self._keeps_fires:
            fired_now = packed_fire(nominal_ms, version, step.now_ms - due_ms, missed)
        return self._next(name, row, record, (following_ms, occurrence), step, fired_now)

    def _next(
        self,
        name: bytes,
        row: Pending,
        record: bytes,
        following: tuple[int, int],
        step: Step,
        fire: bytes | None = b"",
    ) -> Next | None:
        """Keep what follows a fire, if it was one: in the timeline, or this step may empty it."""
        following_ms, occurrence = following
        jitter, due_ms = row.jitter_ms, following_ms
        if jitter:
            due_ms += jitter_ms(name, following_ms, jitter)
        kept = next_record(record, due_ms, following_ms, occurrence, fire)
        if due_ms > step.horizon_ms:
            self._store.keep_in_timeline(name, kept, due_ms, row.seq)
            return None
        self._store.rewrite(name, kept)
        return due_ms, following_ms, occurrence, kept

    def _end(self, row: Pending, how: int, occurrence: int, route: Route, step: Step) -> None:
        ended = Marker(how, step.now_ms, row.due_ms, row.life, row.version, occurrence)
        self._store.end(row.name, encode_marker(ended))
        if how == ENDED_COMPLETED:
            step.effects.outcomes[Outcome.COMPLETED] += 1
            if Outcome.COMPLETED in route.tenant.written:
                event = told(row, route.tenant, Outcome.COMPLETED, step.now_ms)
                event.reason = compiled(row.extra).why_over(row.nominal_ms, occurrence)
                step.effects.lifecycle.append(event)

    # -- what is late ----------------------------------------------------------------------------

    def _late_one_shot(
        self, due: Due, rule: CompiledRule, route: Route, step: Step, policy: str
    ) -> Next | None:
        row, record, _ = due
        if policy != SKIP:
            return self.fire(row, record, rule, route, step)
        tell_missed(row, route, step, 1, f"to {format_instant(row.nominal_ms)}")
        self._end(row, ENDED_MISSED, row.occurrence, route, step)
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
        return self._go_on(row, record, run, route, step)

    def _fire_for(
        self, run: LateRun, due: Due, rule: CompiledRule, route: Route, step: Step
    ) -> Next | None:
        """Fire the last of a run, which begins with this row, for all of it.

        In a group it waits for its place: what is due before the last of the run comes first.
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
        return self.fire(row.at(due_ms, last_ms), record, rule, route, step, run)

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
        return self._go_on(row, record, run, route, step)

    def _go_on(
        self, row: Pending, record: bytes, run: LateRun, route: Route, step: Step
    ) -> Next | None:
        """What follows occurrences that were given up."""
        if run.following_ms is None:
            last = row.at(row.due_ms, run.last_ms)
            self._end(last, ENDED_COMPLETED, row.occurrence, route, step)
            return None
        return self._next(row.name, row, record, (run.following_ms, row.occurrence), step)

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
            return self.fire(row, record, rule, route, step)
        self._waiting.hold(row, record, IN_CATCH_UP)
        step.effects.moved = True
        return None

    def has_to_slow(self, row: Pending, record: bytes, turn: Turn, step: Step) -> bool:
        """Whether a group's late occurrence, and all that lies behind it, waits for the rate."""
        if self.rate.left or not row.group:
            return False
        rule, tenant = self._rule_of(row, record), turn.tenant
        if rule is None:
            return False
        late = rule.recurs and step.now_ms - row.due_ms > rule.limit_ms
        slow = late and policy_of(rule.rule, tenant.misfire) == FIRE_ALL
        if slow and not too_old(row, rule, tenant, step):
            self._waiting.slow(turn.name)
            return True
        return False

    def pass_over(
        self, row: Pending, record: bytes, rule: CompiledRule, route: Route, step: Step
    ) -> Next | None:
        """Give up the occurrences that are too old; what follows them."""
        floor_ms = step.now_ms - max(route.tenant.look_back_ms, rule.limit_ms)
        run = late_run(rule.trigger, row.nominal_ms, floor_ms, spread_of(row))
        tell_missed(row, route, step, run.number, f"to {format_instant(run.last_ms)}")
        return self._go_on(row, record, run, route, step)
