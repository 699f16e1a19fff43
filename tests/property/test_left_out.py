"""What `except_cron` leaves out, against an oracle that looks at each instant by itself.

The oracle (`cron_oracle`) reads the expression by its own code, and asks `zoneinfo` what the wall
shows at an instant.  That the rule without exceptions has the right instants is asked elsewhere, so
here they are taken from its trigger, one by one.  ``make oracle`` takes all zones.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zlib import crc32

import pytest

from belfry.schedules.rule import Rule, decode_rule, encode_rule
from belfry.schedules.triggers import Trigger, left_out, trigger_by, trigger_of
from tests.property.cron_edges import BY_BYTES, FROM, TO
from tests.property.cron_oracle import changes, milliseconds, read, wall_clock
from tests.property.test_cron_oracle import ODD, SOME

ALL: Final = os.environ.get("ORACLE") == "all"
HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MOST: Final = 3_000
LEFT_OUT: Final = (
    "* 0-5 * * *",
    "* * * * SAT,SUN",
    "30-59 2 * * *",
    "*/2 * * * *",
    "*/20 1-3 * * *",
    "0 * * * *",
    "* * L,15W * *",
    "* 22-23,0-4 * * MON#1,FRIL",
    "5,10-40 */3 1-15 * 0,4",
    "* * * 3,10,11 *",
)
CRONS: Final = (
    "30 2 * * *", "*/15 * * * *", "0 */2 * * *", "0,30 1-3 * * *", "*/7 * * * * *", "@every 17m",
    "15,45 9-17 * * MON-FRI", "0 0 * * *",
)  # fmt: skip
RRULES: Final = (
    "FREQ=HOURLY;INTERVAL=5", "FREQ=DAILY;BYHOUR=2,14;BYMINUTE=30", "FREQ=MINUTELY;INTERVAL=40",
    "FREQ=WEEKLY;BYDAY=SU,MO;BYHOUR=1,2,3",
)  # fmt: skip
INTERVALS: Final = (60_000, 61_001, 15 * 60_000, HOUR, 7 * HOUR + 1, DAY)


def random_rule(draw: random.Random, zone: str, start_ms: int) -> Rule:
    """A rule that leaves something out."""
    given: Any = {"timezone": zone, "except_cron": draw.choice(LEFT_OUT)}
    kind = draw.choice(("EVERY", "CRON", "CRON", "RRULE"))
    if kind == "EVERY":
        starts = (None, start_ms - draw.randrange(DAY), start_ms + draw.randrange(DAY))
        return Rule(kind, draw.choice(INTERVALS), start_at=draw.choice(starts), **given)
    if kind == "CRON":
        return Rule(kind, draw.choice(CRONS), **given)
    return Rule(kind, draw.choice(RRULES), start_at=start_ms - draw.randrange(9 * DAY), **given)


def is_left_out(text: str, zone: str, ms: int) -> bool:
    wall = (EPOCH + timedelta(milliseconds=ms)).astimezone(wall_clock(zone))
    meaning = read(text)
    return wall.hour * 60 + wall.minute in meaning.minutes and meaning.on_day(wall.date())


def each(trigger: Trigger, accepted_ms: int, until_ms: int) -> Iterator[int]:
    due_ms = trigger.first_ms(accepted_ms)
    for _ in range(MOST):
        if due_ms is None or due_ms > until_ms:
            return
        yield due_ms
        due_ms = trigger.after_ms(due_ms)


def agrees(rule: Rule, accepted_ms: int, until_ms: int, draw: random.Random) -> int:
    """Compare a trigger with the oracle between two instants; how many instants that were."""
    trigger = trigger_by(rule)
    zone, text = rule.timezone or "UTC", rule.except_cron or ""
    whole = list(each(trigger.whole, accepted_ms, until_ms))
    if len(whole) == MOST:
        until_ms = whole[-1]
    wanted = [ms for ms in whole if not is_left_out(text, zone, ms)]
    assert list(each(trigger, accepted_ms, until_ms)) == wanted, rule
    assert trigger_of(encode_rule(rule)).first_ms(accepted_ms) == trigger.first_ms(accepted_ms)
    for _ in range(min(len(wanted), 12)):
        place = draw.randrange(len(wanted))
        last_ms = draw.choice((draw.randint(wanted[place], until_ms), draw.choice(wanted)))
        passed = [ms for ms in wanted[place:] if wanted[place] < ms <= last_ms]
        latest = (passed[-1], len(passed)) if passed else (wanted[place], 0)
        assert trigger.latest_ms(wanted[place], last_ms) == latest, (rule, wanted[place], last_ms)
        if place:
            assert trigger.before_ms(wanted[place], accepted_ms) == wanted[place - 1], rule
        assert trigger.holds(wanted[place])
    return len(wanted)


def around(zone: str, draw: random.Random) -> list[int]:
    """Instants shortly before changes of a zone's clock; where it has none, some day."""
    found = [milliseconds(at) for at in changes(zone, FROM, TO)]
    found = draw.sample(found, min(4 if ALL else 2, len(found)))
    return [at - draw.randrange(2 * DAY) for at in found or [milliseconds(FROM)]]


@pytest.mark.parametrize("zone", sorted(BY_BYTES.values()) if ALL else SOME)
def test_over_changes_of_the_clock(zone: str) -> None:
    draw = random.Random(crc32(zone.encode()))
    for accepted_ms in around(zone, draw):
        for _ in range(2 if ALL else 6):
            rule = random_rule(draw, zone, accepted_ms)
            agrees(rule, accepted_ms, accepted_ms + 5 * DAY, draw)


@pytest.mark.parametrize("seed", range(3))
def test_over_weeks(seed: int) -> None:
    draw, total = random.Random(seed), 0
    for _ in range(10):
        zone = draw.choice((*ODD, "UTC", "Europe/Paris", "Asia/Kolkata"))
        accepted_ms = milliseconds(FROM) + draw.randrange(15 * 365 * DAY)
        rule = random_rule(draw, zone, accepted_ms)
        total += agrees(rule, accepted_ms, accepted_ms + 60 * DAY, draw)
    assert total > 1_000


@pytest.mark.parametrize(
    ("zone", "at"),
    [
        ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
        ("Pacific/Kwajalein", datetime(1993, 8, 21, 12, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize("text", LEFT_OUT)
def test_days_that_are_missing(zone: str, at: datetime, text: str) -> None:
    begin_ms = milliseconds(at) - 3 * DAY
    for rule in (
        Rule("EVERY", HOUR, zone, except_cron=text, start_at=begin_ms),
        Rule("CRON", "30 2 * * *", zone, except_cron=text),
    ):
        agrees(rule, begin_ms, begin_ms + 9 * DAY, random.Random(0))


def test_a_rule_with_exceptions_at_rest_is_the_same_rule() -> None:
    draw = random.Random(1)
    for _ in range(200):
        rule = random_rule(draw, draw.choice(ODD), milliseconds(FROM))
        assert decode_rule(encode_rule(rule)) == rule


def test_the_oracle_sees_a_run_that_ends_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    free_ms = left_out.LeftOut.free_ms

    def late(self: left_out.LeftOut, ms: int) -> int | None:
        found = free_ms(self, ms)
        return None if found is None else found + 60_000

    monkeypatch.setattr(left_out.LeftOut, "free_ms", late)
    rule = Rule("EVERY", 60_000, "Europe/Paris", except_cron="* 0-5 * * *")
    with pytest.raises(AssertionError):
        agrees(rule, milliseconds(FROM), milliseconds(FROM) + DAY, random.Random(0))
