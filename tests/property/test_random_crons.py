"""Random cron rules against three others; ``CRONS=10000`` takes so many rules.

    who        what it is asked                              what it is not asked
    walk       all rules, minute by minute of their days     changes of a clock, seconds
    cronsim    five and six fields, in UTC                   15W, L-3, FRIL, years
    croniter   five fields, in UTC                           these, L and #, days of both
                                                             sorts beside a *, weekdays as 2/5
    oracle     minutes around a change of a clock            days

belfry reads its fields with cronsim, so croniter and the walk are who may contradict.  Croniter has
other meanings, or mistakes of its own, where it is not asked.  Texts are changed at a character as
well: what cronsim takes belfry has to take, and what it refuses belfry may only take for what it
knows besides.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Final

import pytest
from croniter import CroniterBadDateError, croniter  # type: ignore[import-untyped]  # it ships no types
from cronsim import CronSim, CronSimError

from belfry.schedules.rule import Rule
from belfry.schedules.triggers import trigger_by
from belfry.schedules.triggers.cron_spelling import normalized
from belfry.schedules.triggers.cron_text import CronMistake, read_cron
from tests.property.cron_oracle import (
    MONTHS,
    WEEKDAYS,
    Walked,
    changes,
    instants,
    milliseconds,
    numbers,
    read,
    walk,
)

CRONS: Final = int(os.environ.get("CRONS", "600"))
PARTS: Final = 4
MOST: Final = 12
# A range of one number with a step, `2-2/6`: cronsim goes on to the end of the field.
ONE_NUMBER: Final = re.compile(r"\b(\w+)-\1/", re.IGNORECASE)
DAYS: Final = 800
ZONES: Final = (
    "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "America/Havana",
    "Asia/Gaza", "Africa/Casablanca", "America/St_Johns", "Pacific/Chatham",
)  # fmt: skip
Draw = random.Random


def number(draw: Draw, low: int, high: int, names: tuple[str, ...] = ()) -> str:
    """A number or its name; names count from `low`."""
    found = draw.randint(low, high)
    if names and draw.random() < 0.4 and found - low < len(names):
        return draw.choice((names[found - low], names[found - low].lower()))
    return str(found)


def item(draw: Draw, low: int, high: int, names: tuple[str, ...] = ()) -> str:
    """A number, a range, or a step."""
    kind = draw.random()
    if kind < 0.5:
        return number(draw, low, high, names)
    first, last = sorted(draw.sample(range(low, high + 1), 2))
    body = draw.choice(("*", f"{first}-{last}", f"{first}-{last}", str(first)))
    if kind < 0.75:
        return f"{first}-{last}"
    return f"{body}/{draw.randint(1, high - low)}"


def field(draw: Draw, low: int, high: int, names: tuple[str, ...] = (), star: float = 0.3) -> str:
    """A field: a star, or up to three items."""
    if draw.random() < star:
        return "*"
    count = draw.choice((1, 1, 1, 2, 3))
    return ",".join(item(draw, low, high, names) for _ in range(count))


def days(draw: Draw, more: bool) -> str:
    """Days of a month; with `more`, of those that cronsim does not know."""
    kind = draw.random()
    if kind < 0.1:
        return "L"
    if kind < 0.15:
        return "LW"
    if more and kind < 0.5:
        place = draw.randint(1, 30)
        return draw.choice((f"{place}W", f"L-{place}", f"L-{place}W", f"{place}W,L", "1W,LW"))
    return field(draw, 1, 31, star=0.45)


def weekdays(draw: Draw, more: bool) -> str:
    """Days of a week."""
    kind = draw.random()
    if kind < 0.1:
        return f"{draw.randint(0, 6)}L"
    if kind < 0.2:
        return f"{draw.choice(WEEKDAYS)}#{draw.randint(1, 5)}"
    if more and kind < 0.3:
        return f"{draw.choice(WEEKDAYS)}L"
    return field(draw, 0, 6, WEEKDAYS, star=0.5)


def rule(draw: Draw, more: bool = False, seconds: bool = False) -> str:
    """A rule of five fields, of six with seconds, and with `more` sometimes of seven."""
    fields = [field(draw, 0, 59), field(draw, 0, 23), days(draw, more)]
    fields += [field(draw, 1, 12, MONTHS, star=0.6), weekdays(draw, more)]
    if more and draw.random() < 0.2:
        return " ".join(["0", *fields, draw.choice(("2020-2060/2", "*", "2024,2027-2031"))])
    return " ".join([field(draw, 0, 59), *fields] if seconds else fields)


def begin(draw: Draw) -> datetime:
    """Some second of some thirty years."""
    return datetime(2000, 1, 1, tzinfo=UTC) + timedelta(seconds=draw.randrange(30 * 31_556_952))


def found_by_belfry(text: str, after: datetime, zone: str = "UTC") -> Iterator[int]:
    """Instants of a rule, epoch ms."""
    trigger = trigger_by(Rule("CRON", when=text, timezone=zone))
    due_ms = trigger.after_ms(milliseconds(after))
    while due_ms is not None:
        yield due_ms
        due_ms = trigger.after_ms(due_ms)


def walked(text: str, after: datetime) -> list[int]:
    """Instants of a rule within `DAYS`, from nothing but the fields as the oracle reads them."""
    meaning, found = read(text), []
    for number in range(DAYS):
        day = after.date() + timedelta(days=number)
        if not meaning.on_day(day):
            continue
        for minute in sorted(meaning.minutes):
            at = datetime.combine(day, datetime.min.time(), UTC) + timedelta(minutes=minute)
            if at > after:
                found.append(milliseconds(at))
        if len(found) >= MOST:
            break
    return found[:MOST]


def same(text: str, after: datetime, wanted: list[int]) -> None:
    found = list(islice(found_by_belfry(text, after), len(wanted)))
    assert found == wanted, f"{text} after {after}"


def each(part: int, name: str) -> Iterator[Draw]:
    """A source of chance for each rule of a part."""
    for number in range(CRONS // PARTS):
        yield random.Random(f"{name} {part} {number}")


@pytest.mark.parametrize("part", range(PARTS))
def test_a_walk_through_days_finds_the_same(part: int) -> None:
    several = 0
    for draw in each(part, "walk"):
        text, after = rule(draw, more=True), begin(draw)
        if _refused(text):
            # Such as the 30th of February; who could fire then is not refused.
            assert not walked(text, after), text
            continue
        wanted = walked(text, after)
        several += len(wanted) > 1
        same(text, after, wanted)
    assert several > CRONS // PARTS // 2


@pytest.mark.parametrize("part", range(PARTS))
def test_cronsim_finds_the_same(part: int) -> None:
    for draw in each(part, "cronsim"):
        text, after = rule(draw, seconds=draw.random() < 0.5), begin(draw)
        wanted = _first(text, after)
        assert (wanted is None) == _refused(text), text
        if wanted is not None:
            same(text, after, wanted)


@pytest.mark.parametrize("part", range(PARTS))
def test_croniter_finds_the_same(part: int) -> None:
    compared = 0
    for draw in each(part, "croniter"):
        text, after = rule(draw), begin(draw).replace(second=0)
        if _croniter_differs(text) or _refused(text):
            continue
        try:
            wanted = list(islice(_croniter(text, after), MOST))
        except CroniterBadDateError:
            # It looks for the 31st of September, and not for the weekdays that are alternatives.
            continue
        compared += 1
        same(text, after, wanted)
    assert compared > CRONS // PARTS // 3


@pytest.mark.parametrize("part", range(PARTS))
def test_the_oracle_finds_the_same_around_a_change_of_the_clock(part: int) -> None:
    for draw in islice(each(part, "zones"), CRONS // PARTS // 4):
        zone, year = draw.choice(ZONES), draw.randint(2020, 2034)
        first = datetime(year, 1, 1, tzinfo=UTC)
        around = draw.choice(changes(zone, first, first + timedelta(days=366)) or [first])
        minutes = _walk(zone, around)
        # Days are not what changes of a clock are about.
        days_of_it = draw.choice(("* * *", "*/2 * *", "* * 0,6"))
        text = f"{field(draw, 0, 59)} {field(draw, 0, 3)} {days_of_it}"
        after, until = milliseconds(around - timedelta(hours=4)), milliseconds(minutes[-1].utc)
        wanted = [ms for ms in map(milliseconds, instants(text, minutes)) if after < ms <= until]
        found = list(
            islice(found_by_belfry(text, around - timedelta(hours=4), zone), len(wanted) + 1)
        )
        assert found[: len(wanted)] == wanted, f"{text} in {zone} around {around}"
        assert all(ms > until for ms in found[len(wanted) :]), f"{text} in {zone} around {around}"


@pytest.mark.parametrize("part", range(PARTS))
def test_a_text_with_a_mistake_is_refused_where_cronsim_refuses_it(part: int) -> None:
    for draw in each(part, "mistakes"):
        text = rule(draw, seconds=draw.random() < 0.3)
        at = draw.randrange(len(text))
        text = text[:at] + draw.choice("0123456789*/,-#LW? xé") + text[at + draw.randint(0, 1) :]
        known = _first(text, datetime(2026, 1, 1, tzinfo=UTC))
        refused = _refused(text)
        if known is not None:
            assert not refused, text
            if ONE_NUMBER.search(text) is None:
                same(text, datetime(2026, 1, 1, tzinfo=UTC), known)
        elif not refused:
            assert any(sign in text.upper() for sign in ("W", "L")) or len(text.split()) == 7, text


def _refused(text: str) -> bool:
    try:
        read_cron(normalized(text))
    except CronMistake:
        return True
    return False


def _first(text: str, after: datetime) -> list[int] | None:
    """The first instants that cronsim tells of, None where it takes the text for none."""
    try:
        return [milliseconds(at) for at in islice(CronSim(text, after), MOST)]
    except CronSimError:
        return None


def _croniter_differs(text: str) -> bool:
    """Whether croniter means something else by it, as its documents say."""
    fields = text.upper().split()
    day, weekday = fields[2], fields[4]
    starred = day.startswith("*") or weekday.startswith("*")
    if starred and day != "*" and weekday != "*":
        return True
    if "*" not in (day, weekday) and (_all(day, 31) or _all(weekday, 7)):
        # All days of one sort are no restriction there.
        return True
    # Up to 7, Sunday, here; up to 6 there.
    steps = any("/" in each and each[0] != "*" and "-" not in each for each in weekday.split(","))
    return steps or any(sign in day + weekday for sign in ("W", "L", "#"))


def _all(part: str, count: int) -> bool:
    """Whether a field of days names all of them."""
    if any(sign in part for sign in ("W", "L", "#")):
        return False
    place = 2 if count == 31 else 4
    return len({each % count for each in numbers(part, place)}) == count


def _croniter(text: str, after: datetime) -> Iterator[int]:
    """Instants as croniter finds them, epoch ms."""
    found = croniter(text, after, ret_type=datetime)
    while True:
        yield milliseconds(found.get_next())


_walks: dict[tuple[str, date], list[Walked]] = {}


def _walk(zone: str, around: datetime) -> list[Walked]:
    key = zone, around.date()
    if key not in _walks:
        reach = timedelta(hours=27)
        _walks[key] = walk(zone, around - reach, around + reach)
    return _walks[key]
