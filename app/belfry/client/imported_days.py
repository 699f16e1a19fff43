"""Days off from elsewhere: whole days of an iCalendar file, and public holidays of a country.

    file.ics  ── VEVENT: DTSTART to DTEND, RRULE, RDATE, EXDATE ──┐
    holidays  ── country, subdivision, years ─────────────────────┴─► dates, and where they are from

Both give dates once, when a calendar is set.  Workers keep the dates and ask no library, so another
version of one moves no day before somebody imports anew.  The libraries are extras of the package:
``ical`` and ``holidays``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from typing import Any, Final, NamedTuple

from belfry.schedules.calendars import MOST_DAYS
from belfry.schedules.rule import Rule, encode_rule
from belfry.schedules.triggers import trigger_of

Years = tuple[int, int]
# Days that one event may span, and dates of one recurrence that are looked at.
MOST_SPAN: Final = 366
MOST_DATES: Final = 20_000
DAY_MS: Final = 86_400_000
_DAY: Final = timedelta(days=1)


class NoDays(ValueError):
    """The source has no days that a calendar could have; the message says why."""


class ImportedDays(NamedTuple):
    """Dates as ISO 8601 writes them, where they are from, and how many events were no whole day."""

    days: list[str]
    source: str
    passed_over: int = 0


def days_of_ics(content: bytes, name: str, years: Years) -> ImportedDays:
    """The whole days of an iCalendar file, of the years from the first to the last.

    Events with a time of day are passed over, and so are cancelled ones.  Raises `NoDays`.
    """
    ical = _library("icalendar", "ical")
    try:
        parts = ical.Calendar.from_ical(content, multiple=True)
        found, passed_over = _days([e for part in parts for e in part.walk("VEVENT")], name, years)
    except NoDays:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise NoDays(f"{name} cannot be read as iCalendar: {str(error)[:200]}") from None
    return ImportedDays(_listed(found, years), f"{name}, {_span_of(years)}", passed_over)


def _days(events: list[Any], name: str, years: Years) -> tuple[set[date], int]:
    """The days of all events, and how many of these were passed over."""
    found: set[date] = set()
    passed_over = 0
    moved = _moved(events)
    for event in events:
        if str(event.get("STATUS", "")).upper() == "CANCELLED":
            continue
        begin = _moment(event, "DTSTART")
        if begin is None or isinstance(begin, datetime):
            passed_over += 1
            continue
        span, gone = _span(event, begin, name), moved.get(str(event.get("UID", "")), set())
        for first in _firsts(event, begin, (years, span), gone, name):
            found.update(first + number * _DAY for number in range(span))
            # Days of other years are among them still: those of a span may lie before and behind.
            _check(len(found), name, MOST_DAYS + MOST_SPAN)
    return found, passed_over


def days_of_country(country: str, subdivision: str | None, years: Years) -> ImportedDays:
    """The public holidays of a country by the library `holidays`; its version is in the source.

    `country` is a code of ISO 3166 such as DE, `subdivision` such as BY.  Raises `NoDays`.
    """
    library = _library("holidays", "holidays")
    try:
        found = library.country_holidays(
            country, subdiv=subdivision, years=range(years[0], years[1] + 1)
        )
    except (NotImplementedError, ValueError) as error:
        raise NoDays(
            f"The library holidays {library.__version__} knows none of that: {error}. Give a"
            " country such as DE, and a subdivision of it such as BY."
        ) from None
    place = country if subdivision is None else f"{country}-{subdivision}"
    source = f"holidays {library.__version__} {place} {_span_of(years)}"
    return ImportedDays(_listed(set(found), years), source)


def _library(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise NoDays(
            f"The library {name} is not installed: pip install 'belfry-scheduler[{extra}]'."
        ) from None


def _listed(found: set[date], years: Years) -> list[str]:
    kept = sorted(each.isoformat() for each in found if years[0] <= each.year <= years[1])
    if not kept:
        raise NoDays(f"There are no days off in {_span_of(years)}: give other years.")
    _check(len(kept), _span_of(years), MOST_DAYS)
    return kept


def _check(number: int, what: str, most: int) -> None:
    if number > most:
        raise NoDays(f"{what} has more than {MOST_DAYS} days off: give fewer years.")


def _span_of(years: Years) -> str:
    return f"{years[0]}-{years[1]}" if years[0] != years[1] else str(years[0])


def _moment(event: Any, name: str) -> date | datetime | None:
    found = getattr(event.get(name), "dt", None)
    return found if isinstance(found, date) else None


def _span(event: Any, begin: date, name: str) -> int:
    """How many days an event of whole days takes."""
    end, length = _moment(event, "DTEND"), getattr(event.get("DURATION"), "dt", None)
    days = 1
    if end is not None and not isinstance(end, datetime):
        days = (end - begin).days
    elif isinstance(length, timedelta):
        days = length.days
    if days > MOST_SPAN:
        raise NoDays(f"{name}: the event of {begin} takes {days} days: at most {MOST_SPAN}.")
    return max(1, days)


def _moved(events: list[Any]) -> dict[str, set[date]]:
    """By UID the dates of a recurrence that an event of their own stands for."""
    found: dict[str, set[date]] = {}
    for event in events:
        of = _moment(event, "RECURRENCE-ID")
        if of is not None and not isinstance(of, datetime):
            found.setdefault(str(event.get("UID", "")), set()).add(of)
    return found


def _firsts(
    event: Any, begin: date, bounds: tuple[Years, int], gone: set[date], name: str
) -> set[date]:
    """The first day of each occurrence of an event that may lie in the years."""
    if event.get("RECURRENCE-ID") is not None:
        return {begin}
    (first_year, last_year), span = bounds
    firsts = {begin, *_dates_in(event, "RDATE")}
    for rule in _several(event.get("RRULE")):
        text = rule.to_ical().decode()
        until = date(last_year, 12, 31)
        firsts |= set(_recurring(text, begin, (date(first_year, 1, 1) - span * _DAY, until), name))
    return firsts - set(_dates_in(event, "EXDATE")) - gone


def _recurring(text: str, begin: date, bounds: tuple[date, date], name: str) -> Iterator[date]:
    """Dates of a rule, as belfry reads it for schedules, from one day to another."""
    try:
        rule = Rule("RRULE", when=text, timezone="UTC", start_at=_ms(begin))
        trigger = trigger_of(encode_rule(rule))
        after: Callable[[int], int | None] = trigger.after_ms
        at_ms = trigger.first_ms(_ms(max(begin, bounds[0])) - 1)
    except (ValueError, AssertionError) as error:
        raise NoDays(f"{name}: the rule {text[:100]} cannot be read: {error}") from None
    for _ in range(MOST_DATES):
        if at_ms is None or at_ms > _ms(bounds[1]):
            return
        yield datetime.fromtimestamp(at_ms / 1000, UTC).date()
        at_ms = after(at_ms)
    raise NoDays(f"{name}: the rule {text[:100]} has too many occurrences: give fewer years.")


def _dates_in(event: Any, name: str) -> Iterator[date]:
    for each in _several(event.get(name)):
        for one in getattr(each, "dts", ()):
            if isinstance(one.dt, date):
                yield one.dt.date() if isinstance(one.dt, datetime) else one.dt


def _several(given: Any) -> list[Any]:
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def _ms(day: date) -> int:
    return (day - date(1970, 1, 1)).days * DAY_MS
