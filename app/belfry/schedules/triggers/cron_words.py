"""A plain cron expression in English words.

    0 9 15W,L * *        At 09:00, on the last day and the weekday nearest the 15th of the month
    0 9 * * MON#2,5L     At 09:00, on the last Friday and the 2nd Monday of the month
    0 9 */15 * MON       At 09:00, on the 1st, the 16th and the 31st of the month, only if it is a
                         Monday
    */40 * * * *         At 0 and 40 minutes past the hour

cron-descriptor has words for times, months and years, and for days that are numbers.  Days that are
more than that are told here, for in a list it repeats their signs or loses them, and it takes all
days of both sorts for alternatives.

A step counts anew in each hour, day or month.  So "every 40 minutes" would be wrong of */40, which
is due after 40 minutes and after 20.  Steps that do not go round evenly are told by their numbers.

The words are for previews and for people; no instant depends on them.  Where cron-descriptor cannot
tell an expression, the words are the expression itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Final

from belfry.schedules.triggers.cron_spelling import YEARS
from belfry.schedules.triggers.cron_text import CronFields, MonthDays, Weekdays, read_cron
from belfry.schedules.triggers.rrule_words import MOST_SHOWN, listed_in_words, ordinal

_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_SPECIAL: Final = re.compile(r"L|W(?!ED)|#|/")
# From so many days one after another on, the first and the last are named.
_RUN: Final = 3
LONGEST_MONTH: Final = 31
# Values of the fields in which a step may go round evenly: seconds, minutes, hours, months.
_ROUND: Final = (60, 60, 24, 0, 12, 0, 0)


@lru_cache(maxsize=1_024)
def words_of(text: str) -> str:
    """The words of a normalized expression that can be read."""
    words = text.split()
    has_years = len(words) == 7
    # The fields of days stand around the one of months, which is the last but for years.
    month = len(words) - 2 - has_years
    day, weekday = words[month - 1], words[month + 1]
    if _are_plain(day, weekday):
        return _described(text)
    said = list(_days(day, read_cron(text)))
    # Months and years follow the days, as cron-descriptor has them.
    time = _described(" ".join((*words[: month - 1], "*", "*", "*")))
    words[month - 1] = words[month + 1] = "*"
    bounds = _described(" ".join(words)).removeprefix(time)
    return ", ".join((time, *said)) + bounds


def _are_plain(day: str, weekday: str) -> bool:
    """Whether cron-descriptor has right words for both fields of days."""
    return "*" in (day, weekday) and not _SPECIAL.search(day + weekday)


def _days(day: str, fields: CronFields) -> Iterator[str]:
    """The days of both sorts; where both have to hold, the weekday is a condition."""
    any_day = len(fields.days.days) == LONGEST_MONTH
    any_weekday = len(fields.weekdays.each) == len(_DAYS)
    if fields.either_day and (any_day or any_weekday):
        return
    if not any_day:
        days = _stepped(day, fields) or listed_in_words(_month_days(fields.days))
        yield f"on {days} of the month"
    if any_weekday:
        return
    if any_day:
        yield f"on {_weekdays(fields.weekdays, 'every', 'and')}"
    elif fields.either_day:
        yield f"or on {_weekdays(fields.weekdays, 'every', 'and')}"
    else:
        yield f"only if it is {_weekdays(fields.weekdays, 'a', 'or')}"


def _stepped(day: str, fields: CronFields) -> str:
    """A single step with more days than a list has room for: ``every 2nd day from the 1st on``."""
    _, slash, step = day.partition("/")
    days = sorted(fields.days.days)
    if not slash or "," in day or step == "1" or len(days) <= MOST_SHOWN:
        return ""
    return f"every {ordinal(int(step))} day from the {ordinal(days[0])} to the {ordinal(days[-1])}"


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


def _weekdays(weekdays: Weekdays, each_one: str, joined: str) -> str:
    """Weekdays: ``every Monday and the last Friday``, or ``a Monday or the last Friday``."""
    each = [f"{each_one} {_DAYS[day]}" for day in sorted(weekdays.each)]
    placed = [f"the last {_DAYS[day]}" for day in sorted(weekdays.last)]
    placed += [f"the {ordinal(nth)} {_DAYS[day]}" for day, nth in sorted(weekdays.nth)]
    of_month = f"{_joined(placed, joined)} of the month" if placed else ""
    return f" {joined} ".join(filter(None, (_joined(each, joined), of_month)))


def _joined(items: list[str], word: str) -> str:
    return f" {word} ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


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
    # It does not know each spelling of a list; the numbers themselves it knows.
    for spelling in (_numbers(text), _numbers(text, lists=True)):
        with suppress(Exception):
            return str(get_description(spelling, options))
    return f"By the expression {text}"


def _numbers(text: str, *, lists: bool = False) -> str:
    """The same expression with numbers for steps that are not even, and for all `lists`."""
    fields, words = read_cron(text), text.split()
    years = fields.years if len(words) == 7 else frozenset[int]()
    numbers = (fields.seconds, fields.minutes, fields.hours, fields.days.days, fields.months,
               fields.weekdays.each, years)  # fmt: skip
    first = 0 if len(words) > 5 else 1
    return " ".join(
        _spelled(word, sorted(each), most, lists)
        for word, each, most in zip(words, numbers[first:], _ROUND[first:], strict=False)
    )


def _spelled(word: str, numbers: list[int], most: int, lists: bool) -> str:
    """One field: as it is where its words are right, else its numbers."""
    start, slash, step = word.partition("/")
    listed = ",".join(map(str, numbers))
    if "*" in word.split(","):
        return "*"
    if "," in word:
        return listed if listed and (lists or slash) else word
    if not listed or not slash or step == "1":
        return word
    if len(numbers) == 1:
        return listed
    if "-" in start or len(numbers) * int(step) == most:
        return word
    if numbers[0] in YEARS:
        return word if start == "*" else f"{start}-{YEARS[-1]}/{step}"
    return listed
