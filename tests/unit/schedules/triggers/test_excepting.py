"""What is left out of a rule: the rhythm beneath it, whole stretches, and where the search ends."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import Any

import pytest

from belfry.schedules.instants import format_instant, parse_instant
from belfry.schedules.rule import Rule
from belfry.schedules.triggers import Trigger, excepting, trigger_by
from belfry.schedules.triggers.every import Every
from belfry.schedules.triggers.left_out import LeftOut
from belfry.schedules.triggers.zones import zone

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NIGHT = "* 0-5 * * *"
EVENING = parse_instant("2026-07-01T23:15:00+02:00")


def every(interval_ms: int, text: str = NIGHT, **more: Any) -> Trigger:
    given = {"timezone": "Europe/Paris", **more}
    return trigger_by(Rule("EVERY", interval_ms, except_cron=text, **given))


def walked(trigger: Trigger, accepted_ms: int, most: int) -> list[str]:
    def instants() -> Any:
        due_ms = trigger.first_ms(accepted_ms)
        while due_ms is not None:
            yield due_ms
            due_ms = trigger.after_ms(due_ms)

    place = zone("Europe/Paris")
    found = [(ms, place.offset(ms // 1000)) for ms in islice(instants(), most)]
    return [format_instant(ms + offset * 1000)[5:16] for ms, offset in found]


@pytest.mark.parametrize("text", [NIGHT, "* 9,18-23 * * *"])
@pytest.mark.parametrize("interval_ms", [15 * MINUTE, 7 * HOUR])
def test_what_is_counted_is_what_a_walk_finds(interval_ms: int, text: str) -> None:
    """Up to each half an hour of two days, by night and by day; also where there is nothing."""
    trigger = every(interval_ms, text)
    due_ms, found = trigger.first_ms(EVENING), list[int]()
    while due_ms is not None and due_ms < EVENING + 3 * DAY:
        found.append(due_ms)
        due_ms = trigger.after_ms(due_ms)
    first = found[0]
    for until_ms in range(first, first + 2 * DAY, 30 * MINUTE):
        passed = [each for each in found[1:] if each <= until_ms]
        expected = (passed[-1] if passed else first, len(passed))
        assert trigger.latest_ms(first, until_ms) == expected
        assert trigger.count(first, until_ms, 1_000) == len(passed)
    for before, after in pairwise(found):
        assert trigger.before_ms(after, EVENING) == before


def test_the_rhythm_goes_on_beneath_what_is_left_out() -> None:
    #        23:30  23:45  00:00  …  05:45  06:00  06:15
    # ─────────●──────●────███████████████────●──────●────►
    assert walked(every(15 * MINUTE), EVENING, 4) == [
        *("07-01T23:30", "07-01T23:45", "07-02T06:00", "07-02T06:15"),
    ]
    # Every 7 hours from 23:15: 06:15, 13:15, 20:15, and 03:15 is left out.
    assert walked(every(7 * HOUR), EVENING, 4) == [
        *("07-02T06:15", "07-02T13:15", "07-02T20:15", "07-03T10:15"),
    ]


def test_every_kind_that_recurs_leaves_out_in_its_own_zone() -> None:
    lines = "DTSTART;TZID=Europe/Paris:20260701T000000 RRULE:FREQ=HOURLY RRULE:FREQ=DAILY;BYHOUR=7"
    for rule in (
        Rule("CRON", "0 * * * *", "Europe/Paris", except_cron="* 0-5,8-23 * * *"),
        Rule("RRULE", lines, except_cron="* 0-5,8-23 * * *"),
        Rule("CRON", "@every 1h", "Europe/Paris", EVENING - 15 * MINUTE,
             except_cron="* 0-5,8-23 * * *"),
    ):  # fmt: skip
        assert walked(trigger_by(rule), EVENING, 4) == [
            *("07-02T06:00", "07-02T07:00", "07-03T06:00", "07-03T07:00"),
        ]


def test_days_count_as_cron_counts_them() -> None:
    both = Rule("CRON", "0 9 * * *", "Europe/Paris", except_cron="* * L * SUN")
    # 31 July is a Friday, and the last day of its month.
    found = walked(trigger_by(both), parse_instant("2026-07-30T12:00:00Z"), 3)
    assert found == ["08-01T09:00", "08-03T09:00", "08-04T09:00"]


@pytest.mark.parametrize(
    ("text", "at", "dues"),
    [
        # 25 October: 02:30 comes twice, and is left out twice.
        ("30 2 * * *", "2026-10-24T23:55:00Z", ["10-25T02:00", "10-25T02:00", "10-25T03:00"]),
        # 28 March: 02:00 to 03:00 does not exist, so nothing of it is left out.
        ("30 2 * * *", "2027-03-28T00:25:00Z", ["03-28T01:30", "03-28T03:00", "03-28T03:30"]),
    ],
)
def test_what_the_clock_shows_counts(text: str, at: str, dues: list[str]) -> None:
    begin_ms = parse_instant(at) // (30 * MINUTE) * 30 * MINUTE
    assert walked(every(30 * MINUTE, text), begin_ms, 3) == dues


def test_what_a_gap_swallows_is_judged_where_it_is_made_up() -> None:
    rule = Rule("CRON", "30 2 * * *", "Europe/Paris", except_cron="* 2 * * *")
    found = walked(trigger_by(rule), parse_instant("2026-12-01T00:00:00Z"), 2)
    assert found == ["03-28T03:00", "03-26T03:00"]


@pytest.mark.parametrize(("text", "looks"), [(NIGHT, 2), ("* * * 7-12 *", 2), ("* * 2-30 * *", 2)])
def test_a_stretch_is_passed_over_at_once(
    text: str, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    after_ms = Every.after_ms

    def counted(self: Every, nominal_ms: int) -> int | None:
        asked.append(nominal_ms)
        return after_ms(self, nominal_ms)

    monkeypatch.setattr(Every, "after_ms", counted)
    trigger = every(1, text, start_at=None)
    assert trigger.after_ms(parse_instant("2026-07-02T00:00:00+02:00") - 1) is not None
    assert len(asked) <= looks


@pytest.mark.parametrize(
    ("step_ms", "is_found"), [(15, True), (14, False)], ids=["4000 in a row", "4286 in a row"]
)
def test_so_many_in_a_row_are_passed_over(step_ms: int, *, is_found: bool) -> None:
    """Every two minutes and a little: the odd minutes, then all even ones, which are left out."""
    last_ms = parse_instant("2026-07-01T12:01:00Z") + MINUTE - step_ms
    trigger = every(2 * MINUTE + step_ms, "*/2 * * * *")
    found_ms = trigger.after_ms(last_ms)
    if not is_found:
        assert found_ms is None
        assert "4000 runs" in trigger.why_over(last_ms)
        return
    assert found_ms == last_ms + (excepting.MOST_PASSED + 1) * (2 * MINUTE + step_ms)
    assert trigger.why_over(last_ms) == ""


def test_a_long_search_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    holds = LeftOut.holds

    def counted(self: LeftOut, ms: int) -> bool:
        asked.append(ms)
        return holds(self, ms)

    monkeypatch.setattr(LeftOut, "holds", counted)
    trigger = trigger_by(Rule("CRON", "0 0 * * *", None, except_cron="0-58 * * * *"))
    assert trigger.after_ms(EVENING) is None
    looks = len(asked)
    assert looks > excepting.LONG
    assert trigger.after_ms(EVENING) is None
    assert trigger.why_over(EVENING)
    assert len(asked) == looks
    for number in range(3 * excepting.LONG_ONES):
        assert trigger.after_ms(EVENING + number * DAY) is None
    assert isinstance(trigger, excepting.Excepting)
    assert len(trigger._long) <= excepting.LONG_ONES


def test_nothing_is_found_where_all_is_left_out() -> None:
    for text in ("* * * * *", "*/2 * * * *", "* * 1-31 * SUN"):
        trigger = every(2 * MINUTE, text, start_at=EVENING // DAY * DAY)
        assert trigger.first_ms(EVENING) is None
        assert trigger.why_over(EVENING // DAY * DAY)
    rare = Rule("CRON", "0 3 29 2 *", "Europe/Paris", except_cron=NIGHT)
    assert trigger_by(rare).first_ms(EVENING) is None


def test_a_rule_that_ends_by_itself_has_no_other_reason() -> None:
    trigger = every(HOUR, end_at=EVENING + HOUR // 2)
    assert trigger.first_ms(EVENING) is None
    assert trigger.why_over(EVENING) == ""


def test_what_lies_before_is_not_what_was_left_out() -> None:
    trigger = every(15 * MINUTE)
    six_ms = parse_instant("2026-07-02T06:00:00+02:00")
    assert trigger.before_ms(six_ms, EVENING) == parse_instant("2026-07-01T23:45:00+02:00")
    later_ms = parse_instant("2026-07-02T01:00:00+02:00")
    assert trigger.before_ms(six_ms, later_ms) == later_ms


def test_a_year_is_counted_by_days(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    latest_ms = Every.latest_ms

    def counted(self: Every, after_ms: int, until_ms: int) -> tuple[int, int]:
        asked.append(until_ms)
        return latest_ms(self, after_ms, until_ms)

    monkeypatch.setattr(Every, "latest_ms", counted)
    trigger = every(1000, "*/2 * * * *", timezone="UTC")
    begin_ms = parse_instant("2026-01-01T00:00:59Z") - MINUTE
    last_ms, count = trigger.latest_ms(begin_ms, begin_ms + 365 * DAY)
    assert (last_ms, count) == (begin_ms + 365 * DAY, 365 * 43_200)
    assert len(asked) < 5_000


def test_what_is_left_out_belongs_to_the_rhythm() -> None:
    trigger = every(HOUR)
    assert trigger.same_cadence(every(HOUR, "*  0-5 * * *", max_fires=3))
    assert not trigger.same_cadence(every(HOUR, "* 0-4 * * *"))
    assert not trigger.same_cadence(every(HOUR, timezone="Asia/Tokyo"))
    assert not trigger.same_cadence(trigger.whole)


def test_an_interval_follows_new_zone_data(monkeypatch: pytest.MonkeyPatch) -> None:
    six_ms = parse_instant("2026-07-02T06:00:00+02:00")
    assert every(15 * MINUTE).rederived_ms(six_ms, EVENING, EVENING) == six_ms
    monkeypatch.setattr(excepting, "zone", lambda _: zone("Europe/London"))
    assert every(15 * MINUTE).rederived_ms(six_ms, EVENING, EVENING) == six_ms + HOUR
    assert not every(15 * MINUTE).holds(six_ms)


def test_what_is_left_out_begins_on_the_wall_of_its_own_time() -> None:
    """Also some days after a clock has changed, and not before the change on its very day."""
    left_out = LeftOut("* 1-9 * * *", zone("Europe/Paris"))
    for day, begins in (
        ("2026-03-28", "2026-03-28T01:00:00+01:00"),
        ("2026-03-29", "2026-03-29T03:00:00+02:00"),
        ("2026-03-30", "2026-03-30T01:00:00+02:00"),
        ("2026-04-08", "2026-04-08T01:00:00+02:00"),
        ("2026-10-26", "2026-10-26T01:00:00+01:00"),
    ):
        offset = begins[-6:]
        at_ms = parse_instant(f"{day}T09:30:00.250{offset}")
        assert left_out.begin_ms(at_ms) == parse_instant(begins)
        assert left_out.holds(at_ms)


def test_schedules_of_one_rule_have_rhythms_of_their_own() -> None:
    """One trigger serves both, and remembers what it counted of days that are alike."""
    trigger = every(7 * HOUR)
    for phase in (0, 10 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR):
        first = EVENING + phase
        whole = range(first, first + 20 * DAY, 7 * HOUR)
        free = [each for each in whole if not trigger._left_out.holds(each)][:40]  # type: ignore[attr-defined]
        for until_ms in (free[3], free[20], free[39]):
            passed = [each for each in free if first < each <= until_ms]
            assert trigger.latest_ms(first, until_ms) == (until_ms, len(passed))


def test_an_instant_a_millisecond_before_a_night_came_before() -> None:
    """Each second, 999 ms after it: the last one of an evening is 23:59:59.999."""
    start_ms = parse_instant("2026-07-01T23:00:00.999+02:00")
    trigger = every(1_000, start_at=start_ms)
    morning_ms = parse_instant("2026-07-02T06:00:00.999+02:00")
    evening_ms = parse_instant("2026-07-01T23:59:59.999+02:00")
    assert trigger.after_ms(evening_ms) == morning_ms
    assert trigger.before_ms(morning_ms, start_ms) == evening_ms
    assert trigger.before_ms(morning_ms, evening_ms) == evening_ms
