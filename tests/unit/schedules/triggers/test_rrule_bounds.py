"""How far a rule is looked at, and where its years, its COUNT and its days in a gap end."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.schedules.civil import DAY_S, Year, year_at
from belfry.schedules.instants import parse_instant
from belfry.schedules.triggers import trigger_by
from belfry.schedules.triggers.rrule_choice import choice_of, chosen
from belfry.schedules.triggers.rrule_cost import looked_at
from belfry.schedules.triggers.rrule_days import (
    LOOKS_OF_PAGES,
    MOST_PAGES,
    SORTS_OF_YEARS,
    YearlyDays,
)
from belfry.schedules.triggers.rrule_parts import read_recurrence
from belfry.schedules.triggers.rrule_walls import RuleWalls
from belfry.schedules.triggers.rule import Rule

# 1 January 2000, a Saturday.
START: Final = year_at(2000).first
NEVER: Final = "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"
EACH_CENTURY: Final = "FREQ=YEARLY;INTERVAL=100;BYMONTH=2;BYMONTHDAY=29"


class Watched(YearlyDays):
    """Days that count how often a page is looked at."""

    looked = 0

    def page(self, year: Year) -> object:  # type: ignore[override]  # as it is
        """The same page."""
        self.looked += 1
        return super().page(year)


def days(text: str) -> Watched:
    return Watched(choice_of(read_recurrence(text), START))


def sorts_of_years(freq: str, interval: int) -> tuple[int, int]:
    """Of how many sorts the years are that a rule looks at: by their calendar and by INTERVAL, and
    by INTERVAL alone.
    """
    found, places = set(), set()
    for number in range(2_000, 9_990, interval if freq == "YEARLY" else 1):
        year = year_at(number)
        since = {
            "YEARLY": 0,
            "MONTHLY": (number - 2_000) * 12 % interval,
            # The week of the start began on a Monday, five days before it.
            "WEEKLY": (year.first - START + 5) % (7 * interval),
            "DAILY": (year.first - START) % interval,
        }[freq]
        found.add((year.weekday, year.leap, year_at(number - 1).leap, since))
        places.add(since)
    return len(found), len(places)


@pytest.mark.parametrize("week", [-53, -52, -1, 1, 52, 53])
@pytest.mark.parametrize("week_start", ["MO", "TH"])
def test_a_page_has_the_days_of_each_year_that_it_stands_for(week: int, week_start: str) -> None:
    """The last days of 2019 are of the first of 53 weeks of 2020, and those of 2030 of 52."""
    text = read_recurrence(f"FREQ=YEARLY;BYWEEKNO={week};WKST={week_start}")
    choice = choice_of(text, START)
    found = YearlyDays(choice)
    for number in range(2_000, 2_100):
        year = year_at(number)
        assert list(found.page(year)) == sorted(chosen(choice, year)), number


def test_the_days_of_a_week_are_the_same_whatever_was_asked_before() -> None:
    text = "FREQ=YEARLY;BYWEEKNO=-53;BYDAY=TU"
    asked, late = days(text), days(text)
    assert asked.next_day(year_at(2_019).first) == year_at(2_020).first - 1
    assert asked.next_day(year_at(2_030).first) == late.next_day(year_at(2_030).first)


@pytest.mark.parametrize(
    ("freq", "interval"),
    [("DAILY", n) for n in (1, 2, 3, 7, 14, 21)]
    + [("WEEKLY", n) for n in (1, 2, 3, 4)]
    + [("MONTHLY", n) for n in (1, 2, 3, 5, 12, 24, 36)]
    + [("YEARLY", n) for n in (1, 7)],
)
def test_what_was_searched_is_remembered_where_one_answer_may_need_all_sorts_of_years(
    freq: str, interval: int
) -> None:
    choice = choice_of(read_recurrence(f"FREQ={freq};INTERVAL={interval};BYMONTH=2"), START)
    found = Watched(choice._replace(month_days=(30,)))
    sorts, places = sorts_of_years(freq, interval)
    assert found.next_day(START) is None
    looked = found.looked
    assert looked > 0
    assert found.next_day(START) is None
    assert (found.looked == looked) is (sorts <= MOST_PAGES)
    # How far a time is looked for is another matter.
    assert found.looks == (0 if places * SORTS_OF_YEARS <= MOST_PAGES else LOOKS_OF_PAGES)


def test_years_without_a_day_are_searched_once() -> None:
    found = days(NEVER)
    assert found.next_day(START) is None
    looked = found.looked
    assert looked > 0
    for day in range(START, START + 4_000):
        assert found.next_day(day) is None
    assert found.next_day(START) is None
    assert found.looked == looked


def test_behind_its_last_day_nothing_is_searched_and_before_it_all_is_found() -> None:
    last = days(EACH_CENTURY).next_day(year_at(9_501).first)
    found = days(EACH_CENTURY)
    assert last is not None
    assert year_at(9_600).first < last < year_at(9_601).first
    assert found.next_day(last + 1) is None
    looked = found.looked
    assert found.next_day(year_at(9_601).first) is None
    assert found.next_day(year_at(9_800).first) is None
    assert found.looked == looked
    assert found.next_day(last) == last
    assert found.next_day(year_at(9_600).first) == last
    assert found.next_day(year_at(9_201).first) == last
    assert found.nth(0, year_at(9_201).first) == last


def test_what_is_too_far_from_one_day_is_found_from_a_later_one() -> None:
    found = days("FREQ=DAILY;INTERVAL=36500;BYMONTH=1,2,3,4,5,6,7,8,9,10,11,12")
    assert found.next_day(START + 1) is None
    assert found.next_day(START + 36_499) == START + 36_500


@pytest.mark.parametrize(
    ("text", "most_days"),
    [
        ("FREQ=HOURLY;BYMINUTE=7", 8_000),
        # Sixty places are looked at for the times of a day, as in eight days of other rules.
        ("FREQ=SECONDLY;INTERVAL=257;BYHOUR=9", 1_000),
        # A page for each of many sorts of years.
        ("FREQ=WEEKLY;INTERVAL=5;BYMONTH=1,2,3;BYDAY=MO;BYSETPOS=1", 500),
        # The weekday of a year says where its first week begins, and would do for that.
        ("FREQ=WEEKLY;BYMONTH=1,2,3,4,5,6,7,8,9,10,11,12;BYDAY=SU;BYSETPOS=1", 500),
    ],
)
def test_the_end_of_count_is_looked_for_over_so_many_days_behind_the_start(
    text: str, most_days: int
) -> None:
    endless = RuleWalls(read_recurrence(text), START * DAY_S, None)
    day: int | None = START
    for _ in range(most_days):
        assert day is not None
        day = endless.next_day(day + 1)
    assert day is not None
    count = endless.count_days(START, day + 1)
    within = RuleWalls(read_recurrence(f"{text};COUNT={count}"), START * DAY_S, None)
    assert within.ends_in_sight
    assert within.next_wall(day * DAY_S) is not None
    assert within.next_wall((day + 1) * DAY_S) is None
    beyond = RuleWalls(read_recurrence(f"{text};COUNT={count + 1}"), START * DAY_S, None)
    assert not beyond.ends_in_sight


def test_times_of_a_day_are_remembered_where_its_days_are_of_64_sorts_and_not_of_67() -> None:
    assert looked_at(read_recurrence("FREQ=MINUTELY;INTERVAL=2048;BYHOUR=9")) == 0
    assert looked_at(read_recurrence("FREQ=MINUTELY;INTERVAL=67;BYHOUR=9")) == 22


@pytest.mark.parametrize(
    ("hours", "on_that_day"),
    [
        # All of its times are in the hour that is left out, so one fires at the end of it.
        ("2", ["01:00"]),
        # The other one is behind that hour, and fires as it is.
        ("2,3", ["01:30"]),
        ("1,2", ["00:30"]),
    ],
)
def test_a_cadence_fires_at_the_end_of_a_gap_where_the_gap_has_all_of_its_day(
    hours: str, on_that_day: list[str]
) -> None:
    text = f"FREQ=HOURLY;BYHOUR={hours};BYMINUTE=30"
    start_ms = parse_instant("2027-03-01T00:00:00Z")
    found = trigger_by(Rule("RRULE", text, timezone="Europe/Paris", start_at=start_ms))
    midnight_ms = parse_instant("2027-03-28T00:00:00Z")
    shown, due_ms = list[str](), found.after_ms(midnight_ms - 1)
    while due_ms is not None and due_ms < midnight_ms + 12 * 3_600_000:
        minutes = (due_ms - midnight_ms) // 60_000
        shown.append(f"{minutes // 60:02}:{minutes % 60:02}")
        due_ms = found.after_ms(due_ms)
    assert shown == on_that_day
