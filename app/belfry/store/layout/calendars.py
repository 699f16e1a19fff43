r"""A calendar as it lies in a partition's changelog: its days, and how far a change has come.

    key    00 63  tenant/calendar            \0c, then names as in the key of a schedule
    row    01 0f                             format, kind
           JSON                              an object, see `CalendarRow`

Each home of the tenant has a row of its own.  While the schedules that have the calendar are looked
at, the steps that do so write the row anew, with the cursor, in the transaction of their changes.

A release that knows no such rows stops at them.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from belfry.store.layout.records import CALENDAR, FORMAT

CALENDAR_PREFIX: Final = b"\0c"
CALENDAR_END: Final = b"\0d"
HEAD_OF_CALENDAR: Final = bytes((FORMAT, CALENDAR))


class CalendarRow(NamedTuple):
    """A calendar in one partition; instants are epoch ms.

    `days` are its days as `schedules/days_off.py` packs them.  `changed_ms` is when the request
    arrived that gave them: pending instants after it are derived anew.  `reached_ms` is how far the
    partition had come when it read that request: earlier fires lie up to there.  `under_way` says
    that some schedules may still have the days of before, and `cursor` is the key of the last that
    was looked at; `moved` counts those that the last change has moved.  `removed` says
    that it is forgotten once all were looked at.
    """

    days: bytes
    source: str
    changed_ms: int
    reached_ms: int
    under_way: bool = False
    cursor: str = ""
    moved: int = 0
    removed: bool = False


def calendar_key(tenant: bytes, name: str) -> bytes:
    """Changelog key of a calendar."""
    return b"%b%b/%b" % (CALENDAR_PREFIX, tenant, name.encode())


def calendars_range(tenant: bytes) -> tuple[bytes, bytes]:
    """The changelog keys between which the calendars of a tenant lie."""
    return CALENDAR_PREFIX + tenant + b"/", CALENDAR_PREFIX + tenant + b"0"


def names_of_calendar(key: bytes) -> tuple[bytes, str]:
    """Tenant and name of the calendar in such a key."""
    tenant, _, name = key[len(CALENDAR_PREFIX) :].partition(b"/")
    return tenant, name.decode()


def encode_calendar(row: CalendarRow) -> bytes:
    """The row of a calendar."""
    said = row._asdict() | {"days": row.days.hex()}
    return HEAD_OF_CALENDAR + json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def decode_calendar(row: bytes) -> CalendarRow:
    """The calendar in a row."""
    said = json.loads(row[len(HEAD_OF_CALENDAR) :])
    days = bytes.fromhex(said.pop("days"))
    known = {name: value for name, value in said.items() if name in CalendarRow._fields}
    return CalendarRow(days, **known)
