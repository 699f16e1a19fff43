"""RRULE against python-dateutil and a walk through UTC; ``RULES=100000`` takes so many rules."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from belfry.schedules.rule import Rule
from belfry.schedules.triggers import trigger_by
from belfry.schedules.triggers.rrule_trigger import RRule
from tests.property.cron_oracle import changes, milliseconds, walk
from tests.property.rrule_oracle import (
    SHORT,
    instants,
    random_text,
    times,
    times_up_to,
    wall_second,
)

RULES: Final = int(os.environ.get("RULES", "1000"))
PARTS: Final = 20
MOST: Final = 25
LAST_YEAR: Final = 2080
FIRST_MS: Final = -2_000_000_000_000
ZONES: Final = (
    "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "America/Havana",
    "Pacific/Apia", "Asia/Gaza", "Africa/Casablanca",
)  # fmt: skip


def random_start(draw: random.Random) -> datetime:
    day = datetime(1997, 1, 1) + timedelta(days=draw.randrange(15_000))  # noqa: DTZ001  # the wall's
    at = draw.choice((0, 9 * 3600, draw.randrange(86_400)))
    return day + timedelta(seconds=at)


def rule_of(texts: list[str], without: list[str], start: datetime, zone: str) -> Rule:
    lines = [f"DTSTART:{start:%Y%m%dT%H%M%S}", *(f"RRULE:{each}" for each in texts)]
    return Rule("RRULE", "\n".join(lines + [f"EXRULE:{each}" for each in without]), zone)


@pytest.mark.parametrize("part", range(PARTS))
def test_dateutil_knows_the_same_times(part: int) -> None:
    draw = random.Random(f"{part}")
    for _ in range(RULES // PARTS):
        start = random_start(draw)
        texts, without = [random_text(draw, start)], []
        if draw.random() < 0.1:
            texts.append(random_text(draw, start))
        if draw.random() < 0.1:
            without.append(random_text(draw, start))
        agrees(texts, without, start)


def agrees(texts: list[str], without: list[str], start: datetime) -> None:
    times_found, is_whole = times(texts, without, start, MOST)
    # What the zones' rules say of far centuries takes long to find, and nobody asks for it.
    wanted = [each for each in times_found if each.year < LAST_YEAR]
    wanted_ms = [wall_second(each) * 1000 for each in wanted]
    trigger = trigger_by(rule_of(texts, without, start, "UTC"))
    found: list[int] = []
    due_ms = trigger.first_ms(FIRST_MS)
    while due_ms is not None and len(found) < len(wanted):
        found.append(due_ms)
        due_ms = trigger.after_ms(due_ms)
    assert found == wanted_ms, (texts, without, start)
    if is_whole and len(times_found) < MOST and wanted == times_found:
        assert due_ms is None, (texts, without, start)
    if not found:
        return
    place = len(found) // 2
    assert trigger.latest_ms(FIRST_MS, found[place]) == (found[place], place + 1), (texts, start)
    before = trigger.latest_ms(FIRST_MS, found[place] - 1)
    assert before == ((found[place - 1], place) if place else (FIRST_MS, 0)), (texts, start)
    again = trigger_by(rule_of(texts, without, start, "UTC"))
    assert again.after_ms(found[place] - 1) == found[place], (texts, start)


@pytest.mark.parametrize("name", ZONES)
def test_changed_clocks_do_what_they_do_to_cron(name: str) -> None:
    draw = random.Random(name)
    around_all = changes(name, datetime(2011, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
    for number in range(60):
        around = around_all[number % len(around_all)]
        wall = walk(name, around, around)[0].wall
        start = wall - timedelta(minutes=draw.randrange(1_440 * 3), days=1)
        freq = draw.choice(("DAILY", "WEEKLY", *SHORT[:2]))
        text = f"FREQ={freq};BYMINUTE={draw.choice(('0', '0,30', '15', '0,20,40'))};BYSECOND=0"
        if draw.random() < 0.7:
            near = {(wall.hour + draw.randrange(-2, 2)) % 24 for _ in range(3)}
            text += f";BYHOUR={','.join(map(str, near))}"
        if draw.random() < 0.3:
            text += f";INTERVAL={draw.choice((1, 2, 3))}"
        meets(name, text, start, around)


def meets(name: str, text: str, start: datetime, around: datetime) -> None:
    """Compare a rule in a zone around a change of the clock."""
    walked = walk(name, around - timedelta(hours=52), around + timedelta(hours=52))
    walls = times_up_to(text, start, walked[-1].wall)
    wanted = instants(walls, walked, fixed=text[5:].split(";", 1)[0] not in SHORT)
    trigger = trigger_by(rule_of([text], [], start, name))
    assert isinstance(trigger, RRule)
    after_ms = max(milliseconds(around - timedelta(hours=4)), trigger.start_ms - 1)
    until_ms = milliseconds(walked[-1].utc)
    expected = [ms for ms in map(milliseconds, wanted) if after_ms < ms <= until_ms]
    found, due_ms = [], trigger.after_ms(after_ms)
    while due_ms is not None and due_ms <= until_ms:
        found.append(due_ms)
        due_ms = trigger.after_ms(due_ms)
    assert found == expected, (name, text, start, around)
    latest = (expected[-1], len(expected)) if expected else (after_ms, 0)
    assert trigger.latest_ms(after_ms, until_ms) == latest, (name, text, start, around)
