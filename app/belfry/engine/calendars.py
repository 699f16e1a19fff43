"""Calendars of one partition: set by a request, heeded by schedules, and changed in order.

    request CALENDAR ─► row of the calendar ─► step ─ some names on, some instants moved ─► … ─► all
                             │                  └── cursor, rows and effects: one transaction
    UPSERT with `calendar` ──┘ its days are laid into the rule of the schedule

A calendar is set by an ordinary request, so it has its place among others, and each home of its
tenant keeps it in its own state.  A schedule has a copy of the days in its rule.  So a fire, a look
and a replay need the record alone, and compute the same on every worker.

After a change the schedules that have the calendar are looked at, some with each step.  One that is
asked for or comes due before its turn is looked at first, so nothing fires by the days of before.

    old days   ●   ●   ●   ●        each day; the change arrives, and Thursday is off from now on
                     ▲ change
    new days   ●   ●  ███  ●        what lies after its arrival follows from the new days

What lies up to the arrival of the change stays as it was.  A new instant lies after the arrival and
after all that the schedule has passed.  It follows from the record and the row of the calendar
alone: it matters not when it is derived, nor by whom, so a kill repeats nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from belfry.engine.reports import Reply, SourcePartition
from belfry.engine.step import Step, Tracked, UndoLog
from belfry.engine.waiting import Waiting
from belfry.schedules.calendars import Calendar, read_calendar
from belfry.schedules.identity import generation_of
from belfry.schedules.instants import format_instant
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.schedules.rule import decode_rule, encode_rule, has_calendar, rule_of
from belfry.schedules.triggers import Trigger, trigger_by, trigger_of
from belfry.schedules.triggers.heeding import Heeding
from belfry.store.layout import keys
from belfry.store.layout.calendars import (
    CALENDAR_END,
    CALENDAR_PREFIX,
    CalendarRow,
    calendar_key,
    decode_calendar,
    encode_calendar,
    names_of_calendar,
)
from belfry.store.layout.pending import (
    PAUSED,
    Pending,
    decode_pending,
    encode_pending,
    has_rule,
    paused,
)
from belfry.store.layout.records import (
    ENDED_COMPLETED,
    IN_BACKLOG,
    IN_PAUSED,
    IN_TIMELINE,
    Location,
    Marker,
    decode_location,
    encode_marker,
    is_location,
)
from belfry.store.readable import why_unreadable
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import StepTenants
from belfry.wire.lifecycle import LifecycleEvent

MOST_OF_TENANT: Final = 100
# What lies elsewhere is due, and looked at when it comes out.
LOOKED_AT: Final = frozenset({IN_TIMELINE, IN_PAUSED, IN_BACKLOG})
# The code of an outcome that is about a calendar and no schedule, and of a schedule that it moves.
CODE: Final = "calendar"
# About what an outcome takes.
OUTCOME_BYTES: Final = 300
SHOWN: Final = 20

Found = tuple[Pending, bytes]
DaysOf = Callable[[str, str], bytes | None]


class Calendars:
    """The calendars of one partition, and the schedules that have to follow a change."""

    def __init__(
        self,
        place: SourcePartition,
        store: ScheduleStore,
        tenants: StepTenants,
        waiting: Waiting,
        undo: UndoLog,
    ) -> None:
        self._place = place
        self._store = store
        self._tenants = tenants
        self._waiting = waiting
        rows = store.between(CALENDAR_PREFIX, CALENDAR_END)
        self._known = Tracked(undo, {key: decode_calendar(row) for key, row in rows})
        going = {key: row for key, row in self._known.items() if row.under_way}
        self._going: Tracked[bytes, CalendarRow] = Tracked(undo, going)
        # What this very step has changed: its schedules are not all to be seen yet.
        self._fresh: set[bytes] = set()
        undo.scratch(self._fresh.clear)

    @property
    def under_way(self) -> bool:
        """Whether schedules may still have the days of before a change."""
        return bool(self._going)

    # -- requests --------------------------------------------------------------------------------

    def set(self, request: Request, at_ms: int, step: Step) -> Reply:
        """Keep the calendar of a request: ACCEPTED, UPDATED, or UNCHANGED."""
        found = read_calendar(request["days_off"])
        assert isinstance(found, Calendar), "a checked request has days that can be read"
        tenant = request["tenant"].encode()
        key = calendar_key(tenant, request["schedule_id"])
        before = self._known.get(key)
        if before is not None and before.days == found.packed:
            if before.source != found.source:
                self._note(key, before._replace(source=found.source), step)
            return Reply(Outcome.UNCHANGED, code=CODE)
        if before is None and len(self._names(tenant)) >= MOST_OF_TENANT:
            reason = f"The tenant has {MOST_OF_TENANT} calendars: remove one first."
            return Reply(Outcome.REJECTED, code="too_many_calendars", reason=reason)
        self._fresh.add(key)
        # Schedules may be left of a calendar of this name that was removed.
        self._note(key, CalendarRow(found.packed, found.source, at_ms, under_way=True), step)
        return Reply(Outcome.ACCEPTED if before is None else Outcome.UPDATED, code=CODE)

    def remove(self, request: Request) -> Reply:
        """Forget a calendar; schedules that have it keep its days."""
        key = calendar_key(request["tenant"].encode(), request["schedule_id"])
        if key not in self._known:
            reason = f"The tenant has no calendar of this name. {self._there(request)}"
            return Reply(Outcome.NOT_FOUND, code="not_found", reason=reason)
        self._forget(key)
        return Reply(Outcome.CANCELLED, code=CODE)

    def days_of(self, tenant: str, name: str) -> bytes | None:
        """The days of a calendar at rest; None where the tenant has none of this name."""
        row = self._known.get(calendar_key(tenant.encode(), name))
        return None if row is None else row.days

    def problem(self, request: Request, accepted_ms: int) -> Rejection | None:
        """Why a schedule cannot have the calendar that it names, or None."""
        tenant, name = request["tenant"], request["calendar"]
        if name is None:
            return None
        days = self.days_of(tenant, name)
        if days is None:
            return Rejection(
                "unknown_calendar",
                f"Tenant {tenant} has no calendar {name!r}. {self._there(request)} Set it first"
                f" (`belfry calendar set {tenant} {name}`), and send this again.",
            )
        if request["standing"] is not None:
            return None
        if trigger_by(rule_of(request, days)).first_ms(accepted_ms) is not None:
            return None
        return Rejection(
            "never_fires",
            f"The schedule is never due: calendar {name!r} leaves out each instant of its rule, or"
            " more than is looked through. Use another calendar, or on_holiday"
            " NEXT_BUSINESS_DAY.",
        )

    def _names(self, tenant: bytes) -> list[str]:
        return sorted(name for of, name in map(names_of_calendar, self._known) if of == tenant)

    def _there(self, request: Request) -> str:
        """Which calendars the tenant has, in words."""
        names = self._names(request["tenant"].encode())
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        return f"It has {', '.join(names[:SHOWN])}{more}." if names else "It has none."

    # -- schedules -------------------------------------------------------------------------------

    def is_stale(self, tenant: bytes, name: str, days: bytes | None) -> bool:
        """Whether a schedule has other days than the calendar of this name."""
        row = self._known.get(calendar_key(tenant, name))
        return row is not None and row.days != days

    def settled(self, name: bytes, row: bytes, step: Step) -> bytes | None:
        """What lies under the name of a schedule, once it has followed all changes."""
        if not is_location(row):
            return row
        self._look(name, row, step)
        return self._store.named(name)

    def derived(self, row: Pending, record: bytes, step: Step) -> Found | None:
        """The row by the days of its calendar, rewritten; None where the schedule is over.

        The schedule has to be stale, and taken from its place.
        """
        rule = decode_rule(row.extra)
        assert rule.calendar is not None, "a stale schedule has a calendar"
        known = self._known[calendar_key(row.tenant, rule.calendar)]
        extra = encode_rule(replace(rule, packed_days=known.days))
        nominal_ms = nominal_after(trigger_of(row.extra), trigger_of(extra), row, known.changed_ms)
        if nominal_ms is None:
            self._end(row, rule.calendar, step)
            return None
        name = row.name
        due_ms = nominal_ms + (jitter_ms(name, nominal_ms, row.jitter_ms) if row.jitter_ms else 0)
        moved = row._replace(due_ms=due_ms, nominal_ms=nominal_ms, extra=extra)
        kept = encode_pending(moved, PAUSED if paused(record) else 0)
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
        self._store.end(row.name, encode_marker(ended))
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

    # -- work ------------------------------------------------------------------------------------

    def advance(self, step: Step, names: int, changes: int) -> tuple[int, int]:
        """Look at the next schedules, so many names and changes; what is left of both."""
        for key in list(self._going):
            if names <= 0 or changes <= 0 or step.effects.room <= 0:
                break
            tenant, _ = names_of_calendar(key)
            if tenant in self._tenants.removed:
                # Nobody is there whose schedules could follow.
                self._forget(key)
            elif key not in self._fresh:
                names, changes = self._walk(key, step, names, changes)
        return names, changes

    def _walk(self, key: bytes, step: Step, names: int, changes: int) -> tuple[int, int]:
        """Walk on through the names of a tenant for one calendar."""
        row = self._going[key]
        start = names_of_calendar(key)[0] + b"/"
        first = row.cursor.encode() + b"\0" if row.cursor else start
        cursor, moved = row.cursor.encode(), row.moved
        for name, place in self._store.between(first, keys.following(start)):
            if names <= 0 or changes <= 0 or step.effects.room <= 0:
                self._note(key, row._replace(cursor=cursor.decode(), moved=moved), step)
                return names, changes
            now = self._store.named(name)
            if is_location(place) and now is not None and is_location(now):
                looked = self._look(name, now, step)
                moved, changes = moved + looked, changes - looked
            names -= 1
            cursor = name
        self._note(key, row._replace(under_way=False, cursor="", moved=moved), step)
        return names, changes

    def _look(self, name: bytes, place: bytes, step: Step) -> bool:
        """Let a schedule that waits follow its calendar; whether it had to."""
        if decode_location(place).where not in LOOKED_AT:
            return False
        record = self._store.pending_at(name, place)
        if not has_rule(record):
            return False
        row = decode_pending(record)
        if not has_calendar(row.extra) or why_unreadable(record):
            return False
        rule = trigger_of(row.extra).rule
        if rule.calendar is None or not self.is_stale(row.tenant, rule.calendar, rule.packed_days):
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

    # -- rows ------------------------------------------------------------------------------------

    def _note(self, key: bytes, row: CalendarRow, step: Step) -> None:
        kept = encode_calendar(row)
        step.effects.room -= len(kept)
        self._store.note(key, kept)
        self._known[key] = row
        if row.under_way:
            self._going[key] = row
        elif key in self._going:
            del self._going[key]

    def _forget(self, key: bytes) -> None:
        self._store.note(key, None)
        del self._known[key]
        if key in self._going:
            del self._going[key]


def nominal_after(before: Trigger, trigger: Trigger, row: Pending, changed_ms: int) -> int | None:
    """What a pending instant is by the new days, of a change that arrived then; None: no more.

    What lies up to the change stays.  Else it is the first after the change, after what the
    schedule has passed, and from its `start_at` on.
    """
    nominal_ms = row.nominal_ms
    if nominal_ms <= changed_ms:
        return nominal_ms
    assert isinstance(trigger, Heeding), "a rule with days heeds them"
    passed_ms = max(before.before_ms(nominal_ms, row.accepted_ms), row.accepted_ms, changed_ms)
    if trigger.rule.start_at is not None:
        passed_ms = max(passed_ms, trigger.rule.start_at - 1)
    return trigger.next_ms(nominal_ms, passed_ms)
