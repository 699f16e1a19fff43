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

Instants up to the arrival of the change stay as they were.  A new instant lies after the arrival
and after all that the schedule has passed.  It follows from the record and the row of the calendar
alone: the time and the owner that derive it do not matter, so a kill repeats nothing.

    12:00:00.000   CALENDAR de: 25 December is off      UPDATED; the walk begins with the next step
    12:00:00.050   names a1 … a900 are looked at        cursor a900
    12:00:00.060   a950 comes due, before its turn      it follows the new days first, then fires
    12:00:00.100   names a901 … z                       the walk is over

A calendar that is removed leaves its days in the schedules that have it; they go on by them.  How
schedules are walked through and moved is in `calendar_followers.py`.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.passed import reached_ms
from belfry.engine.reply import Reply
from belfry.engine.step import Step
from belfry.engine.undo import Tracked, UndoLog
from belfry.schedules.calendars import Calendar, read_calendar
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.schedules.rule import decode_rule, rule_of
from belfry.schedules.triggers import trigger_by
from belfry.store.layout.calendars import (
    CALENDAR_END,
    CALENDAR_PREFIX,
    CalendarRow,
    calendar_key,
    decode_calendar,
    encode_calendar,
    names_of_calendar,
)
from belfry.store.layout.pending import Pending
from belfry.store.schedules import ScheduleStore
from belfry.tenants.step_tenants import StepTenants

# The code of an outcome that is about a calendar and no schedule, and of a schedule that it moves.
CODE: Final = "calendar"
MOST_OF_TENANT: Final = 100
SHOWN: Final = 20


class Calendars:
    """The calendars of one partition: their days, and the changes that are not followed yet."""

    def __init__(self, store: ScheduleStore, tenants: StepTenants, undo: UndoLog) -> None:
        self._store = store
        self._tenants = tenants
        rows = store.between(CALENDAR_PREFIX, CALENDAR_END)
        self._known = Tracked(undo, {key: decode_calendar(row) for key, row in rows})
        going = {key: row for key, row in self._known.items() if row.under_way}
        self._going: Tracked[bytes, CalendarRow] = Tracked(undo, going)
        # Calendars that this very step has changed: not all of their schedules can be seen yet.
        self._fresh: set[bytes] = set()
        undo.scratch(set.clear, self._fresh)

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
        before = self._there_now(key)
        if before is not None and before.days == found.packed:
            if before.source != found.source:
                self.note(key, before._replace(source=found.source), step)
            return Reply(Outcome.UNCHANGED, code=CODE)
        if before is None and len(self._names(tenant)) >= MOST_OF_TENANT:
            reason = f"The tenant has {MOST_OF_TENANT} calendars: remove one first."
            return Reply(Outcome.REJECTED, code="too_many_calendars", reason=reason)
        self._fresh.add(key)
        # Schedules may be left of a calendar of this name that was removed.
        row = CalendarRow(found.packed, found.source, at_ms, reached_ms(step), under_way=True)
        self.note(key, row, step)
        return Reply(Outcome.ACCEPTED if before is None else Outcome.UPDATED, code=CODE)

    def remove(self, request: Request, step: Step) -> Reply:
        """Forget a calendar; schedules that have it keep its days.

        Where some have the days of before, they follow first, and nobody sees it meanwhile.
        """
        key = calendar_key(request["tenant"].encode(), request["schedule_id"])
        row = self._there_now(key)
        if row is None:
            reason = f"The tenant has no calendar of this name. {self._there(request)}"
            return Reply(Outcome.NOT_FOUND, code="not_found", reason=reason)
        if row.under_way:
            self.note(key, row._replace(removed=True), step)
        else:
            self.forget(key)
        return Reply(Outcome.CANCELLED, code=CODE)

    def days_of(self, tenant: str, name: str) -> bytes | None:
        """The days of a calendar at rest; None where the tenant has none of this name."""
        row = self._there_now(calendar_key(tenant.encode(), name))
        return None if row is None else row.days

    def _there_now(self, key: bytes) -> CalendarRow | None:
        row = self._known.get(key)
        return None if row is None or row.removed else row

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
        known = [names_of_calendar(key) for key, row in self._known.items() if not row.removed]
        return sorted(name for of, name in known if of == tenant)

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

    def passed_ms(self, row: Pending, step: Step) -> int:
        """How far the partition had come at the last change of a schedule's calendar.

        0 where it has none; as far as it is now where nobody knows the calendar any more.
        """
        name = decode_rule(row.extra).calendar
        if name is None:
            return 0
        known = self.of(row.tenant, name)
        return reached_ms(step) if known is None else known.reached_ms

    def of(self, tenant: bytes, name: str) -> CalendarRow | None:
        """A calendar by its tenant and name, also one that is being removed."""
        return self._known.get(calendar_key(tenant, name))

    # -- a change that schedules have to follow ---------------------------------------------------

    def going(self) -> dict[bytes, CalendarRow]:
        """Calendars whose changes are followed, by key; not those that this very step has changed.

        Of a tenant that was removed no schedule is left soon, so none of them follows.
        """
        removed = self._tenants.removed
        return {
            key: row
            for key, row in self._going.items()
            if key not in self._fresh and names_of_calendar(key)[0] not in removed
        }

    def followed(self, key: bytes, row: CalendarRow, step: Step) -> None:
        """All schedules have followed a change; a calendar that was removed is gone by now."""
        if row.removed:
            self.forget(key)
        else:
            self.note(key, row._replace(under_way=False, cursor=""), step)

    def forget_removed(self) -> None:
        """Forget the calendars of tenants that were removed: no schedule of theirs is left soon."""
        removed = self._tenants.removed
        for key in [key for key in self._known if names_of_calendar(key)[0] in removed]:
            self.forget(key)

    # -- rows ------------------------------------------------------------------------------------

    def note(self, key: bytes, row: CalendarRow, step: Step) -> None:
        """Keep the row of a calendar, as it is set or as far as its change is followed."""
        kept = encode_calendar(row)
        step.effects.room -= len(kept)
        self._store.note(key, kept)
        self._known[key] = row
        if row.under_way:
            self._going[key] = row
        elif key in self._going:
            del self._going[key]

    def forget(self, key: bytes) -> None:
        """Forget the row of a calendar."""
        self._store.note(key, None)
        del self._known[key]
        if key in self._going:
            del self._going[key]
