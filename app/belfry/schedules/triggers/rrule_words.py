"""A recurrence of RFC 5545 in English words.

    FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9                  Every month, on the last Friday, at hour 9
    FREQ=DAILY;INTERVAL=2;UNTIL=20270101T000000Z      Every 2 days, until 2027-01-01 00:00:00Z
    FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR               Every month, on day 13 of the month, only if
                                                      it is a Friday

Parts that choose days narrow one another, so all but the first of them are conditions.

For previews and for people: no instant depends on these words.  A list of more than eight items is
cut, and says how many others there are.  The functions for ordinals and lists serve cron as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from belfry.schedules.triggers.rrule_values import Moment, Recurrence, RuleText

_UNITS: Final = {
    "YEARLY": "year",
    "MONTHLY": "month",
    "WEEKLY": "week",
    "DAILY": "day",
    "HOURLY": "hour",
    "MINUTELY": "minute",
    "SECONDLY": "second",
}
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # the wall's
MOST_SHOWN: Final = 8


def words_of(text: RuleText) -> str:
    """All of a text; long lists are cut."""
    said = "; and ".join(_rule(each) for each in text.rules)
    if text.dates:
        said += f"{'; and ' if said else ''}at {_moments(text.dates)}"
    for each in text.without:
        said += f"; not {_rule(each)}"
    if text.without_dates:
        said += f"; not {'on' if text.without_dates[0].is_date else 'at'} "
        said += _moments(text.without_dates)
    return said[:1].upper() + said[1:]


def _rule(rule: Recurrence) -> str:
    unit = _UNITS[rule.freq]
    every = f"every {unit}" if rule.interval == 1 else f"every {rule.interval} {unit}s"
    return ", ".join((every, *_days(rule), *_times(rule), *_ends(rule)))


def _days(rule: Recurrence) -> Iterator[str]:
    if rule.months:
        yield f"in {listed_in_words(_MONTHS[each - 1] for each in rule.months)}"
    if rule.weeks:
        yield f"in week {listed_in_words(map(_counted, rule.weeks))}"
    parts = list(_day_parts(rule))
    if rule.weeks and not parts:
        # As python-dateutil reads it, where RFC 5545 leaves it open.
        yield "on each day of it" if len(rule.weeks) == 1 else "on each day of them"
    for number, (named, condition) in enumerate(parts):
        yield f"only if it is {condition}" if number else f"on {named}"


def _day_parts(rule: Recurrence) -> Iterator[tuple[str, str]]:
    """Each part that chooses single days: its words, and those where it is a condition."""
    for numbers, span in ((rule.year_days, "year"), (rule.month_days, "month")):
        if numbers:
            each = [_counted(number) for number in numbers]
            named, condition = listed_in_words(each), listed_in_words(each, "or")
            yield f"day {named} of the {span}", f"day {condition} of the {span}"
    if rule.days:
        named = listed_in_words(f"{_nth(nth)}{_DAYS[day]}" for nth, day in rule.days)
        either = (f"{_nth(nth) or 'a '}{_DAYS[day]}" for nth, day in rule.days)
        yield named, listed_in_words(either, "or")


def _times(rule: Recurrence) -> Iterator[str]:
    for name, numbers in (("hour", rule.hours), ("minute", rule.minutes), ("second", rule.seconds)):
        if numbers:
            yield f"at {name} {listed_in_words(map(str, numbers))}"
    if rule.positions:
        places = listed_in_words(ordinal(each) for each in rule.positions)
        yield f"only the {places} of each {_UNITS[rule.freq]}"


def _ends(rule: Recurrence) -> Iterator[str]:
    if rule.most is not None:
        yield f"{rule.most} in all"
    if rule.until is not None:
        yield f"until {_moment(rule.until)}"


def _nth(nth: int) -> str:
    return f"the {ordinal(nth)} " if nth else ""


def ordinal(nth: int) -> str:
    """``1st``, ``last``, ``2nd to last``."""
    if nth == -1:
        return "last"
    size = abs(nth)
    ending = (
        "th" if size % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(size % 10, "th")
    )
    return f"{size}{ending}{' to last' if nth < 0 else ''}"


def _counted(number: int) -> str:
    return str(number) if number > 0 else f"{ordinal(number)}"


def _moments(moments: tuple[Moment, ...]) -> str:
    return listed_in_words(_moment(each) for each in sorted(moments))


def _moment(moment: Moment) -> str:
    at = _EPOCH + timedelta(seconds=moment.second)
    return f"{at:%Y-%m-%d}" if moment.is_date else f"{at:%Y-%m-%d %H:%M:%S}{'Z' * moment.in_utc}"


def listed_in_words(items: Iterable[str], joined: str = "and") -> str:
    """``a, b and c``, or with another word than "and"; a long list is cut."""
    found = list(items)
    if not found:
        return ""
    if len(found) > MOST_SHOWN:
        return f"{', '.join(found[: MOST_SHOWN - 1])} {joined} {len(found) - MOST_SHOWN + 1} others"
    return f" {joined} ".join(filter(None, (", ".join(found[:-1]), found[-1])))
