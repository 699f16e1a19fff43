"""Changes since a schedule was kept: of the zones, or of the days of its calendar.

A schedule that comes due is looked at first, so that nothing fires by zones or days of before.

    due row ─► zones changed? ─► its instant by the new data ─┬─ due by now ─► its calendar changed?
                                                              └─ later ─► set aside, fires then
               calendar changed? ─► its instant by the new days ─┬─ the same ─► fires now
                                                                 └─ another ─► set aside, or over

Most schedules have neither; then two attributes are looked at, and nothing is read.
"""

from __future__ import annotations

from typing import NamedTuple

from belfry.engine.calendar_followers import CalendarFollowers
from belfry.engine.calendars import Calendars
from belfry.engine.compiled_rule import CompiledRule
from belfry.engine.step import Step
from belfry.engine.waiting import Waiting
from belfry.engine.zone_change import ZoneChange
from belfry.store.layout.pending import Pending


class Changes(NamedTuple):
    """The changes that schedules of one partition have to follow."""

    zones: ZoneChange
    calendars: Calendars
    followers: CalendarFollowers
    waiting: Waiting

    def followed(
        self, row: Pending, record: bytes, rule: CompiledRule, step: Step
    ) -> tuple[Pending, bytes] | None:
        """A row that is due, by the zones and the calendar of now; None where it does not fire now.

        Then it is over, or set aside at its new instant.  Where that is due by now, one with a
        group takes its place among others of the group at once, so that none overtakes it.
        """
        if self.zones.under_way:
            found = self.zones.derived(row, record, step.horizon_ms, step)
            if found is not None and found[0].due_ms > step.horizon_ms:
                step.set_aside.append(found)
                return None
            row, record = found or (row, record)
        return self.by_calendar(row, record, rule, step)

    def by_calendar(
        self, row: Pending, record: bytes, rule: CompiledRule, step: Step
    ) -> tuple[Pending, bytes] | None:
        """The same by the calendar alone."""
        name, days = rule.calendar, rule.rule.packed_days
        if name is None or not self.calendars.is_stale(row.tenant, name, days):
            return row, record
        found = self.followers.derived(row, record, step)
        if found is None or found[0].due_ms == row.due_ms:
            return found
        if row.group and found[0].due_ms <= step.now_ms:
            self.waiting.hold_again(*found)
        else:
            step.set_aside.append(found)
        return None
