"""RRULE: days of a rule of RFC 5545 at the time of day of its first one, in a time zone.

`start_at` and `timezone` are DTSTART: they say from which day on, at what time of day, and where.
The parts that are known: FREQ=DAILY or WEEKLY, INTERVAL, BYDAY without numbers, WKST, and one of
COUNT and UNTIL.  Others are refused by name, and never passed over.

    FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR            DTSTART a Wednesday, 09:00 Europe/Paris

    day     … Mo Tu We Th Fr Sa Su │ Mo … Su │ Mo Tu We Th Fr Sa Su │ …
                    ▲     0        │         │ 1           2        │
                    DTSTART        │ passed  │ period of 14 days: offsets 0 and 4
                                     over

The days of such a rule repeat after a period, so the n-th day, and the number of a day, are a
division and a look into a short list: a rule that slept for ten years costs no more than one that
fired yesterday.

What a changed clock does: a time that does not exist is read by the offset before the gap, 02:30 as
03:30 (RFC 5545, 3.3.5), and counts; of a time that comes twice the first one counts.  So no day is
lost.  Where a zone left out a day as a whole, two days share an instant, which fires once.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import lcm
from typing import Final, NamedTuple

from belfry.schedules.field import Field, Form
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.schedules.triggers.kind import Recurring, Warned
from belfry.schedules.triggers.rule import Rule
from belfry.schedules.triggers.trigger import Trigger, ZonedTrigger
from belfry.schedules.triggers.zones import END_S, Zone, zone, zone_problem

SHAPE: Final = (
    "FREQ=DAILY or FREQ=WEEKLY, and perhaps INTERVAL, BYDAY, WKST and one of COUNT and UNTIL, such"
    ' as "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR"'
)
DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
UNITS: Final = {"DAILY": "day", "WEEKLY": "week"}
DAY_S: Final = 86_400
MAX_TEXT: Final = 255
MAX_INTERVAL: Final = 36_525
MAX_COUNT: Final = (1 << 31) - 1
NEVER: Final = 1 << 62
_DIGITS: Final = re.compile(r"[0-9]{1,10}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class RRuleMistake(ValueError):
    """A rule that cannot be read; the message quotes what is wrong, and says what is allowed."""


class RRuleParts(NamedTuple):
    """A rule, read: days count from 0, Monday; `until_ms` is inclusive."""

    freq: str
    interval: int
    days: frozenset[int]
    week_start: int
    most: int | None
    until_ms: int | None


@lru_cache(maxsize=16_384)
def parts_of(text: str) -> RRuleParts:
    """A rule from its text; raises `RRuleMistake`."""
    if len(text.encode(errors="replace")) > MAX_TEXT:
        raise RRuleMistake(f"it has more than {MAX_TEXT} bytes")
    given = _split(text)
    freq = given.pop("FREQ", "")
    if freq not in UNITS:
        raise RRuleMistake(f"FREQ={freq} is not known here: give {SHAPE}")
    found = RRuleParts(
        freq,
        _number("INTERVAL", given.pop("INTERVAL", "1"), MAX_INTERVAL),
        frozenset(map(_day, given.pop("BYDAY").split(","))) if "BYDAY" in given else frozenset(),
        _day(given.pop("WKST", "MO")),
        _number("COUNT", given.pop("COUNT"), MAX_COUNT) if "COUNT" in given else None,
        _until(given.pop("UNTIL")) if "UNTIL" in given else None,
    )
    if given:
        raise RRuleMistake(f"{next(iter(given))} is not known here: give {SHAPE}")
    if found.most is not None and found.until_ms is not None:
        raise RRuleMistake("COUNT and UNTIL are both given: keep one")
    return found


def _split(text: str) -> dict[str, str]:
    """The parts by name, in upper case."""
    found: dict[str, str] = {}
    for part in text.strip().upper().removeprefix("RRULE:").removesuffix(";").split(";"):
        name, equals, value = part.partition("=")
        if not equals or not value:
            raise RRuleMistake(f"{part[:40]!r} is no part of the form NAME=VALUE: give {SHAPE}")
        if name in found:
            raise RRuleMistake(f"{name[:40]} is given twice")
        found[name[:40]] = value
    return found


def _number(name: str, text: str, most: int) -> int:
    if _DIGITS.fullmatch(text) is None or not 1 <= int(text) <= most:
        raise RRuleMistake(f"{name}={text[:40]} is not allowed: 1 to {most}")
    return int(text)


def _day(text: str) -> int:
    if text not in DAYS:
        raise RRuleMistake(f"day {text[:40]!r} is none of {', '.join(DAYS)}")
    return DAYS.index(text)


def _until(text: str) -> int:
    try:
        instant = datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise RRuleMistake(
            f"UNTIL={text[:40]} is no instant of UTC: give it as 20401231T235959Z"
        ) from None
    return (instant - _EPOCH) // timedelta(milliseconds=1)


class Calendar:
    """The days of a rule from that of DTSTART on, numbered from 0; a day counts from 1970."""

    def __init__(self, parts: RRuleParts, start: int) -> None:
        self.start = start
        weekday = (start + 3) % 7
        if parts.freq == "WEEKLY":
            self._origin = start - (weekday - parts.week_start) % 7
            self._period = 7 * parts.interval
            days = parts.days or {weekday}
            self._offsets = sorted((day - parts.week_start) % 7 for day in days)
        else:
            self._origin = start
            self._period = lcm(parts.interval, 7) if parts.days else parts.interval
            self._offsets = [
                offset
                for offset in range(0, self._period, parts.interval)
                if not parts.days or (weekday + offset) % 7 in parts.days
            ]
        # Days of the first period that lie before DTSTART.
        self._before = bisect_left(self._offsets, start - self._origin)

    @property
    def is_empty(self) -> bool:
        """Whether no day is one of the rule's: every seventh day, but never on a Monday."""
        return not self._offsets

    def day(self, number: int) -> int:
        """The day of this number."""
        periods, place = divmod(number + self._before, len(self._offsets))
        return self._origin + periods * self._period + self._offsets[place]

    def number_from(self, day: int) -> int:
        """The number of the first day that is not before this one."""
        periods, offset = divmod(day - self._origin, self._period)
        found = periods * len(self._offsets) + bisect_left(self._offsets, offset)
        return max(0, found - self._before)


class RRule(ZonedTrigger):
    """Instants of a rule of RFC 5545."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        assert isinstance(rule.when, str), "a checked rule has its text"
        assert rule.start_at is not None, "a checked rule has its DTSTART"
        self._parts = parts_of(rule.when)
        self._zone_name = rule.timezone or "UTC"
        self._zone = zone(self._zone_name)
        self._start_ms = rule.start_at
        second, self._rest_ms = divmod(rule.start_at, 1000)
        start, self._time = divmod(second + self._zone.at(second).offset, DAY_S)
        self._calendar = Calendar(self._parts, start)
        self._end_ms = self._last_ms()

    def _last_ms(self) -> int:
        """No instant is later than this one."""
        if self._calendar.is_empty:
            return 0
        ends = [END_S * 1000 - 1, self.rule.end_at, self._parts.until_ms]
        if self._parts.most is not None:
            ends.append(self._instant_ms(self._parts.most - 1))
        return min(end for end in ends if end is not None)

    @property
    def starts_with_its_start(self) -> bool:
        """Whether DTSTART is an occurrence: whether its day is one of the rule's."""
        return not self._calendar.is_empty and self._calendar.day(0) == self._calendar.start

    def first_ms(self, accepted_ms: int) -> int | None:
        """The first instant after the acceptance, or from `start_at` on if that is later."""
        return self.after_ms(max(accepted_ms, self._start_ms - 1))

    def after_ms(self, nominal_ms: int) -> int | None:
        """The instant of the next day."""
        if nominal_ms >= self._end_ms:
            return None
        found = self._instant_ms(self._number_after(nominal_ms))
        return found if found <= self._end_ms else None

    def latest_ms(self, after_ms: int, until_ms: int) -> tuple[int, int]:
        """A difference of two numbers."""
        until_ms = min(until_ms, self._end_ms)
        if until_ms <= after_ms:
            return after_ms, 0
        number = self._number_after(until_ms)
        count = number - self._number_after(after_ms)
        return (self._instant_ms(number - 1), count) if count else (after_ms, 0)

    def _number_after(self, ms: int) -> int:
        """The number of the first day whose instant is later than this one."""
        second = max(ms, self._start_ms - 1) // 1000
        day = (second + self._zone.at(second).offset) // DAY_S
        # Zones differ by a day at most, so what lies before yesterday is over everywhere.
        number = self._calendar.number_from(day - 1)
        while self._instant_ms(number) <= ms:
            number += 1
        return number

    def _instant_ms(self, number: int) -> int:
        day = self._calendar.day(number)
        if day == self._calendar.start:
            return self._start_ms
        wall = day * DAY_S + self._time
        return NEVER if wall >= END_S else _instant(self._zone, wall) * 1000 + self._rest_ms

    @property
    def cadence(self) -> tuple[object, ...]:
        """All of the rule: what counts from its first day is another rhythm with another COUNT."""
        return (self.rule.kind, self._parts, self._zone_name, self._start_ms)


def _instant(place: Zone, wall: int) -> int:
    """The second of UTC at which the wall clock first shows this one, or would have shown it."""
    stretch = place.at(wall - DAY_S)
    while wall >= stretch.end + stretch.offset:
        following = place.at(stretch.end)
        if wall < stretch.end + following.offset:
            break
        stretch = following
    return wall - stretch.offset


def rrule_problem(request: Request) -> Rejection | None:
    """Why the rule of a request of kind RRULE is not allowed, or None."""
    text = request["rrule"]
    if text is None:
        return Rejection("no_instant", f"Kind RRULE needs the field `rrule`: {SHAPE}.")
    if request["start_at"] is None:
        return Rejection(
            "no_instant",
            "Kind RRULE needs the field `start_at`: it is DTSTART, whose day the rule begins with"
            " and whose time of day it keeps.",
        )
    try:
        parts_of(text)
    except RRuleMistake as mistake:
        return Rejection("bad_rule", f"rrule {text[:200]!r} cannot be read: {mistake}.")
    return None


class RRuleKind(Recurring):
    """A rule of RFC 5545, from `start_at` on, read in a time zone."""

    name = "RRULE"
    code = 4
    zoned = True
    field = Field(
        name="rrule",
        form=Form.TEXT,
        doc="RRULE: rule of RFC 5545 whose DTSTART is start_at: FREQ=DAILY or WEEKLY, INTERVAL,"
        " BYDAY, WKST, COUNT or UNTIL.",
        header="belfry-rrule",
        flag="--rrule",
        metavar="RULE",
        help='By a rule of RFC 5545 from --start-at on, such as "FREQ=WEEKLY;BYDAY=MO,FR".',
        argument="rrule",
        check=rrule_problem,
    )
    examples = (
        {"rrule": "FREQ=DAILY", "start_at": 1_700_000_000_000},
        {
            "rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR",
            "start_at": 1_800_000_000_500,
            "timezone": "Europe/Paris",
        },
        {
            "rrule": "RRULE:FREQ=DAILY;INTERVAL=3;BYDAY=SA,SU;COUNT=500",
            "start_at": 1_790_000_000_000,
            "timezone": "America/New_York",
        },
        {"rrule": "FREQ=WEEKLY;UNTIL=20300101T000000Z;WKST=SU", "start_at": 1_750_000_000_000},
    )

    def problem(self, request: Request, now_ms: int) -> Rejection | None:  # noqa: ARG002  # AT's
        """A rule that can be read, with a start, in a zone that exists."""
        return rrule_problem(request) or zone_problem(request["timezone"])

    def words(self, request: Request) -> str:
        """The rule in English, and its zone."""
        parts = parts_of(request["rrule"] or "")
        unit = UNITS[parts.freq]
        every = f"Every {unit}" if parts.interval == 1 else f"Every {parts.interval} {unit}s"
        days = ", ".join(DAYS[day].capitalize() for day in sorted(parts.days))
        times = "" if parts.most is None else f", {parts.most} in all"
        until = _EPOCH + timedelta(milliseconds=parts.until_ms or 0)
        ends = "" if parts.until_ms is None else f", until {until:%Y-%m-%dT%H:%M:%SZ}"
        on = f" on {days}" if days else ""
        return f"{every}{on}{times}{ends}, {request['timezone'] or 'UTC'}"

    def warnings(self, request: Request, trigger: Trigger, now_ms: int) -> Iterator[Warned]:  # noqa: ARG002  # every kind is asked so
        """A start that is no occurrence."""
        assert isinstance(trigger, RRule), "a rule of RRULE has the trigger of RRULE"
        if not trigger.starts_with_its_start:
            yield Warned(
                "start_is_not_due",
                "start_at lies on a day that the rule leaves out: the first occurrence is on a"
                " later one, and COUNT counts from there.",
            )

    def trigger(self, rule: Rule) -> Trigger:
        """Days and a zone; raises `RRuleMistake` or `UnknownZone` where they are not checked."""
        return RRule(rule)


RRULE: Final = RRuleKind()
