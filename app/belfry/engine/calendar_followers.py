"""Schedules that follow a change of their calendar: walked through, looked at, moved, and told of.

    place          timeline   paused   backlog   catch-up queue   behind a lock
    days differ?   ── the row by the new days ──► timeline, backlog, or paused as it was

A row that waits in the catch-up queue, or behind a lock, goes back to the backlog: from there it
comes to its queue or its lock once more, where it still has to.

All names of the calendar's tenant are walked through, some with each step, from a cursor on that is
kept in the row of the calendar.  Tenants have their turns one after the other, so none waits for
the end of another's walk.

The version of a schedule stays: its definition names the calendar, and that has not changed.  The
outcome is UPDATED with the code `calendar`, and only where the instant is another one; COMPLETED
where the new days leave nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from belfry.engine.calendars import CODE, Calendars
from belfry.engine.culprits import CALENDAR, FAULTS, Culprits
from belfry.engine.passed import nominal_after
from belfry.engine.step import Step
from belfry.engine.undo import UndoLog
from belfry.engine.unforeseen import pass_over
from belfry.engine.waiting import Waiting
from belfry.schedules.identity import generation_of
from belfry.schedules.instants import format_instant
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rule import decode_rule, encode_rule, has_calendar
from belfry.schedules.triggers import trigger_of
from belfry.store.layout import keys
from belfry.store.layout.calendars import CalendarRow, names_of_calendar
from belfry.store.layout.locations import IN_PAUSED, Location, is_location
from belfry.store.layout.pending import Pending, decode_pending, encode_pending
from belfry.store.layout.pending_bytes import PAUSED, has_rule, paused, with_fires_of
from belfry.store.layout.records import ENDED_COMPLETED, MARKER_MS, Marker, encode_marker
from belfry.store.readable import why_unreadable
from belfry.store.schedules import ScheduleStore
from belfry.wire.lifecycle import LifecycleEvent

# About the size of an outcome.
OUTCOME_BYTES: Final = 300

Found = tuple[Pending, bytes]


class CalendarFollowers:
    """The schedules of one partition that have a calendar."""

    def __init__(
        self,
        store: ScheduleStore,
        waiting: Waiting,
        calendars: Calendars,
        undo: UndoLog,
        culprits: Culprits,
    ) -> None:
        self._culprits = culprits
        self._store = store
        self._waiting = waiting
        self._calendars = calendars
        self._undo = undo
        # Whose turn was the last one.
        self._last = b""

    @property
    def under_way(self) -> bool:
        """Whether schedules may still have the days of before a change."""
        return self._calendars.under_way

    # -- one schedule ----------------------------------------------------------------------------

    def settled(self, name: bytes, row: bytes, step: Step) -> bytes | None:
        """The row under the name of a schedule, once it has followed all changes."""
        if not is_location(row):
            return row
        self.look(name, row, step)
        return self._store.named(name)

    def derived(self, row: Pending, record: bytes, step: Step) -> Found | None:
        """The row by the days of its calendar, rewritten; None where the schedule is over.

        The schedule has to be stale, and taken from its place.
        """
        rule = decode_rule(row.extra)
        assert rule.calendar is not None, "a stale schedule has a calendar"
        known = self._calendars.of(row.tenant, rule.calendar)
        assert known is not None, "a stale schedule has a calendar that is known"
        extra = encode_rule(replace(rule, packed_days=known.days))
        nominal_ms = nominal_after(trigger_of(row.extra), trigger_of(extra), row, known)
        if nominal_ms is None:
            self._end(row, rule.calendar, step)
            return None
        name = row.name
        due_ms = nominal_ms + (jitter_ms(name, nominal_ms, row.jitter_ms) if row.jitter_ms else 0)
        moved = row._replace(due_ms=due_ms, nominal_ms=nominal_ms, extra=extra)
        kept = with_fires_of(record, encode_pending(moved, PAUSED if paused(record) else 0))
        step.effects.room -= len(kept)
        self._store.rewrite(name, kept)
        if nominal_ms != row.nominal_ms:
            step.effects.rederived += 1
            was = f"it was due at {format_instant(row.nominal_ms)}"
            self._tell(moved, Outcome.UPDATED, f"calendar {rule.calendar} was changed; {was}", step)
        return moved, kept

    def _end(self, row: Pending, calendar: str, step: Step) -> None:
        """Nothing follows by the new days: the schedule is over."""
        ended = Marker(
            ENDED_COMPLETED, step.now_ms, row.due_ms, row.life, row.version, row.occurrence
        )
        self._store.end(row.name, encode_marker(ended), MARKER_MS)
        step.effects.outcomes[Outcome.COMPLETED] += 1
        said = f"calendar {calendar} was changed, and leaves out all that follows"
        self._tell(row, Outcome.COMPLETED, said, step)

    def _tell(self, row: Pending, outcome: Outcome, reason: str, step: Step) -> None:
        """A schedule that a calendar moves is told of, whatever its tenant's level is."""
        step.effects.room -= OUTCOME_BYTES
        step.effects.lifecycle.append(
            LifecycleEvent(
                tenant=row.tenant.decode(),
                schedule_id=row.schedule_id.decode(),
                outcome=outcome,
                version=row.version,
                at=step.now_ms,
                due_at=row.due_ms,
                code=CODE,
                reason=reason,
                generation=generation_of(row.life),
            )
        )

    def look(self, name: bytes, place: bytes, step: Step) -> bool:
        """Let a schedule that waits follow its calendar; whether it had to."""
        record = self._store.pending_at(name, place)
        if not has_rule(record):
            return False
        row = decode_pending(record)
        if not has_calendar(row.extra) or why_unreadable(record):
            return False
        rule = trigger_of(row.extra).rule
        known = None if rule.calendar is None else self._calendars.of(row.tenant, rule.calendar)
        if known is None or known.days == rule.packed_days:
            return False
        self._waiting.left(row.tenant, place)
        self._store.remove(name, place)
        found = self.derived(row, record, step)
        if found is None:
            return True
        moved, kept = found
        if paused(kept):
            self._store.move(name, kept, Location(IN_PAUSED, *moved.sort_key))
        else:
            self._waiting.put(moved, kept, step)
        return True

    # -- one schedule after the other ------------------------------------------------------------

    def advance(self, step: Step, names: int, changes: int) -> tuple[int, int]:
        """Look at the next schedules, so many names and changes; the rest of both budgets."""
        going = self._calendars.going()
        for key in self._turns(going):
            if names <= 0 or changes <= 0 or step.effects.room <= 0:
                break
            self._undo.attribute(self, "_last")
            self._last = key
            names, changes = self._walk(key, going[key], step, (names, changes))
        return names, changes

    def _turns(self, going: Iterable[bytes]) -> list[bytes]:
        """Which are walked for: those behind the last turn first, by their tenants."""
        last_tenant = names_of_calendar(self._last)[0]
        turns = []
        for key in going:
            tenant, _ = names_of_calendar(key)
            turns.append((tenant <= last_tenant, tenant, key <= self._last, key))
        return [key for *_, key in sorted(turns)]

    def _walk(
        self, key: bytes, row: CalendarRow, step: Step, left: tuple[int, int]
    ) -> tuple[int, int]:
        """Walk on through the names of a tenant for one calendar."""
        names, changes = left
        start = names_of_calendar(key)[0] + b"/"
        first = row.cursor.encode() + b"\0" if row.cursor else start
        cursor, moved = row.cursor.encode(), row.moved
        for name, place in self._store.between(first, keys.following(start)):
            ends = names <= 0 or changes <= 0 or step.effects.room <= 0
            if ends or self._culprits.enough:
                come = row._replace(cursor=cursor.decode(), moved=moved)
                self._calendars.note(key, come, step)
                return names, changes
            now = self._store.named(name)
            if is_location(place) and now is not None and is_location(now):
                looked = self._look_at(name, now, step)
                moved, changes = moved + looked, changes - looked
            names -= 1
            cursor = name
        self._calendars.followed(key, row._replace(moved=moved), step)
        return names, changes

    def _look_at(self, name: bytes, place: bytes, step: Step) -> bool:
        """The same as `look`; a schedule that the step has failed amid before keeps its days."""
        if self._culprits.some and pass_over(self._culprits, (CALENDAR, name), step):
            return False
        try:
            return self.look(name, place, step)
        except FAULTS as error:
            self._culprits.blame(error, (CALENDAR, name))
            raise
