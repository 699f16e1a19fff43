"""Cron expressions of every sort: the days that they name, and texts that are no expression.

Two oracles: the walk of `cron_oracle`, which knows all of the syntax, and cronsim's own iteration
for what cronsim knows.
"""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from itertools import islice

from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from belfry.schedules.civil import DAY_S
from belfry.schedules.triggers.clock import Clock
from belfry.schedules.triggers.cron_spelling import is_hashed, normalized
from belfry.schedules.triggers.cron_text import CronMistake, interval_of, read_cron
from belfry.schedules.triggers.cron_words import words_of
from belfry.schedules.triggers.expression import Expression
from belfry.schedules.triggers.zones import zone
from tests.property.cron_oracle import EPOCH, MONTHS, WEEKDAYS, read

EXAMPLES = 1_000 if os.environ.get("ORACLE") == "all" else 200
SIGNS = [*"0123456789*/,-LWH#@? ()", "MON", "JAN", "FRIL", "@every ", "15W", "L-", "H(", "2040"]


def number(low: int, high: int) -> st.SearchStrategy[str]:
    return st.integers(low, high).map(str)


def plain(low: int, high: int, names: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Numbers and names, ranges, steps."""
    one = number(low, high)
    if names:
        one = st.one_of(one, st.sampled_from(names))
    pairs = st.lists(st.integers(low, high), min_size=2, max_size=2, unique=True).map(sorted)
    ranges = pairs.map(lambda pair: f"{pair[0]}-{pair[1]}")
    steps = st.tuples(st.one_of(st.just("*"), ranges, number(low, high)), number(1, high))
    return st.one_of(one, ranges, steps.map("/".join))


def listed(*items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.just("*"), st.lists(st.one_of(*items), min_size=1, max_size=3).map(",".join)
    )


PLACED = st.one_of(
    number(0, 7).map("{}L".format),
    st.tuples(number(0, 7), number(1, 5)).map("#".join),
)
MORE_DAYS = st.one_of(
    number(1, 31).map("{}W".format),
    number(0, 30).map("L-{}".format),
    number(0, 30).map("L-{}W".format),
)
LAST = st.sampled_from(["L", "LW"])
TIMES = (listed(plain(0, 59, ())), listed(plain(0, 23, ())))
KNOWN = st.tuples(
    *TIMES,
    listed(plain(1, 31, ()), LAST),
    listed(plain(1, 12, MONTHS)),
    listed(plain(0, 7, WEEKDAYS), PLACED),
).map(" ".join)
ALL = st.tuples(
    st.just("0"),
    *TIMES,
    listed(plain(1, 31, ()), LAST, MORE_DAYS),
    listed(plain(1, 12, MONTHS)),
    listed(plain(0, 7, WEEKDAYS), PLACED, st.sampled_from(WEEKDAYS).map("{}L".format)),
    st.one_of(st.just("*"), plain(2020, 2090, ())),
).map(" ".join)
DATES = st.dates(date(2019, 1, 1), date(2100, 1, 1))


def readable(text: str) -> Expression:
    """The expression; a day that no month has is none."""
    try:
        return Expression(text)
    except CronMistake as mistake:
        assume("no month that it names" not in str(mistake))
        raise


@settings(max_examples=EXAMPLES)
@given(ALL, DATES)
def test_the_days_are_those_of_the_oracle(text: str, first: date) -> None:
    found, meaning = readable(text), read(text)
    start = (first - EPOCH).days
    days = [start + n for n in range(400) if meaning.on_day(first + timedelta(days=n))]
    assert [day for day in range(start, start + 400) if found.on_day(day)] == days, text
    per_day = len(meaning.minutes)
    assert found.count(start * DAY_S, (start + 400) * DAY_S) == len(days) * per_day
    walls = [found.next_wall(day * DAY_S) for day in range(start, days[-1] + 1 if days else start)]
    assert [wall // DAY_S for wall in walls if wall is not None] == [
        next(each for each in days if each >= day) for day in range(start, start + len(walls))
    ]
    if days:
        assert found.last_wall((start + 400) * DAY_S - 1, start * DAY_S) == (
            days[-1] * DAY_S + max(meaning.minutes) * 60
        )


@settings(max_examples=EXAMPLES)
@given(KNOWN, DATES)
def test_what_cronsim_knows_is_as_cronsim_has_it(text: str, first: date) -> None:
    found = readable(text)
    start = datetime(first.year, first.month, first.day, tzinfo=UTC)
    second = round(start.timestamp())
    assume(found.next_wall(second + 1) is not None)
    clock = Clock(found, zone("UTC"))
    instants: list[int | None] = []
    at: int | None = second
    while at is not None and len(instants) < 20:
        at = clock.after(at)
        instants.append(at)
    until = timedelta(days=50 * 365)
    wanted = [each for each in islice(CronSim(text, start), 20) if each < start + until]
    assert instants[: len(wanted)] == [round(each.timestamp()) for each in wanted]


def mistake_in(text: str) -> CronMistake | None:
    """Why a text is no expression, or None."""
    try:
        if interval_of(text) is None:
            read_cron(text)
    except CronMistake as mistake:
        return mistake
    return None


@settings(max_examples=EXAMPLES * 5)
@given(st.one_of(ALL, st.lists(st.sampled_from(SIGNS), max_size=30).map("".join), st.text()))
def test_any_text_is_an_expression_or_a_mistake_with_its_place(text: str) -> None:
    mistake = mistake_in(text)
    if mistake is not None:
        assert 0 <= mistake.position <= len(text)
        assert str(mistake)
        return
    if interval_of(text) is not None:
        return
    whole = normalized(text, 4711)
    assert not is_hashed(whole)
    assert normalized(whole) == whole
    assert read_cron(whole)
    assert not words_of(whole).startswith("By the expression"), whole
