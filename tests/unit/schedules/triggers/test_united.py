"""Unions: several expressions and an interval in one text, each instant of theirs once."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from belfry.schedules.fields import EMPTY
from belfry.schedules.instants import parse_instant
from belfry.schedules.preview import Preview, preview
from belfry.schedules.rule import Rule
from belfry.schedules.triggers import Trigger, trigger_by
from belfry.schedules.triggers.cron import cron_problem

MINUTE = 60_000
DAY = 86_400_000
# Over both changes of the clock in each of these zones, and a day that Apia never had.
FROM = parse_instant("2026-03-01T00:00:00Z")
ZONES = {
    "Europe/Paris": FROM,
    "Australia/Lord_Howe": FROM,
    "Pacific/Apia": parse_instant("2011-12-20T00:00:00Z"),
}
UNIONS = [
    ("0 9 * * MON", 90 * MINUTE),
    ("30 2 * * *", 30 * MINUTE),
    ("*/7 * * * *", 61 * MINUTE),
    ("0 * * * *", 7 * DAY),
]


def united(text: str, zone: str = "UTC", **fields: Any) -> Trigger:
    return trigger_by(Rule("CRON", text, timezone=zone, **fields))


def instants(trigger: Trigger, from_ms: int, end_ms: int) -> list[int]:
    """All from one instant to another (exclusive), one after the other."""
    found, at_ms = [], trigger.after_ms(from_ms - 1)
    while at_ms is not None and at_ms < end_ms:
        found.append(at_ms)
        at_ms = trigger.after_ms(at_ms)
    return found


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("cron", "interval_ms"), UNIONS)
def test_it_has_the_instants_of_its_parts_each_once(zone: str, cron: str, interval_ms: int) -> None:
    """All answers are those that follow from two lists, which know nothing of each other."""
    trigger = united(f"@every {interval_ms // MINUTE}m | {cron} | 15 12 * * *", zone)
    from_ms, end_ms = ZONES[zone], ZONES[zone] + 60 * DAY
    expected = {*range(-(-from_ms // interval_ms) * interval_ms, end_ms, interval_ms)}
    for part in (cron, "15 12 * * *"):
        expected.update(instants(united(part, zone), from_ms, end_ms))
    found = instants(trigger, from_ms, end_ms)
    assert found == sorted(expected)
    random = Random(f"{zone} {cron}")
    for _ in range(30):
        after, until = sorted(random.sample([*found, from_ms, end_ms - 1, from_ms + 12_345], 2))
        between = [each for each in found if after < each <= until]
        assert trigger.latest_ms(after, until) == (between[-1] if between else after, len(between))


def test_an_interval_counts_from_the_start_and_not_from_the_fire_before() -> None:
    start_ms = FROM + 123
    trigger = united("0 9 * * * | @every 60m", start_at=start_ms)
    assert trigger.first_ms(FROM - DAY) == start_ms
    nine = FROM + 9 * 60 * MINUTE
    assert trigger.after_ms(nine - MINUTE) == nine
    assert trigger.after_ms(nine) == nine + 123
    assert united("0 9 * * * | @every 60m").first_ms(FROM + 1) == FROM + 60 * MINUTE


def test_it_ends_with_its_bound() -> None:
    trigger = united("0 9 * * * | @every 60m", end_at=FROM + 2 * 60 * MINUTE)
    assert instants(trigger, FROM, FROM + DAY) == [FROM + each * 60 * MINUTE for each in range(3)]


def test_a_union_is_the_same_in_another_order_and_another_one_with_another_interval() -> None:
    one = united("@every 90m | 0 9 * * *")
    assert one.same_cadence(united("0 9 * * *|@every 1h30m"))
    assert not one.same_cadence(united("0 9 * * * | @every 60m"))
    assert not one.same_cadence(united("0 9 * * *"))


def test_minutes_are_left_out_of_all_parts() -> None:
    trigger = united("30 5 * * * | @every 60m", except_cron="* 0-5 * * *")
    hours = [each // (60 * MINUTE) % 24 for each in instants(trigger, FROM, FROM + 2 * DAY)]
    assert hours == [*range(6, 24)] * 2
    assert trigger.latest_ms(FROM, FROM + 2 * DAY - 1)[1] == 36


def test_a_preview_says_each_part() -> None:
    asked: Any = {
        **EMPTY,
        "kind": "CRON",
        "cron": "@every 90m | 0 9 * * MON",
        "timezone": "Europe/Paris",
    }
    found = preview(asked, FROM, 3)
    assert isinstance(found, Preview)
    assert found.words == (
        "At 09:00, only on Monday; and every 1h30m from 1970-01-01T00:00:00.000Z on, Europe/Paris"
    )
    assert [each.scheduled_ms - FROM for each in found.occurrences] == [
        90 * MINUTE,
        180 * MINUTE,
        270 * MINUTE,
    ]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("0 9 * * * | 0 25 * * *", 15, "'25' is no hour"),
        ("0 9 * * * |", 12, "it has 0 fields"),
        ("0 9 * * * | @every 90s", 12, "an interval beside another part has whole minutes"),
        ("* * * * * * | @every 90m", 1, "is due once a minute at most"),
        ("@every 1h | @every 90m", 12, "it has two intervals"),
        (" | ".join(["0 9 * * *"] * 5), 48, "it has 5 parts; at most 4"),
        ("0 9 * * * | @every soon", 20, "'soon' is no duration"),
    ],
)
def test_what_cannot_be_united_is_refused_at_its_place(text: str, place: int, said: str) -> None:
    asked: Any = {**EMPTY, "kind": "CRON", "cron": text}
    found = cron_problem(asked)
    assert found is not None
    assert found.code == "bad_cron"
    assert f"at character {place}: " in found.reason
    assert said in found.reason


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris"])
def test_instants_that_parts_have_in_common_count_once(zone: str) -> None:
    """Between all pairs of instants, and a millisecond beside them, over the clock's change."""
    trigger = united("0 */8 * * * | 0 4,8 * * * | @every 240m", zone)
    from_ms = parse_instant("2026-03-28T00:00:00Z")
    found = instants(trigger, from_ms, from_ms + 2 * DAY)
    assert len(found) == len({*found}) >= 12
    beside = [each + by for each in found for by in (-1, 0, 1)]
    for after in beside[::2]:
        for until in beside[::3]:
            if after < until:
                between = [each for each in found if after < each <= until]
                expected = (between[-1] if between else after, len(between))
                assert trigger.latest_ms(after, until) == expected


def test_one_part_alone_has_nothing_in_common() -> None:
    trigger = united("0 9 1 1 * | 0 9 * * *", end_at=FROM + 30 * DAY)
    assert trigger.latest_ms(FROM, FROM + 9 * DAY) == (FROM + 8 * DAY + 540 * MINUTE, 9)
    assert trigger.latest_ms(FROM, FROM + 540 * MINUTE - 1) == (FROM, 0)


def test_a_union_whose_bounds_leave_nothing_has_no_instant() -> None:
    trigger = united("0 9 * * * | @every 60m", end_at=FROM)
    assert trigger.first_ms(FROM) is None
    assert trigger.after_ms(FROM) is None


def test_nothing_lies_between_an_instant_and_one_before_it() -> None:
    trigger = united("0 9 * * * | @every 60m")
    assert trigger.latest_ms(FROM + 5 * MINUTE, FROM) == (FROM + 5 * MINUTE, 0)
    assert trigger.latest_ms(FROM + DAY, FROM) == (FROM + DAY, 0)
    assert repr(trigger.latest_ms(FROM, FROM + 120 * MINUTE)[1]) == "2"


def test_four_parts_are_allowed() -> None:
    asked: Any = {**EMPTY, "kind": "CRON", "cron": " | ".join(["0 9 * * *"] * 4)}
    assert cron_problem(asked) is None
