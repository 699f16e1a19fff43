"""Two oracles for RRULE: python-dateutil says which times, a walk through UTC says which instants.

dateutil knows a rule's times on the wall, and follows them one by one from DTSTART.  What changed
clocks do to them is asked of a walk minute by minute, as for cron (`cron_oracle`):

- FREQ of a day or longer: a time that does not exist counts once, right after the gap, together
  with all others of the gap; a time that comes twice counts the first time;
- others count whenever the wall shows them; only where a gap swallows every time of a day, that
  day counts once, right after the gap.

`random_text` keeps away from what dateutil reads in another way: days of the week with numbers
beside days without (RFC 5545 joins them, dateutil wants both), BYSETPOS in the part of a week that
DTSTART leaves of its first one, a 53rd day of the week, at which dateutil stumbles, and the last
two weeks of a year by number, or its first two from the end. dateutil counts them wrong at the turn
of some years: 2011-01-01 lies in week 52 of 2010, and not for dateutil. The ISO calendar judges
these (`test_rrule_weeks.py`).
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from types import FrameType
from typing import Any, Final

from dateutil.rrule import rruleset, rrulestr  # type: ignore[import-untyped,unused-ignore]

from tests.property.cron_oracle import MINUTE, Walked

DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
LONG: Final = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY")
SHORT: Final = ("HOURLY", "MINUTELY", "SECONDLY")
# What it says of weeks 52, 53, -52 and -53 is not what the ISO calendar says.
DATEUTILS_LAST_WEEK: Final = 51
# dateutil walks to the year 9999 for a rule that never matches.
PATIENCE_S: Final = 0.04
AGAIN_S: Final = 0.005


class TooLong(Exception):
    """dateutil has found nothing in its time."""


def random_text(draw: random.Random, start: datetime) -> str:
    """A rule that may be anything RFC 5545 allows."""
    freq = draw.choice(LONG + SHORT)
    parts = {"FREQ": freq}
    if draw.random() < 0.5:
        parts["INTERVAL"] = str(draw.choice((1, 2, 3, 4, 5, 7, 11, 12, 24, 60, 90)))
    if draw.random() < 0.3:
        parts["WKST"] = draw.choice(DAYS)
    _days(draw, freq, parts)
    _times(draw, freq, parts)
    if draw.random() < 0.15 and any(name.startswith("BY") for name in parts):
        _positions(draw, start, parts)
    end = draw.random()
    if end < 0.3:
        parts["COUNT"] = str(draw.choice((1, 2, 7, 30, 200)))
    elif end < 0.5:
        until = start + timedelta(seconds=draw.randrange(10 ** draw.randrange(4, 9)))
        parts["UNTIL"] = f"{until:%Y%m%dT%H%M%S}"
    return ";".join(f"{name}={value}" for name, value in parts.items())


def _days(draw: random.Random, freq: str, parts: dict[str, str]) -> None:
    if draw.random() < 0.3:
        parts["BYMONTH"] = _some(draw, 1, 12, 4)
    if freq == "YEARLY" and draw.random() < 0.2:
        parts["BYWEEKNO"] = _some(draw, 1, DATEUTILS_LAST_WEEK, 4, signed=True)
    if freq not in ("MONTHLY", "WEEKLY", "DAILY") and draw.random() < 0.15:
        parts["BYYEARDAY"] = _some(draw, 1, 366, 9, signed=True)
    if freq != "WEEKLY" and draw.random() < 0.25:
        parts["BYMONTHDAY"] = _some(draw, 1, 31, 5, signed=True)
    if draw.random() < 0.4:
        days = draw.sample(DAYS, draw.randrange(1, 5))
        if freq in ("YEARLY", "MONTHLY") and "BYWEEKNO" not in parts and draw.random() < 0.5:
            nths: tuple[int, ...] = (1, 2, 3, 4, 5, -1, -2, -5)
            if freq == "YEARLY" and "BYMONTH" not in parts:
                nths += (20, 40, -30)
            days = [f"{draw.choice(nths)}{day}" for day in days]
        parts["BYDAY"] = ",".join(days)


def _times(draw: random.Random, freq: str, parts: dict[str, str]) -> None:
    rare = 0.25 if freq in LONG else 0.15
    for name, most in (("BYHOUR", 23), ("BYMINUTE", 59), ("BYSECOND", 59)):
        if draw.random() < rare:
            parts[name] = _some(draw, 0, most, 4)


def _positions(draw: random.Random, start: datetime, parts: dict[str, str]) -> None:
    parts["BYSETPOS"] = _some(draw, 1, 6, 3, signed=True)
    if parts["FREQ"] == "WEEKLY":
        parts["WKST"] = DAYS[start.weekday()]


def _some(draw: random.Random, low: int, high: int, most: int, *, signed: bool = False) -> str:
    numbers = {draw.randint(low, high) for _ in range(draw.randint(1, most))}
    return ",".join(str(each * (draw.choice((1, 1, -1)) if signed else 1)) for each in numbers)


def times(texts: list[str], without: list[str], start: datetime, most: int) -> tuple[Any, bool]:
    """The first times on the wall, and whether these are all that were asked for, or exist."""
    found: list[datetime] = []
    rules = rruleset()
    try:
        with patience():
            for text in texts:
                rules.rrule(rrulestr(text, dtstart=start))
            for text in without:
                rules.exrule(rrulestr(text, dtstart=start))
            for each in rules if len(texts) > 1 or without else rrulestr(texts[0], dtstart=start):
                found.append(each)
                if len(found) == most:
                    break
    except TooLong:
        return found, False
    except ValueError as error:
        # Its word for a rule by hours, minutes or seconds that never matches.
        if "empty set" not in str(error) and "Invalid combination" not in str(error):
            raise
        # One of several rules that never matches must not end the others.
        return found, len(texts) == 1 and not without
    return found, True


def times_up_to(text: str, start: datetime, last: datetime) -> set[datetime]:
    """All times on the wall up to one."""
    try:
        return set(rrulestr(text, dtstart=start).between(start, last, inc=True))
    except ValueError as error:
        if "empty set" not in str(error):
            raise
        return set()


@contextmanager
def patience() -> Iterator[None]:
    """Raise `TooLong` when it is used up, in a line of dateutil; a callback of the collector would
    swallow it, and is let go on."""

    def over(_number: int, frame: FrameType | None) -> None:
        if frame is not None and "dateutil" in frame.f_code.co_filename:
            raise TooLong
        signal.setitimer(signal.ITIMER_VIRTUAL, AGAIN_S)

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def instants(walls: set[datetime], walked: list[Walked], *, fixed: bool) -> list[datetime]:
    """The instants of times on the wall among walked minutes; the first one is not judged."""
    by_day: dict[date, set[datetime]] = {}
    for wall in walls:
        by_day.setdefault(wall.date(), set()).add(wall)
    found, seen = [], walked[0].wall
    for (_, before), (utc, wall) in pairwise(walked):
        if wall in walls and (wall > seen or not fixed):
            found.append(utc)
        elif wall - before > MINUTE:
            gone = {each for each in walls if before < each < wall}
            lost = any(by_day[each.date()] <= gone for each in gone)
            if lost or (gone and fixed):
                found.append(utc)
        seen = max(seen, wall)
    return found


def wall_second(wall: datetime) -> int:
    """A time on the wall as seconds, as if it were UTC."""
    return int(wall.replace(tzinfo=UTC).timestamp())
