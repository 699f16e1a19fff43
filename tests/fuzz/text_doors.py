"""Doors of texts: rules, calendars and backups, which people and programs write.

rrules      the text of a recurrence (RFC 5545): exactly one verdict, and the engine goes on
icalendars  a file of days off: days, or why there are none
backups     a file that `belfry restore` is given: its parts, or why it is none
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import date
from io import BytesIO

from belfry.client.backup import BadBackup, count, read, taken_at
from belfry.client.imported_days import NoDays, days_of_ics
from tests.fuzz.engine_door import EngineDoor
from tests.unit.engine.driver import T0

Input = Callable[[bytes], None]
YEARS = (2025, 2027)
HEAD = b'{"belfry_backup":1}\n'


def rrules() -> Input:
    """A record whose rule is the input; where its first byte is odd, with an end."""
    door = EngineDoor()

    def one(data: bytes) -> None:
        odd = bool(data) and data[0] & 1
        headers: list[tuple[str, bytes | None]] = [
            ("belfry-tenant", b"demo"),
            ("belfry-id", b"a"),
            ("belfry-start-at", b"%d" % T0),
            ("belfry-rrule", data[1:] if odd else data),
        ]
        if odd:
            headers.append(("belfry-max-fires", b"3"))
        door(None, b"v", headers)

    return one


def icalendars() -> Input:
    """The bytes of a file."""
    return one_icalendar


def one_icalendar(data: bytes) -> None:
    """Days of the years that were asked for, in order and each once; or NoDays."""
    try:
        found = days_of_ics(data, "f.ics", YEARS)
    except NoDays:
        return
    days = [date.fromisoformat(day) for day in found.days]
    assert days
    assert days == sorted(set(days))
    assert {day.year for day in days} <= {*range(YEARS[0], YEARS[1] + 1)}


def backups() -> Input:
    """The bytes of a file; where the first is odd, lines behind a true beginning."""
    return one_backup


def one_backup(data: bytes) -> None:
    """Parts that are counted alike, or BadBackup, at the latest at the end."""
    whole = HEAD + data[1:] if data and data[0] & 1 else data
    with suppress(BadBackup):
        taken_at(BytesIO(whole))
    try:
        told = count(BytesIO(whole))
    except BadBackup:
        return
    assert sum(told) == len(list(read(BytesIO(whole))))
