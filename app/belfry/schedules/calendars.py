"""A calendar: the days off of a tenant, as a set of dates and days of the week.

    {"days": ["2026-12-25", "2026-12-28"], "weekend": ["SAT", "SUN"], "source": "holidays 0.86 DE"}

    Thu 24   Fri 25   Sat 26   Sun 27   Mon 28   Tue 29
             ██████   ██████   ██████   ██████              days off; the others are business days

| name | meaning |
|---|---|
| `days` | dates, as ISO 8601 writes them; a date has no zone, its schedule has one |
| `weekend` | days of the week that are off in each week; none unless given |
| `source` | where the days are from, for people |

Days are resolved when the calendar is set: whatever versions of other libraries workers have, all
of them know the same days.  A schedule keeps them as bytes (`days_off`); this module reads the
field of a request, and refuses values that cannot be meant.

Bounds: 2 000 dates, and at most 366 days off in a row, so that the search for a business day ends.
"""

from __future__ import annotations

import json
import re
from datetime import date
from typing import Any, Final, NamedTuple

from belfry.schedules.civil import WEEK, day_number
from belfry.schedules.days_off import DAY_NAMES, days_off, packed_days
from belfry.schedules.json_field import JsonField
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import KEEPING, Request

CALENDAR: Final = "CALENDAR"
CALENDAR_REMOVE: Final = "CALENDAR_REMOVE"
CALENDAR_ACTIONS: Final = frozenset({CALENDAR, CALENDAR_REMOVE})
NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
NAME_SHAPE: Final = "1-100 of A-Z a-z 0-9 _ . -"
MOST_DAYS: Final = 2_000
# Days off in a row: a search for a business day goes so far at most.
MOST_IN_A_ROW: Final = 366
MOST_SOURCE: Final = 200
MOST_BYTES: Final = 60_000
_LAST_YEAR: Final = 2200
_FIELD: Final = JsonField(
    "CALENDAR",
    MOST_BYTES,
    ("days", "weekend", "source"),
    '{"days": ["2026-12-25"], "weekend": ["SAT", "SUN"]}',
)


class Calendar(NamedTuple):
    """The calendar of a request: its days at rest, and where they are from.

    `source` is for people alone; two calendars that differ in it have the same days.
    """

    packed: bytes
    source: str = ""

    def text(self) -> str:
        """The same as a request's field holds it."""
        days = days_off(self.packed)
        said: dict[str, Any] = {"days": days.dates}
        if days.weekend:
            said["weekend"] = days.weekend
        if self.source:
            said["source"] = self.source
        return json.dumps(said, ensure_ascii=False)


def read_calendar(text: str | None) -> Calendar | Rejection:
    """The days of a calendar in a request, or why they cannot be read (`bad_calendar`).

    Days may come in any order and more than once; at rest they are sorted, each once.
    """
    said = _FIELD.read(text)
    if isinstance(said, str):
        return _bad(said)
    return _read(said.get("days") or [], said.get("weekend") or [], said.get("source") or "")


def days_problem(request: Request) -> Rejection | None:
    """Why a request's calendar is not allowed, or None."""
    action, name = request["action"], request["schedule_id"]
    if action in CALENDAR_ACTIONS and NAME.fullmatch(name) is None:
        return Rejection(
            "bad_calendar", f"The name {name[:60]!r} of a calendar is not allowed: {NAME_SHAPE}."
        )
    if action != CALENDAR:
        return None if request["days_off"] is None else _bad(f"is for CALENDAR, and not {action}")
    found = read_calendar(request["days_off"])
    return found if isinstance(found, Rejection) else None


def name_problem(request: Request) -> Rejection | None:
    """Why the calendar that a schedule names is no name of one, or None."""
    name = request["calendar"]
    if name is None or request["action"] not in KEEPING or NAME.fullmatch(name) is not None:
        return None
    return Rejection("bad_calendar", f"calendar {name[:60]!r} is not allowed: {NAME_SHAPE}.")


def _read(days: Any, weekend: Any, source: Any) -> Calendar | Rejection:
    if not isinstance(days, list) or len(days) > MOST_DAYS:
        given = f"{len(days)} days" if isinstance(days, list) else f"days {repr(days)[:60]}"
        return _bad(f"has {given}: give a list of at most {MOST_DAYS} dates")
    numbers: list[int] = []
    for each in days:
        number = _number(each)
        if number is None:
            return _bad(
                f"has the day {repr(each)[:60]}: give dates such as 2026-12-25, from 1970 to"
                f" {_LAST_YEAR}"
            )
        numbers.append(number)
    if not isinstance(weekend, list) or any(each not in DAY_NAMES for each in weekend):
        return _bad(f"has the weekend {repr(weekend)[:60]}: give some of {', '.join(DAY_NAMES)}")
    if not isinstance(source, str) or len(source) > MOST_SOURCE or not source.isprintable():
        return _bad(f"has the source {repr(source)[:60]}: give up to {MOST_SOURCE} characters")
    if len(set(weekend)) == WEEK:
        return _bad("has a weekend of all seven days, so no business day is left: leave one out")
    packed = packed_days(numbers, map(DAY_NAMES.index, weekend))
    if days_off(packed).longest() > MOST_IN_A_ROW:
        return _bad(f"has more than {MOST_IN_A_ROW} days off in a row: leave some out")
    return Calendar(packed, source)


def _number(given: Any) -> int | None:
    """The number of the day that a text is the date of, or None."""
    try:
        day = date.fromisoformat(given)
    except (TypeError, ValueError):
        return None
    in_reach = len(given) == len("2026-12-25") and 1970 <= day.year <= _LAST_YEAR
    return day_number(day) if in_reach else None


def _bad(why: str) -> Rejection:
    return Rejection("bad_calendar", f"days_off {why}.")
