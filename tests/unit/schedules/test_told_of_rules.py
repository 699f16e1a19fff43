"""What a preview and a refusal say of a rule, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.checks import RequestChecks
from belfry.schedules.fields import EMPTY
from belfry.schedules.instants import parse_instant
from belfry.schedules.preview import Preview, Warned, preview
from belfry.schedules.rejections import Rejection

NOW = 1_800_000_000_000
DAY = 86_400_000
GAP = Warned(
    "clock_gap",
    "2027-03-28 02:30 on the wall does not exist; it fires once, at 2027-03-28T01:00:00.000Z, when"
    " the clock has gone forward.",
)
REPEAT = Warned(
    "clock_repeat", "2027-10-31 02:30 on the wall comes twice; it fires the first time only."
)
NEVER = Warned("never_fires", "It is never due: no instant lies between now and its end.")


def request(**fields: Any) -> Any:
    return {**EMPTY, "tenant": "t", "schedule_id": "a", "kind": "CRON", **fields}


def shown(**fields: Any) -> Preview:
    found = preview(request(cron="30 2 * * *", **fields), NOW, 3)
    assert isinstance(found, Preview)
    return found


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "At 02:30, UTC"),
        ({"max_fires": 1}, "At 02:30, UTC, once"),
        ({"max_fires": 2}, "At 02:30, UTC, 2 times"),
        ({"end_at": NOW + DAY}, "At 02:30, UTC, up to 2027-01-16T08:00:00.000Z"),
    ],
)
def test_bounds_are_told_behind_the_rule(fields: dict[str, Any], words: str) -> None:
    assert shown(**fields).words == words


@pytest.mark.parametrize(
    ("end_ms", "warned"),
    [
        (None, [GAP, REPEAT]),
        (parse_instant("2027-10-31T01:00:00.000Z"), [GAP]),
        (parse_instant("2027-10-31T01:00:01.000Z"), [GAP, REPEAT]),
        (parse_instant("2027-03-28T01:00:00.000Z"), []),
        (parse_instant("2027-03-28T01:00:01.000Z"), [GAP]),
        (NOW + 1, [NEVER]),
    ],
)
def test_changes_of_the_clock_are_told_up_to_the_end(
    end_ms: int | None, warned: list[Warned]
) -> None:
    assert shown(timezone="Europe/Paris", end_at=end_ms).warnings == warned


@pytest.mark.parametrize(
    ("end_at", "until"),
    [(None, "in the next 50 years"), (NOW + 1, f"from now up to end_at {NOW + 1}")],
)
def test_a_rule_without_an_instant_is_refused_with_its_end(end_at: int | None, until: str) -> None:
    rule: dict[str, Any] = {"kind": "RRULE", "rrule": "FREQ=YEARLY;UNTIL=20270101T000000Z"}
    start = {"start_at": NOW - 400 * DAY, "timezone": "UTC"}
    asked = (
        request(**rule, **start) if end_at is None else request(cron="30 2 * * *", end_at=end_at)
    )
    assert RequestChecks().problem(asked, NOW) == Rejection(
        "never_fires",
        f"The schedule is never due {until}: preview the rule (`belfry schedule preview`), or move"
        " its end.",
    )


@pytest.mark.parametrize(
    ("offset", "hours"),
    [("+14:00", 14), ("-11:30", -11.5), ("+05:59", 5 + 59 / 60), ("+23:59", 23 + 59 / 60)],
)
def test_an_offset_is_read_whole(offset: str, hours: float) -> None:
    noon = parse_instant("2027-01-15T12:00:00Z")
    assert parse_instant(f"2027-01-15T12:00:00{offset}") == noon - round(hours * 3_600_000)


@pytest.mark.parametrize("offset", ["+24:00", "+05:60", "-24:00", "+99:00"])
def test_an_offset_that_no_clock_has_is_refused(offset: str) -> None:
    with pytest.raises(ValueError, match=r"offset|RFC 3339|instant"):
        parse_instant(f"2027-01-15T12:00:00{offset}")


def test_a_way_of_treating_days_off_has_one_of_three_names() -> None:
    asked = request(cron="30 2 * * *", calendar="de", on_holiday="LATER")
    assert RequestChecks().problem(asked, NOW) == Rejection(
        "bad_calendar",
        "on_holiday 'LATER' is not known: SKIP, NEXT_BUSINESS_DAY, PREVIOUS_BUSINESS_DAY.",
    )


def test_an_interval_that_skips_days_off_needs_no_start_and_one_that_moves_does() -> None:
    for way, refused in ((None, False), ("SKIP", False), ("NEXT_BUSINESS_DAY", True)):
        asked = request(kind="EVERY", interval_ms=DAY, calendar="de", on_holiday=way)
        assert (RequestChecks().problem(asked, NOW) is not None) == refused


NO_RHYTHM = (
    "moves instants, and an interval then has its rhythm from `start_at`, which is missing: set it,"
    " or use SKIP."
)
TOO_OFTEN = (
    "moves instants that are a minute apart or more, and the rule is due more often: use SKIP, or"
    " another rule."
)


@pytest.mark.parametrize(
    ("interval_ms", "start_at", "why"),
    [
        (3_600_000, None, NO_RHYTHM),
        (59_999, NOW, TOO_OFTEN),
        (60_000, NOW, None),
    ],
)
def test_why_instants_cannot_move(interval_ms: int, start_at: int | None, why: str | None) -> None:
    fields: dict[str, Any] = {"calendar": "de", "on_holiday": "NEXT_BUSINESS_DAY"}
    asked = request(kind="EVERY", interval_ms=interval_ms, start_at=start_at, cron=None, **fields)
    assert RequestChecks().problem(asked, NOW) == (
        None if why is None else Rejection("bad_calendar", f"on_holiday NEXT_BUSINESS_DAY {why}")
    )


@pytest.mark.parametrize("text", ["@daily", "H 1 * * *", "* * *", "0 * 0-5 * * *"])
def test_what_is_left_out_is_an_expression_of_five_fields(text: str) -> None:
    asked = request(kind="CRON", cron="0 9 * * *", except_cron=text)
    assert RequestChecks().problem(asked, NOW) == Rejection(
        "bad_cron",
        f"except_cron {text!r} cannot be read at character 1: give five fields, minute hour"
        ' day-of-month month day-of-week, without H or an alias, such as "* 0-5 * * *" for the'
        " night.",
    )
