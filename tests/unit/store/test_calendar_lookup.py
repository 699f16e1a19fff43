"""The calendars of a tenant, as those see them who only look."""

from __future__ import annotations

from belfry.store.calendar_lookup import calendars, days_in
from belfry.store.layout.calendars import (
    CALENDAR_END,
    CALENDAR_PREFIX,
    CalendarRow,
    calendar_key,
    calendars_range,
    encode_calendar,
    names_of_calendar,
)
from belfry.store.layout.keys import named_key
from belfry.store.ordered_map import MemoryMap

HERE = CalendarRow(b"\x60", "said", 1, 2)
GONE = CalendarRow(b"\x70", "said", 1, 2, removed=True)


def rows() -> MemoryMap:
    found = MemoryMap()
    for tenant, name, row in (
        (b"t", "b/é", HERE._replace(days=b"\x61")),
        (b"t", "a", HERE),
        (b"t", "gone", GONE),
        (b"t.x", "a", HERE._replace(days=b"\x62")),
        (b"s", "a", HERE._replace(days=b"\x63")),
    ):
        found.write({named_key(calendar_key(tenant, name)): encode_calendar(row)})
    return found


def test_a_tenants_own_calendars_are_told_by_name_without_those_that_go() -> None:
    assert calendars(rows(), b"t") == [("a", HERE), ("b/é", HERE._replace(days=b"\x61"))]
    assert calendars(rows(), b"u") == []


def test_the_days_of_one_are_looked_up_by_tenant_and_name() -> None:
    found = [days_in(rows(), b"t", name) for name in ("a", "b/é", "gone", "none")]
    assert found == [b"\x60", b"\x61", None, None]
    assert days_in(rows(), b"t.x", "a") == b"\x62"
    assert days_in(rows(), b"u", "a") is None


def test_keys_of_calendars_lie_apart_from_those_of_other_tenants() -> None:
    key = calendar_key(b"t", "b/é")
    assert key == b"\0ct/b/" + "é".encode()
    assert names_of_calendar(key) == (b"t", "b/é")
    first, end = calendars_range(b"t")
    assert first < key < end
    assert not first <= calendar_key(b"t.x", "a") < end
    assert CALENDAR_PREFIX < first < end < CALENDAR_END
