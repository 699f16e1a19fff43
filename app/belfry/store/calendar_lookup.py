"""Calendars of a store, for readers who change nothing.

Each home of a tenant has all of the tenant's calendars, so one of them can answer for all.  A
calendar that is being removed while schedules still follow it is not shown.
"""

from __future__ import annotations

from belfry.store.layout import keys
from belfry.store.layout.calendars import (
    CalendarRow,
    calendar_key,
    calendars_range,
    decode_calendar,
    names_of_calendar,
)
from belfry.store.ordered_map import OrderedMap


def calendars(rows: OrderedMap, tenant: bytes) -> list[tuple[str, CalendarRow]]:
    """The calendars of a tenant in this partition, by name."""
    first, end = map(keys.named_key, calendars_range(tenant))
    found = [
        (names_of_calendar(keys.name_in(key))[1], decode_calendar(row))
        for key, row in rows.scan(first, end)
    ]
    return [(name, row) for name, row in found if not row.removed]


def days_in(rows: OrderedMap, tenant: bytes, name: str) -> bytes | None:
    """The days of a calendar at rest; None where the tenant has none of this name here."""
    row = rows.get(keys.named_key(calendar_key(tenant, name)))
    calendar = None if row is None else decode_calendar(row)
    return None if calendar is None or calendar.removed else calendar.days
