"""A plain cron expression in English words.

    0 9 15W,L * *        At 09:00, on the last day and the weekday nearest the 15th of the month
    0 9 * * MON#2,5L     At 09:00, on the last Friday and the 2nd Monday of the month

cron-descriptor has words for times, months and years, and for days that are numbers.  Days that are
more than that are told here, for in a list it repeats their signs or loses them.

The words are for previews and for people; no instant depends on them.  Where cron-descriptor cannot
tell an expression, the words are the expression itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Final

from belfry.schedules.triggers.cron_text import MonthDays, Weekdays, read_cron
from belfry.schedules.triggers.rrule_words import listed_in_words, ordinal

_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_SPECIAL: Final = re.compile(r"L|W(?!ED)|#")
# From so many days one after another on, the first and the last are named.
_RUN: Final = 3


@lru_cache(maxsize=1_024)
def words_of(text: str) -> str:
    """The words of a normalized expression that can be read."""
    words = text.split()
    has_years = len(words) == 7
    # The fields of days stand around the one of months, which is the last but for years.
    month = len(words) - 2 - has_years
    day, weekday = words[month - 1], words[month + 1]
    if not (_SPECIAL.search(day) or _SPECIAL.search(weekday)):
        return _described(text)
    fields = read_cron(text)
    said = [] if day == "*" else [f"on {listed_in_words(_month_days(fields.days))} of the month"]
    if weekday != "*":
        said.append(f"{'or ' * fields.either_day}on {_weekdays(fields.weekdays)}")
    # Months and years follow the days, as cron-descriptor has them.
    time = _described(" ".join((*words[: month - 1], "*", "*", "*")))
    words[month - 1] = words[month + 1] = "*"
    bounds = _described(" ".join(words)).removeprefix(time)
    return ", ".join((time, *said)) + bounds


def _month_days(days: MonthDays) -> Iterator[str]:
    yield from _runs(sorted(days.days))
    for before in sorted(days.from_end):
        yield _from_end(before)
    for day in sorted(days.nearest):
        yield f"the weekday nearest the {ordinal(day)}"
    for before in sorted(days.nearest_from_end):
        yield f"the weekday nearest {_from_end(before)}" if before else "the last weekday"


def _from_end(before: int) -> str:
    return f"the {ordinal(-1 - before)} day"


def _weekdays(weekdays: Weekdays) -> str:
    each = listed_in_words(f"every {_DAYS[day]}" for day in sorted(weekdays.each))
    placed = [f"the last {_DAYS[day]}" for day in sorted(weekdays.last)]
    placed += [f"the {ordinal(nth)} {_DAYS[day]}" for day, nth in sorted(weekdays.nth)]
    of_month = f"{listed_in_words(iter(placed))} of the month" if placed else ""
    return " and ".join(filter(None, (each, of_month)))


def _runs(days: list[int]) -> Iterator[str]:
    """Days one after another as their first and last."""
    while days:
        size = 1
        while size < len(days) and days[size] == days[0] + size:
            size += 1
        if size < _RUN:
            size = 1
            yield f"the {ordinal(days[0])}"
        else:
            yield f"the {ordinal(days[0])} to the {ordinal(days[size - 1])}"
        days = days[size:]


def _described(text: str) -> str:
    # The words are for people, and their package takes long to import.
    from cron_descriptor import Options, get_description

    options = Options()
    options.use_24hour_time_format = True
    with suppress(Exception):
        return str(get_description(_without_steps_in_lists(text), options))
    return f"By the expression {text}"


def _without_steps_in_lists(text: str) -> str:
    """The same expression with numbers in such a list, whose words would be those of another one.

    cron-descriptor says of ``1,2-6/2`` as weekdays "every 2 weeks".
    """
    fields, words = read_cron(text), text.split()
    years = fields.years if len(words) == 7 else frozenset[int]()
    numbers = (fields.seconds, fields.minutes, fields.hours, fields.days.days, fields.months,
               fields.weekdays.each, years)  # fmt: skip
    first = 0 if len(words) > 5 else 1
    return " ".join(
        ",".join(map(str, sorted(each))) if "," in word and "/" in word else word
        for word, each in zip(words, numbers[first:], strict=False)
    )
