"""Days off that come from an iCalendar file, or from the library of holidays."""

from __future__ import annotations

import sys
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.client.imported_days import NoDays, days_of_country, days_of_ics

YEARS = (2026, 2028)


def ics(*events: str) -> bytes:
    """A file with these events, each of lines that are parted by blanks."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:test"]
    for each in events:
        lines += ["BEGIN:VEVENT", *each.split(), "END:VEVENT"]
    return "\r\n".join([*lines, "END:VCALENDAR", ""]).encode()


@pytest.mark.parametrize(
    ("event", "days"),
    [
        ("DTSTART;VALUE=DATE:20261225", ["2026-12-25"]),
        ("DTSTART;VALUE=DATE:20261225 DTEND;VALUE=DATE:20261226", ["2026-12-25"]),
        (
            "DTSTART;VALUE=DATE:20261231 DTEND;VALUE=DATE:20270102",
            ["2026-12-31", "2027-01-01"],
        ),
        ("DTSTART;VALUE=DATE:20261225 DURATION:P2D", ["2026-12-25", "2026-12-26"]),
        (
            "DTSTART;VALUE=DATE:20201225 RRULE:FREQ=YEARLY EXDATE;VALUE=DATE:20271225",
            ["2026-12-25", "2028-12-25"],
        ),
        # It begins in the year before.
        (
            "DTSTART;VALUE=DATE:20241231 DURATION:P2D RRULE:FREQ=YEARLY;COUNT=2",
            ["2026-01-01"],
        ),
        (
            "DTSTART;VALUE=DATE:20270501 RDATE;VALUE=DATE:20270601,20290601",
            ["2027-05-01", "2027-06-01"],
        ),
        (
            "DTSTART;VALUE=DATE:20270101 RRULE:FREQ=MONTHLY;BYDAY=-1FR;UNTIL=20270228",
            ["2027-01-01", "2027-01-29", "2027-02-26"],
        ),
    ],
)
def test_whole_days_of_the_years_are_off(event: str, days: list[str]) -> None:
    found = days_of_ics(ics(f"UID:1 {event}"), "a.ics", YEARS)
    assert (found.days, found.source, found.passed_over) == (days, "a.ics, 2026-2028", 0)


def test_an_occurrence_that_was_moved_is_off_where_it_was_moved_to() -> None:
    found = days_of_ics(
        ics(
            "UID:1 DTSTART;VALUE=DATE:20261225 RRULE:FREQ=YEARLY",
            "UID:1 RECURRENCE-ID;VALUE=DATE:20271225 DTSTART;VALUE=DATE:20271224",
            "UID:2 RECURRENCE-ID;VALUE=DATE:20281225 DTSTART;VALUE=DATE:20281231",
        ),
        "a.ics",
        YEARS,
    )
    assert found.days == ["2026-12-25", "2027-12-24", "2028-12-25", "2028-12-31"]


def test_what_is_no_whole_day_or_was_cancelled_is_passed_over() -> None:
    found = days_of_ics(
        ics(
            "UID:1 DTSTART;VALUE=DATE:20270601",
            "UID:2 DTSTART:20270602T090000Z",
            "UID:3",
            "UID:4 STATUS:CANCELLED DTSTART;VALUE=DATE:20270603",
        ),
        "a.ics",
        YEARS,
    )
    assert (found.days, found.passed_over) == (["2027-06-01"], 2)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no days off in 2026-2028"),
        (b"hello", "cannot be read as iCalendar"),
        (ics("DTSTART;VALUE=DATE:2027"), "cannot be read as iCalendar"),
        (ics("DTSTART;VALUE=DATE:20250101"), "no days off in 2026-2028"),
        (ics("DTSTART;VALUE=DATE:20260101 DTEND;VALUE=DATE:20280101"), "takes 730 days"),
        (ics("DTSTART;VALUE=DATE:20260101 RRULE:FREQ=DAILY;BYDAY=XX"), "a.ics"),
        (ics("DTSTART;VALUE=DATE:19700101 RRULE:FREQ=SECONDLY"), "a.ics"),
        (ics(*[f"UID:{n} DTSTART;VALUE=DATE:20260101 DURATION:P366D" for n in range(3)]), ""),
    ],
)
def test_what_cannot_be_a_calendar_is_told(content: bytes, why: str) -> None:
    if not why:
        assert len(days_of_ics(content, "a.ics", YEARS).days) == 366
        return
    with pytest.raises(NoDays, match=why):
        days_of_ics(content, "a.ics", YEARS)


def test_more_days_than_a_calendar_may_have_are_refused() -> None:
    with pytest.raises(NoDays, match="more than 2000 days off: give fewer years"):
        days_of_ics(ics("DTSTART;VALUE=DATE:20260101 RRULE:FREQ=DAILY"), "a.ics", (2026, 2040))


class Library(SimpleNamespace):
    """The library `holidays`, as far as it is asked."""

    def country_holidays(self, country: str, subdiv: str | None, years: range) -> Any:
        if country != "DE":
            raise NotImplementedError(f"Country {country} not available")
        return {date(year, 12, 26 if subdiv else 25): "Christmas" for year in years}


def test_holidays_come_with_the_version_of_their_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "holidays", Library(__version__="0.109"))
    found = days_of_country("DE", "BY", (2026, 2027))
    assert (found.days, found.source) == (
        ["2026-12-26", "2027-12-26"],
        "holidays 0.109 DE-BY 2026-2027",
    )
    assert days_of_country("DE", None, (2027, 2027)).source == "holidays 0.109 DE 2027"
    with pytest.raises(NoDays, match=r"holidays 0\.109 knows none of that: Country XX"):
        days_of_country("XX", None, YEARS)


@pytest.mark.parametrize(("name", "extra"), [("holidays", "holidays"), ("icalendar", "ical")])
def test_a_library_that_is_missing_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, name: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NoDays, match=rf"pip install 'belfry-scheduler\[{extra}\]'"):
        days_of_ics(b"", "a.ics", YEARS) if extra == "ical" else days_of_country("DE", None, YEARS)
