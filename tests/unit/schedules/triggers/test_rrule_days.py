"""Years without a day are searched once, and what was searched changes no answer."""

from __future__ import annotations

from random import Random
from time import process_time
from typing import Any, Final

import pytest

from belfry.schedules.checks import RequestChecks
from belfry.schedules.civil import DAY_S, year_at
from belfry.schedules.fields import EMPTY
from belfry.schedules.instants import parse_instant
from belfry.schedules.triggers.rrule_choice import choice_of
from belfry.schedules.triggers.rrule_days import YearlyDays
from belfry.schedules.triggers.rrule_parts import read_recurrence
from belfry.schedules.triggers.rrule_walls import END_DAY, RuleWalls, Walls

NOW: Final = parse_instant("2027-01-15T08:00:00Z")
START_DAY: Final = year_at(2000).first


def days(text: str) -> YearlyDays:
    return YearlyDays(choice_of(read_recurrence(text), START_DAY))


@pytest.mark.parametrize(
    "text",
    [
        # Among the years that are looked at, 9600 is the last with such a day.
        "FREQ=YEARLY;INTERVAL=100;BYMONTH=2;BYMONTHDAY=29",
        "FREQ=YEARLY;INTERVAL=7;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
        "FREQ=MONTHLY;INTERVAL=1000;BYMONTHDAY=29;BYMONTH=2",
        "FREQ=HOURLY;BYMONTH=12;BYYEARDAY=78",
        "FREQ=YEARLY;BYWEEKNO=53;BYDAY=SU",
    ],
)
def test_what_was_searched_in_vain_changes_no_answer(text: str) -> None:
    chance, used = Random(text), days(text)
    first, last = year_at(9_300).first, year_at(9_990).first
    for _ in range(200):
        day = chance.randrange(first, last)
        assert used.next_day(day) == days(text).next_day(day), (text, day)
        found = used.next_day(year_at(9_300).first)
        if found is not None:
            # Right behind a day of the rule, and on it.
            assert used.next_day(found + 1) == days(text).next_day(found + 1)
            assert used.next_day(found) == found
            between = chance.randrange(day, max(day, used.next_day(day) or day) + 1)
            assert used.next_day(between) == days(text).next_day(between)


@pytest.mark.parametrize(
    "text",
    [
        # The next day is a hundred years away, and each year on the way has a page of its own.
        "FREQ=DAILY;INTERVAL=36500;BYMONTH=1,2,3,4,5,6,7,8,9,10,11,12",
        "FREQ=WEEKLY;INTERVAL=5000;BYMONTH=1,6",
        "FREQ=MONTHLY;INTERVAL=700;BYMONTHDAY=31",
    ],
)
def test_another_owner_that_was_asked_nothing_yet_answers_likewise(text: str) -> None:
    used, start = days(text), START_DAY + 1
    answers = [used.next_day(start) for _ in range(5)]
    assert answers == [days(text).next_day(start)] * 5
    numbered = [used.nth(1, start) for _ in range(5)]
    assert numbered == [days(text).nth(1, start)] * 5


@pytest.mark.parametrize(
    "never",
    ["FREQ=SECONDLY;BYMONTH=12;BYYEARDAY=78;BYMINUTE=6,54", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"],
)
def test_a_rule_that_never_matches_costs_little_beside_another(never: str) -> None:
    """Both are asked of each day of the first, whose third time from the end does not exist."""
    text = f"FREQ=DAILY;INTERVAL=5;BYHOUR=7,16;BYSETPOS=-3 RRULE:{never}"
    named = {"tenant": "demo", "schedule_id": "a", "kind": "RRULE", "start_at": NOW}
    request: Any = {**EMPTY, **named, "rrule": text}
    began = process_time()
    found = RequestChecks().problem(request, NOW)
    assert process_time() - began < 1.0
    assert found is not None
    assert found.code == "never_fires"


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=DAILY",
        "FREQ=DAILY;INTERVAL=3;BYHOUR=9,17",
        "FREQ=DAILY;BYHOUR=9,17;COUNT=6",
        "FREQ=WEEKLY;BYDAY=MO,FR;COUNT=5",
        "FREQ=MONTHLY;BYDAY=-1FR;UNTIL=20270101T100000Z",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
    ],
)
def test_the_short_way_to_the_next_time_is_that_of_any_day(text: str) -> None:
    """Also at DTSTART and at the end of COUNT or UNTIL, where days are cut."""
    start = 20_500 * DAY_S + 12 * 3_600
    rule = read_recurrence(text)
    until = None if rule.until is None else rule.until.second
    walls = RuleWalls(rule, start, until)
    random = Random(5545)
    near = (-DAY_S, -1, 0, 1, 10 * 3_600, DAY_S, 9 * DAY_S)
    asked = [start + each for each in near]
    asked += [walls._last_day * DAY_S + each for each in near if walls._last_day < END_DAY]
    asked += [start + random.randrange(-2 * DAY_S, 900 * DAY_S) for _ in range(300)]
    assert [walls.next_wall(each) for each in asked] == [
        Walls.next_wall(walls, each) for each in asked
    ]
