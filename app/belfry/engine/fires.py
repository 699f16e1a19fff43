"""One fire: a fired record, and its successor: the next occurrence, or the end.

    one-shot             fired record │ marker: it has fired
    recurs, goes on      fired record │ the record of the next occurrence, under the same name
    recurs, was the last fired record │ marker: it is completed
    given up                          │ the record of what follows, or a marker

A fire and its successor are one change of one row, so neither can be without the other.
Occurrences are numbered by fires: one that is given up leaves no gap.

The successor goes into the timeline if it is due behind the horizon of the step.  Else it is given
back, for the step may fire it as well:

    horizon 12:00:00.900     fires 12:00:00     next 12:01:00        lies in the timeline
                             fires 12:00:00     next 12:00:00.500    given back: due by now
"""

from __future__ import annotations

from belfry.engine.awaited_fires import end_other
from belfry.engine.compiled_rule import TERMINATE_OTHER, CompiledRule, compiled
from belfry.engine.emit import Emit, Route, tell_fired, told
from belfry.engine.step import Step
from belfry.engine.waiting import Waiting
from belfry.schedules.identity import fire_id
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.misfire import LateRun
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.kept_fires import IN_TIME_MS, packed_fire
from belfry.store.layout.pending import Pending, PendingRow, as_pending
from belfry.store.layout.pending_bytes import next_record, tallied
from belfry.store.layout.records import (
    ENDED_COMPLETED,
    ENDED_FIRED,
    Marker,
    encode_fired_marker,
    encode_marker,
)
from belfry.store.schedules import ScheduleStore

# The next occurrence, where the same step may fire it: due instant, nominal instant, number of the
# next fire, record.
Next = tuple[int, int, int, bytes]


class Fires:
    """Fires occurrences of one partition; their rows were taken from their place.

    With `keeps_fires` a schedule that recurs keeps its last fires (`layout/kept_fires.py`).
    """

    def __init__(
        self, store: ScheduleStore, waiting: Waiting, emitter: Emit, *, keeps_fires: bool
    ) -> None:
        self._store = store
        self._waiting = waiting
        self._emit = emitter
        self._keeps_fires = keeps_fires

    def fire_once(self, row: PendingRow, route: Route, step: Step) -> None:
        """Fire a one-shot without a rule: it is over then."""
        (due_ms, nominal_ms, _, _, life, version, occurrence, _, _, _,
         tenant, schedule_id, _, _, _, _, _, _) = row  # fmt: skip
        name = b"".join((tenant, b"/", schedule_id))
        identity = fire_id(name, life, version, nominal_ms)
        fired = self._emit  # As a local: a call of an attribute costs five times as much.
        fired(row, route, identity, step)
        kept_ms, over = route.tenant.remember_ms, b""
        if kept_ms:
            over = encode_fired_marker(step.now_ms, due_ms, life, version, occurrence + 1)
        self._store.end(name, over, kept_ms)
        if route.told:
            tell_fired(as_pending(row), route, identity, step)

    def fire(
        self,
        row: Pending,
        record: bytes,
        rule: CompiledRule,
        route: Route,
        step: Step,
        run: LateRun | None = None,
    ) -> Next | None:
        """Fire one occurrence, or one for a run; its successor, if that is for this step."""
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
            self.end(row, how, occurrence, route, step)
            return None
        fired_now = None
        if self._keeps_fires:
            late_ms = step.now_ms - due_ms
            fired_now = packed_fire(nominal_ms, version, late_ms, missed)
            if late_ms > IN_TIME_MS or missed:
                record = tallied(record, late_ms, missed)
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
        """Keep the successor of a fire, if it was one: in the timeline, or for this step."""
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

    def end(self, row: Pending, how: int, occurrence: int, route: Route, step: Step) -> None:
        """Nothing follows: a marker that says how (`ENDED_…`) stands for the schedule.

        A tenant that remembers nothing has none, and its changelog a tombstone at once.
        """
        ended = Marker(how, step.now_ms, row.due_ms, row.life, row.version, occurrence)
        self._store.end(row.name, encode_marker(ended), route.tenant.remember_ms)
        if how == ENDED_COMPLETED:
            step.effects.outcomes[Outcome.COMPLETED] += 1
            if Outcome.COMPLETED in route.tenant.written:
                event = told(row, route.tenant, Outcome.COMPLETED, step.now_ms)
                event.reason = compiled(row.extra).why_over(row.nominal_ms, occurrence)
                step.effects.lifecycle.append(event)

    def go_on(
        self, row: Pending, record: bytes, run: LateRun, route: Route, step: Step
    ) -> Next | None:
        """The successor of occurrences that were given up."""
        if run.following_ms is None:
            last = row.at(row.due_ms, run.last_ms)
            self.end(last, ENDED_COMPLETED, row.occurrence, route, step)
            return None
        if self._keeps_fires:
            record = tallied(record, 0, run.number)
        return self._next(row.name, row, record, (run.following_ms, row.occurrence), step)
