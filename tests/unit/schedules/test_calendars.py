"""Calendars: what a request may say of days off, and what is answered about them."""

from __future__ import annotations

import json
from datetime import date, timedelta
from random import Random
from typing import Any

import pytest

from belfry.schedules.calendars import (
    MOST_BYTES,
    MOST_DAYS,
    MOST_SOURCE,
    Calendar,
    days_problem,
    name_problem,
    read_calendar,
)
from belfry.schedules.civil import day_number, weekday_of
from belfry.schedules.days_off import DaysOff, packed_days
from belfry.schedules.fields import EMPTY
from belfry.schedules.rejections import Rejection

CHRISTMAS = day_number(date(2026, 12, 25))


def refused(said: Any) -> str:
    """Why these days are refused, behind the name of the field."""
    found = read_calendar(said if isinstance(said, str) else json.dumps(said))
    assert isinstance(found, Rejection)
    assert found.code == "bad_calendar"
    return found.reason.removeprefix("days_off ")


def dates(number: int, step: int = 1) -> list[str]:
    return [(date(2026, 1, 1) + timedelta(days=n * step)).isoformat() for n in range(number)]


def asked(**fields: Any) -> Any:
    return {**EMPTY, "tenant": "demo", "schedule_id": "de", **fields}


@pytest.mark.parametrize(
    ("said", "calendar"),
    [
        ("{}", Calendar(b"\0")),
        ('{"days": null, "weekend": null, "source": null}', Calendar(b"\0")),
        ('{"days": ["2026-12-28", "2026-12-25", "2026-12-28"], "weekend": ["SUN", "SAT"]}',
         Calendar(bytes.fromhex("60cca20103"))),
        ('{"days": ["1970-01-01"], "source": "by hand"}', Calendar(b"\0\0", "by hand")),
    ],
)  # fmt: skip
def test_days_at_rest_are_sorted_and_each_is_there_once(said: str, calendar: Calendar) -> None:
    assert read_calendar(said) == calendar
    assert read_calendar(calendar.text()) == calendar


def test_a_calendar_says_no_more_than_it_has() -> None:
    assert Calendar(b"\0").text() == '{"days": []}'
    assert Calendar(b"\x60\0", "Köln").text() == (
        '{"days": ["1970-01-01"], "weekend": ["SAT", "SUN"], "source": "Köln"}'
    )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"days": "2026-12-25"},
         "has days '2026-12-25': give a list of at most 2000 dates."),
        ({"days": dates(MOST_DAYS + 1)}, "has 2001 days: give a list of at most 2000 dates."),
        ({"days": ["2026-12-25", 7]},
         "has the day 7: give dates such as 2026-12-25, from 1970 to 2200."),
        ({"days": ["20261225"]},
         "has the day '20261225': give dates such as 2026-12-25, from 1970 to 2200."),
        ({"days": ["1969-12-31"]},
         "has the day '1969-12-31': give dates such as 2026-12-25, from 1970 to 2200."),
        ({"days": ["2201-01-01"]},
         "has the day '2201-01-01': give dates such as 2026-12-25, from 1970 to 2200."),
        ({"weekend": "SAT"},
         "has the weekend 'SAT': give some of MON, TUE, WED, THU, FRI, SAT, SUN."),
        ({"weekend": ["SAT", "Sun"]},
         "has the weekend ['SAT', 'Sun']: give some of MON, TUE, WED, THU, FRI, SAT, SUN."),
        ({"source": 7}, "has the source 7: give up to 200 characters."),
        ({"source": "a\nb"}, "has the source 'a\\nb': give up to 200 characters."),
        ({"source": "x" * 201}, f"has the source '{'x' * 59}: give up to 200 characters."),
        ({"weekend": ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]},
         "has a weekend of all seven days, so no business day is left: leave one out."),
        ({"days": dates(367)}, "has more than 366 days off in a row: leave some out."),
        ("[]", ("'[]' is no JSON object: give one such as"
               ' {"days": ["2026-12-25"], "weekend": ["SAT", "SUN"]}.')),
        ('{"x": 1}', "has 'x', which is none of days, weekend, source."),
        (" " * (MOST_BYTES + 1), "has 60001 characters; at most 60000 are read."),
        ("", ("is missing: CALENDAR needs it, such as"
             ' {"days": ["2026-12-25"], "weekend": ["SAT", "SUN"]}.')),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_with_what_can(said: Any, why: str) -> None:
    assert refused(said) == why


@pytest.mark.parametrize(
    "said",
    [
        {"days": dates(MOST_DAYS, 2)},
        {"days": dates(366)},
        {"days": ["1970-01-01", "2200-12-31"]},
        {"weekend": ["MON", "TUE", "WED", "THU", "FRI", "SAT"]},
        {"source": "x" * MOST_SOURCE},
    ],
)
def test_the_bounds_are_allowed(said: Any) -> None:
    assert isinstance(read_calendar(json.dumps(said).ljust(MOST_BYTES)), Calendar)


def test_only_requests_about_calendars_may_have_days_and_need_a_name_of_one() -> None:
    assert days_problem(asked(action="CALENDAR", days_off="{}")) is None
    assert days_problem(asked(action="CALENDAR_REMOVE")) is None
    assert days_problem(asked(action="UPSERT", schedule_id="a b")) is None
    for action in ("CALENDAR", "CALENDAR_REMOVE"):
        found = days_problem(asked(action=action, schedule_id="a b", days_off="{}"))
        assert found == Rejection(
            "bad_calendar",
            "The name 'a b' of a calendar is not allowed: 1-100 of A-Z a-z 0-9 _ . -.",
        )
    for action in ("UPSERT", "CALENDAR_REMOVE"):
        found = days_problem(asked(action=action, days_off="{}"))
        assert found == Rejection("bad_calendar", f"days_off is for CALENDAR, and not {action}.")
    missing = days_problem(asked(action="CALENDAR"))
    assert missing is not None
    assert missing.code == "bad_calendar"


def test_a_schedule_names_a_calendar_that_may_be_one() -> None:
    assert name_problem(asked(action="UPSERT", calendar=None)) is None
    assert name_problem(asked(action="UPSERT", calendar="x" * 100)) is None
    assert name_problem(asked(action="CANCEL", calendar="a b")) is None
    found = name_problem(asked(action="CREATE", calendar="x" * 101))
    assert found == Rejection(
        "bad_calendar",
        f"calendar '{'x' * 60}' is not allowed: 1-100 of A-Z a-z 0-9 _ . -.",
    )


@pytest.mark.parametrize("seed", range(8))
def test_days_off_are_what_a_look_at_each_day_says(seed: int) -> None:
    random = Random(seed)
    first = CHRISTMAS - random.randrange(7)
    days = {first + random.randrange(40) for _ in range(random.randrange(30))}
    weekend = {*random.sample(range(7), random.randrange(4))} if seed else set()
    calendar = DaysOff(packed_days(days, weekend))
    off = [day in days or weekday_of(day) in weekend for day in range(first - 90, first + 180)]
    runs = "".join("x" if each else " " for each in off).split()
    assert calendar.longest() == max(map(len, runs), default=0)
    for day in range(first - 20, first + 60):
        at = day - first + 90
        assert calendar.off(day) is off[at]
        assert calendar.business_from(day) == day + off[at:].index(False)
        assert calendar.business_to(day) == day - off[at::-1].index(False)
        later = True in off[at:]
        assert calendar.off_from(day) == (day + off[at:].index(True) if later else None)
        for until in range(day - 1, day + 9):
            named = sum(day <= each <= until for each in days)
            assert calendar.counted(day, until) == named
