"""The text of a recurrence of RFC 5545, read: its allowed parts, and the place of a mistake.

A text is one rule, or several lines, apart by line breaks or blanks:

    FREQ=WEEKLY;BYDAY=MO,FR                        one rule; DTSTART is the field `start_at`

    DTSTART;TZID=Europe/Paris:20400102T090000      the same with its own start and zone
    RRULE:FREQ=WEEKLY;BYDAY=MO,FR                  several rules are a union
    RDATE:20400107T090000                          one time more
    EXDATE;VALUE=DATE:20400109                     one time less; a date takes its whole day
    EXRULE:FREQ=MONTHLY;BYMONTHDAY=13              a rule of times that are left out

Nothing is passed over: a part or a line that is not known is refused by name.  Times are *wall
seconds*, counted from 1970-01-01T00:00 on the wall, except for those in UTC (with ``Z``).

Blanks separate lines as line breaks do, so that a text fits a header or an argument of a shell.
Lines that iCalendar has folded (a break and a blank) are joined first.  The result is remembered by
the text, so checking a rule and compiling it read it once.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from belfry.schedules.triggers.rrule_parts import SHAPE, nearest, read_moment, read_recurrence
from belfry.schedules.triggers.rrule_values import Moment, Recurrence, RRuleMistake, RuleText

LINES: Final = ("DTSTART", "RRULE", "RDATE", "EXDATE", "EXRULE")
MAX_TEXT: Final = 4_000
MAX_RULES: Final = 8
_FOLD: Final = re.compile(r"\r?\n[ \t]")


@lru_cache(maxsize=4_096)
def read_rule(text: str) -> RuleText:
    """The recurrence in a text; raises `RRuleMistake`."""
    size = len(text.encode(errors="replace"))
    if size > MAX_TEXT:
        raise RRuleMistake(f"it has {size} bytes; at most {MAX_TEXT} are read")
    found: dict[str, list[Recurrence]] = {"RRULE": [], "EXRULE": []}
    dates: dict[str, list[Moment]] = {"DTSTART": [], "RDATE": [], "EXDATE": []}
    zones: set[str] = set()
    for line in _FOLD.sub("", text).split():
        name, zone, value = _line(line)
        if name in found:
            found[name].append(read_recurrence(value.upper()))
        else:
            dates[name] += (read_moment(name, each, zone) for each in value.upper().split(","))
            zones.add(zone[0])
    return _checked(found, dates, zones)


def _checked(
    found: dict[str, list[Recurrence]], dates: dict[str, list[Moment]], zones: set[str]
) -> RuleText:
    if len(dates["DTSTART"]) > 1:
        raise RRuleMistake("DTSTART is given twice")
    if not found["RRULE"] and not dates["RDATE"]:
        raise RRuleMistake(f"it has no rule: give {SHAPE}")
    count = len(found["RRULE"]) + len(found["EXRULE"])
    if count > MAX_RULES:
        raise RRuleMistake(f"it has {count} rules; at most {MAX_RULES} are read")
    named = sorted(zones - {""})
    if len(named) > 1:
        raise RRuleMistake(
            f"it names the zones {named[0][:40]} and {named[1][:40]}: all its times have to be of"
            " one zone, or in UTC"
        )
    start = dates["DTSTART"][0] if dates["DTSTART"] else None
    return RuleText(
        start,
        named[0] if named else None,
        tuple(found["RRULE"]),
        tuple(found["EXRULE"]),
        tuple(dates["RDATE"]),
        tuple(dates["EXDATE"]),
    )


def _line(line: str) -> tuple[str, tuple[str, bool], str]:
    """The name of a line, its zone and whether it holds dates, and its value."""
    if ":" not in line:
        line = f"RRULE:{line}"
    head, _, value = line.partition(":")
    name, *parameters = head.split(";")
    name = name.upper()
    if name not in LINES:
        raise RRuleMistake(f"{name[:40]!r} is not known: {', '.join(LINES)}{nearest(name, LINES)}")
    zone, is_date = "", False
    for parameter in parameters:
        key, _, said = parameter.partition("=")
        if key.upper() == "TZID" and said:
            zone = said.strip('"')
        elif key.upper() == "VALUE" and said.upper() in ("DATE", "DATE-TIME"):
            is_date = said.upper() == "DATE"
        else:
            raise RRuleMistake(
                f"{parameter[:40]!r} of {name} is not known: TZID=zone, VALUE=DATE or"
                " VALUE=DATE-TIME"
            )
    return name, (zone, is_date), value
