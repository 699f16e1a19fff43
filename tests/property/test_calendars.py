"""What a calendar does to a schedule, against an oracle that walks through every instant.

The oracle takes the instants of the rule without its calendar, which are asked elsewhere, and moves
each by itself: by dates of `datetime`, and by the wall of `zoneinfo`.  ``make oracle`` takes more.
"""

from __future__ import annotations

import os
import random
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

import pytest

from belfry.schedules.backfill import past_range
from belfry.schedules.civil import day_number
from belfry.schedules.days_off import days_off, packed_days
from belfry.schedules.rule import Rule, decode_rule, encode_rule
from belfry.schedules.triggers import Trigger, trigger_by, trigger_of
from belfry.schedules.triggers.moving import MovingTrigger
from tests.property.cron_oracle import wall_clock

ALL: Final = os.environ.get("ORACLE") == "all"
HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
WAYS: Final = (None, "SKIP", "NEXT_BUSINESS_DAY", "PREVIOUS_BUSINESS_DAY")
ZONES: Final = (
    "UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe",
    "America/Sao_Paulo", "Africa/Cairo",
)  # fmt: skip
CRONS: Final = (
    "0 9 * * *", "30 2 * * *", "*/20 * * * *", "0 0 * * *", "0 18 * * FRI,SAT", "15 0,12 1-9 * *",
    "59 23 * * SUN", "0 8 L * *", "@every 45m",
)  # fmt: skip
RRULES: Final = (
    "FREQ=DAILY;BYHOUR=2,14;BYMINUTE=30", "FREQ=WEEKLY;BYDAY=SA,SU,MO;BYHOUR=1,2,3",
    "FREQ=HOURLY;INTERVAL=5", "FREQ=DAILY;INTERVAL=3",
)  # fmt: skip


def wall(ms: int, zone: str) -> datetime:
    return (EPOCH + timedelta(milliseconds=ms)).astimezone(wall_clock(zone))


def begin_ms(day: date, zone: str) -> int:
    """The first instant at which the wall shows a day or a later one, by a walk over minutes."""
    ms = (day_number(day) * DAY) - 15 * HOUR
    while wall(ms, zone).date() < day:
        ms += HOUR // 4
    return ms


class Oracle:
    """Moves instants one by one."""

    def __init__(self, days: set[date], weekend: set[int], zone: str) -> None:
        self.days, self.weekend, self.zone = days, weekend, zone

    def off(self, day: date) -> bool:
        return day in self.days or day.weekday() in self.weekend

    def day_of(self, ms: int) -> date:
        """The latest date that the wall has shown up to now."""
        return max(wall(ms, self.zone).date(), wall(ms - 2 * HOUR, self.zone).date())

    def moved(self, ms: int, way: str | None) -> int | None:
        day = self.day_of(ms)
        if not self.off(day):
            return ms
        if way in (None, "SKIP"):
            return None
        step = timedelta(days=1 if way == "NEXT_BUSINESS_DAY" else -1)
        to = day
        while self.off(to):
            to += step
        shown = wall(ms, self.zone).replace(tzinfo=None)
        since = shown - datetime.combine(day, time())
        wanted = datetime.combine(to, time()) + max(since, timedelta(0))
        # The first instant at which the wall shows that time or a later one: in UTC, by minutes.
        at = begin_ms(to, self.zone)
        far = wanted - timedelta(hours=3)
        while wall(at, self.zone).replace(tzinfo=None) < far:
            at += HOUR // 4
        rest = wanted.second * 1000 + wanted.microsecond // 1000
        wanted = wanted.replace(second=0, microsecond=0)
        while wall(at, self.zone).replace(tzinfo=None) < wanted:
            at += 60_000
        shown = wall(at, self.zone).replace(tzinfo=None)
        return at + (rest if shown == wanted else 0)


def each(trigger: Trigger, from_ms: int, until_ms: int) -> list[int]:
    found: list[int] = []
    due_ms = trigger.after_ms(from_ms)
    while due_ms is not None and due_ms <= until_ms:
        found.append(due_ms)
        due_ms = trigger.after_ms(due_ms)
    return found


def random_calendar(draw: random.Random, from_ms: int) -> tuple[set[date], set[int]]:
    first = wall(from_ms, "UTC").date() - timedelta(days=20)
    days = {first + timedelta(days=draw.randrange(90)) for _ in range(draw.randrange(12))}
    if draw.random() < 0.3:
        begin = draw.randrange(60)
        days |= {first + timedelta(days=begin + each) for each in range(draw.randrange(14))}
    return days, draw.choice((set(), {5, 6}, {4, 5}, {6}))


def random_rule(draw: random.Random, zone: str, start_ms: int) -> dict[str, Any]:
    kind = draw.choice(("EVERY", "CRON", "CRON", "RRULE"))
    given: dict[str, Any] = {"kind": kind, "timezone": zone, "on_holiday": draw.choice(WAYS)}
    moves = given["on_holiday"] not in (None, "SKIP")
    if kind == "EVERY":
        given |= {"when": draw.choice((15 * 60_000, HOUR, 7 * HOUR + 60_000, DAY, 3 * DAY))}
    elif kind == "CRON":
        given |= {"when": draw.choice(CRONS)}
    else:
        given |= {"when": draw.choice(RRULES)}
    if kind == "RRULE" or (moves and given["when"] == CRONS[-1]) or kind == "EVERY":
        given["start_at"] = start_ms - draw.randrange(30 * DAY) // 60_000 * 60_000
    elif draw.random() < 0.3:
        given["start_at"] = start_ms + draw.randrange(9 * DAY)
    if "start_at" in given and draw.random() < 0.5:
        # Right on an instant, which is the first one then.
        at_ms = trigger_by(Rule(**{**given, "on_holiday": None})).first_ms(given["start_at"])
        given["start_at"] = given["start_at"] if at_ms is None else at_ms
    if draw.random() < 0.3:
        given["end_at"] = start_ms + draw.randrange(20, 50) * DAY
    if draw.random() < 0.2:
        given["except_cron"] = draw.choice(("* 0-5 * * *", "0 * * * *", "* * * * WED"))
    return given


def agrees(given: dict[str, Any], days: set[date], weekend: set[int], from_ms: int) -> int:
    """Compare a trigger with the oracle over weeks; how many instants that were."""
    plain = trigger_by(Rule(**{**given, "on_holiday": None}))
    packed = packed_days(map(day_number, days), weekend)
    rule = Rule(**given, calendar="de", packed_days=packed)
    assert decode_rule(encode_rule(rule)) == rule
    trigger = trigger_of(encode_rule(rule))
    until_ms = from_ms + 30 * DAY
    zone, way, start = given["timezone"], given["on_holiday"], given.get("start_at")
    oracle = Oracle(days, weekend, zone)
    first_ms = from_ms - 30 * DAY
    if start is not None:
        first_ms = start - 1 if start > first_ms else plain.anchor_ms(start, first_ms)
    sources = each(plain, first_ms, until_ms + 30 * DAY)
    if start is not None and start > first_ms and (begin := plain.first_ms(start - 1)) is not None:
        sources = [begin, *each(plain, begin, until_ms + 30 * DAY)]
    found = {moved for ms in sources if (moved := oracle.moved(ms, way)) is not None}
    low, high = start or 0, given.get("end_at") or 1 << 62
    wanted = sorted(ms for ms in found if from_ms < ms <= until_ms and low <= ms <= high)
    first = wanted[0] if wanted else None
    begun = trigger.first_ms(from_ms)
    if first is not None:
        assert begun == first or (way in (None, "SKIP") and start is not None), (given, begun)
        assert [first, *each(trigger, first, until_ms)] == wanted, (given, sorted(days), weekend)
    for place in range(0, len(wanted), max(1, len(wanted) // 7)):
        at = wanted[place]
        for last in (until_ms, wanted[(place + len(wanted)) // 2], at + 3 * DAY):
            passed = [ms for ms in wanted if at < ms <= last]
            if last <= until_ms:
                latest = (passed[-1], len(passed)) if passed else (at, 0)
                assert trigger.latest_ms(at, last) == latest, (given, at, last)
        if place:
            assert trigger.before_ms(at, from_ms) == wanted[place - 1], given
        assert trigger.holds(at), given
    ranges_agree(trigger, wanted)
    return len(wanted)


def ranges_agree(trigger: Trigger, wanted: list[int]) -> None:
    """A range of the past has what lies in it, at its edges too, whatever the schedule waits for.

    `wanted` are instants one after another; the first says when the trigger knows them from.
    """
    for waits in wanted[len(wanted) // 2 :: max(1, len(wanted) // 3)]:
        for edge in wanted[1 :: max(1, len(wanted) // 3)]:
            for from_ms in (edge - HOUR, edge, edge + 1):
                if from_ms <= wanted[0]:
                    continue
                past = past_range(trigger, waits, from_ms, from_ms + 2 * DAY)
                end_ms = min(waits, from_ms + 2 * DAY)
                inside = [ms for ms in wanted if from_ms <= ms < end_ms]
                assert [*past.instants()] == inside, (trigger.rule, waits, from_ms)
                assert past.number(1_000_000) == len(inside), (trigger.rule, waits, from_ms)


@pytest.mark.parametrize("seed", range(30 if ALL else 6))
def test_random_calendars(seed: int) -> None:
    draw, total = random.Random(seed), 0
    for _ in range(20):
        zone = draw.choice(ZONES)
        year = draw.randrange(1995, 2030)
        # About the changes of clocks, and elsewhere.
        month = draw.choice((3, 4, 10, 11, 1, 7))
        from_ms = day_number(date(year, month, 1)) * DAY + draw.randrange(DAY)
        days, weekend = random_calendar(draw, from_ms)
        total += agrees(random_rule(draw, zone, from_ms), days, weekend, from_ms)
    assert total > 500


def test_the_timeline_of_the_page() -> None:
    """Friday 2026-12-25 is off, and Saturday and Sunday are."""
    packed = packed_days([day_number(date(2026, 12, 25))], {5, 6})

    def of(way: str | None) -> list[str]:
        rule = Rule("CRON", "0 9 * * TUE,FRI,SAT", calendar="de", on_holiday=way,
                    packed_days=packed)  # fmt: skip
        found = each(trigger_by(rule), day_number(date(2026, 12, 22)) * DAY, 1_798_600_000_000)
        return [wall(ms, "UTC").strftime("%a %d") for ms in found]

    assert of(None) == of("SKIP") == ["Tue 22", "Tue 29"]
    assert of("NEXT_BUSINESS_DAY") == ["Tue 22", "Mon 28", "Tue 29"]
    assert of("PREVIOUS_BUSINESS_DAY") == ["Tue 22", "Thu 24", "Tue 29"]


def test_what_moves_to_one_instant_fires_once_and_others_keep_their_times() -> None:
    packed = packed_days([], {5, 6})
    rule = Rule("CRON", "0 8 * * SAT", calendar="de", on_holiday="NEXT_BUSINESS_DAY",
                packed_days=packed)  # fmt: skip
    start = day_number(date(2026, 11, 26)) * DAY
    assert wall(trigger_by(rule).after_ms(start) or 0, "UTC").strftime("%a %H") == "Mon 08"
    both = Rule("RRULE", "DTSTART:20261101T080000Z RRULE:FREQ=WEEKLY;BYDAY=SA;BYHOUR=18"
                " RRULE:FREQ=WEEKLY;BYDAY=SU;BYHOUR=9", calendar="de",
                on_holiday="PREVIOUS_BUSINESS_DAY", packed_days=packed)  # fmt: skip
    found = [
        wall(ms, "UTC").strftime("%a %H") for ms in each(trigger_by(both), start, start + 9 * DAY)
    ]
    assert found == ["Fri 09", "Fri 18", "Fri 09", "Fri 18"]


def test_a_year_without_events_is_counted_in_good_time() -> None:
    packed = packed_days([day_number(date(2027, 1, 1))], {5, 6})
    for way in WAYS:
        rule = Rule("CRON", "0 * * * *", calendar="de", on_holiday=way, packed_days=packed)
        start = day_number(date(2027, 1, 1)) * DAY + 12 * HOUR
        _, count = trigger_by(rule).latest_ms(start, start + 365 * DAY)
        assert 6_200 < count < 6_300


def test_a_day_on_which_the_clock_changes_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All instants of a Sunday with 25 hours move to the Monday after it, or the Friday before."""
    asked = 0
    source = MovingTrigger._source

    def counted(self: MovingTrigger, ms: int) -> int | None:
        nonlocal asked
        asked += 1
        return source(self, ms)

    monkeypatch.setattr(MovingTrigger, "_source", counted)
    for way, month_day in (("NEXT_BUSINESS_DAY", 26), ("PREVIOUS_BUSINESS_DAY", 23)):
        rule = Rule("CRON", "* * * * *", timezone="Europe/Berlin", calendar="de", on_holiday=way,
                    packed_days=packed_days([], {5, 6}))  # fmt: skip
        begin = begin_ms(date(2026, 10, month_day), "Europe/Berlin")
        asked = 0
        assert len(each(trigger_by(rule), begin - 1, begin + DAY - 1)) == 1440
        # Each of the days asks about each instant, but for the one that is remembered.
        assert asked < 4 * 1440 + 100


def test_a_calendar_at_rest_is_the_same() -> None:
    draw = random.Random(3)
    for _ in range(100):
        days = {draw.randrange(80_000) for _ in range(draw.randrange(300))}
        packed = packed_days(days, {5, 6})
        found = days_off(packed)
        assert [day_number(date.fromisoformat(each)) for each in found.dates] == sorted(days)
        assert found.weekend == ["SAT", "SUN"]


def test_the_oracle_sees_a_group_that_begins_late(monkeypatch: pytest.MonkeyPatch) -> None:
    group = MovingTrigger._group

    def late(self: MovingTrigger, day: int) -> tuple[int, int, int]:
        first, last, target = group(self, day)
        return (first + 1 if last > first + 1 else first), last, target

    monkeypatch.setattr(MovingTrigger, "_group", late)
    given = {"kind": "CRON", "when": "0 18 * * FRI,SAT", "timezone": "UTC",
             "on_holiday": "NEXT_BUSINESS_DAY"}  # fmt: skip
    with pytest.raises(AssertionError):
        agrees(given, set(), {5, 6}, day_number(date(2026, 11, 1)) * DAY)
