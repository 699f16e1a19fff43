"""RRULE: what a rule says, and what it may not say; `tests/property` compares it with dateutil."""

from __future__ import annotations

from time import process_time
from typing import Any, Final

import pytest

from belfry.schedules.checks import RequestChecks
from belfry.schedules.fields import EMPTY
from belfry.schedules.instants import format_instant, parse_instant
from belfry.schedules.preview import Preview, preview
from belfry.schedules.rule import decode_rule, encode_rule, rule_of
from belfry.schedules.triggers import Trigger, trigger_by
from belfry.schedules.triggers.registry import RECURRING
from belfry.schedules.triggers.rule import Rule

NOW: Final = parse_instant("2027-01-15T08:00:00Z")
ACCEPTED: Final = 1_000_000_000_000


def trigger(text: str, start: str, zone: str = "UTC", **more: Any) -> Trigger:
    return trigger_by(Rule("RRULE", text, zone, start_at=parse_instant(start), **more))


def walked(found: Trigger, most: int, accepted_ms: int = ACCEPTED) -> list[int]:
    instants: list[int] = []
    due_ms = found.first_ms(accepted_ms)
    while due_ms is not None and len(instants) < most:
        instants.append(due_ms)
        due_ms = found.after_ms(due_ms)
    return instants


def shown(found: Trigger, most: int = 4) -> list[str]:
    return [format_instant(each)[:16] for each in walked(found, most)]


def asked(**fields: Any) -> Any:
    names = {"tenant": "demo", "schedule_id": "a", "kind": "RRULE", "start_at": NOW}
    return {**EMPTY, **names, **fields}


def test_days_keep_their_time_on_the_wall() -> None:
    found = trigger("FREQ=DAILY", "2027-03-27T09:00:00+01:00", "Europe/Paris")
    assert shown(found, 3) == ["2027-03-27T08:00", "2027-03-28T07:00", "2027-03-29T07:00"]


def test_a_week_begins_as_wkst_says() -> None:
    """The example of RFC 5545: every other week on Tuesday and Sunday, from 5 August 1997."""
    start, text = "2027-08-03T09:00:00Z", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST="
    days = [each[5:10] for each in shown(trigger(text + "MO", start))]
    assert days == ["08-03", "08-08", "08-17", "08-22"]
    days = [each[5:10] for each in shown(trigger(text + "SU", start))]
    assert days == ["08-03", "08-15", "08-17", "08-29"]


def test_a_time_that_does_not_exist_fires_at_the_end_of_the_gap() -> None:
    """As cron does: 02:30 at 03:00, once for all that lies in the gap."""
    found = trigger("FREQ=DAILY;BYMINUTE=0,30", "2027-03-14T01:45:00-05:00", "America/New_York")
    assert shown(found, 2) == ["2027-03-15T05:00", "2027-03-15T05:30"]
    found = trigger("FREQ=DAILY;BYMINUTE=0,30", "2027-03-13T02:30:00-05:00", "America/New_York")
    assert shown(found, 3) == ["2027-03-13T07:30", "2027-03-14T07:00", "2027-03-15T06:00"]


def test_a_cadence_passes_over_a_gap_and_fires_in_both_of_two_hours() -> None:
    found = trigger("FREQ=HOURLY", "2027-03-14T00:15:00-05:00", "America/New_York")
    assert shown(found, 3) == ["2027-03-14T05:15", "2027-03-14T06:15", "2027-03-14T07:15"]
    found = trigger("FREQ=HOURLY", "2027-11-07T00:15:00-04:00", "America/New_York")
    days = ["2027-11-07T04:15", "2027-11-07T05:15", "2027-11-07T06:15", "2027-11-07T07:15"]
    assert shown(found, 4) == days


def test_a_start_within_a_gap_keeps_its_time_on_the_wall() -> None:
    text = "DTSTART;TZID=America/New_York:20270314T023000\nRRULE:FREQ=DAILY"
    found = trigger_by(Rule("RRULE", text))
    assert shown(found, 2) == ["2027-03-14T07:00", "2027-03-15T06:30"]


def test_a_time_that_comes_twice_counts_the_first_time() -> None:
    found = trigger("FREQ=DAILY", "2027-11-06T01:30:00-04:00", "America/New_York")
    assert shown(found, 3) == ["2027-11-06T05:30", "2027-11-07T05:30", "2027-11-08T06:30"]
    second = trigger("FREQ=DAILY", "2027-11-07T01:30:00-05:00", "America/New_York")
    assert shown(second, 2) == ["2027-11-07T06:30", "2027-11-08T06:30"]


def test_the_milliseconds_of_the_start_stay() -> None:
    found = trigger("FREQ=WEEKLY", "2027-01-01T00:00:00.250Z")
    assert all(each % 1000 == 250 for each in walked(found, 5))


def test_count_counts_from_the_start_and_not_from_the_acceptance() -> None:
    found = trigger("FREQ=DAILY;COUNT=5", "2027-01-01T00:00:00Z")
    assert len(walked(found, 99, parse_instant("2027-01-03T12:00:00Z"))) == 2
    assert walked(found, 99, parse_instant("2027-01-05T00:00:00Z")) == []


@pytest.mark.parametrize(("end", "count"), [("20270103T000000Z", 3), ("20270102T235959Z", 2)])
def test_until_is_inclusive(end: str, count: int) -> None:
    assert len(walked(trigger(f"FREQ=DAILY;UNTIL={end}", "2027-01-01T00:00:00Z"), 9)) == count


def test_another_count_is_another_rhythm() -> None:
    start = "2027-01-01T00:00:00Z"
    same = trigger("rrule:freq=daily", start).same_cadence(trigger("FREQ=DAILY", start))
    other = trigger("FREQ=DAILY;COUNT=2", start).same_cadence(trigger("FREQ=DAILY", start))
    assert (same, other) == (True, False)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it has no rule"),
        ("DAILY", "no part of the form"),
        ("INTERVAL=2", "FREQ= is not known"),
        ("FREQ=MONTLY", "did you mean MONTHLY?"),
        ("FREQ=DAILY;BYMONTDAY=1", "BYMONTDAY is not known"),
        ("FREQ=DAILY;BYMONTDAY=1", "did you mean BYMONTHDAY?"),
        ("FREQ=WEEKLY;BYDAY=1MO", "BYDAY with numbers has no meaning with FREQ=WEEKLY"),
        ("FREQ=YEARLY;BYWEEKNO=3;BYDAY=1MO", "no meaning with BYWEEKNO"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY has no meaning with FREQ=WEEKLY"),
        ("FREQ=DAILY;BYYEARDAY=1", "BYYEARDAY has no meaning with FREQ=DAILY"),
        ("FREQ=MONTHLY;BYWEEKNO=1", "BYWEEKNO has no meaning with FREQ=MONTHLY"),
        ("FREQ=MONTHLY;BYSETPOS=1", "BYSETPOS chooses from what another BY-part gives"),
        ("FREQ=MONTHLY;BYDAY=XX", "day 'XX' is none of MO"),
        ("FREQ=MONTHLY;BYDAY=54MO", "day '54MO' is none of MO"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "1 to 31 or -31 to -1"),
        ("FREQ=MONTHLY;BYMONTH=-1", "BYMONTH=-1 is not allowed: 1 to 12"),
        ("FREQ=DAILY;BYSECOND=60", "0 to 59"),
        ("FREQ=DAILY;BYHOUR=1,x", "BYHOUR=X is not allowed"),
        ("FREQ=WEEKLY;BYDAY=", "no part of the form"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL=0 is not allowed"),
        ("FREQ=DAILY;INTERVAL=99999", "1 to 36525"),
        ("FREQ=DAILY;INTERVAL=²", "INTERVAL=² is not allowed"),
        ("FREQ=DAILY;COUNT=2;UNTIL=20400101T000000Z", "COUNT and UNTIL"),
        ("FREQ=DAILY;UNTIL=2040", "is no time"),
        ("FREQ=DAILY;FREQ=WEEKLY", "FREQ is given twice"),
        ("FREQ=DAILY;COUNT=2147483647", "end is not looked for"),
        ("FREQ=MONTHLY;BYMONTHDAY=31;COUNT=100000", "end is not looked for"),
        ("RULE:FREQ=DAILY", "'RULE' is not known: DTSTART"),
        ("BEGIN:VEVENT", "'BEGIN' is not known"),
        ("EXDATE:20270101T000000Z", "it has no rule"),
        ("FREQ=DAILY RDATE;VALUE=PERIOD:20270101T000000Z/PT1H", "'VALUE=PERIOD' of RDATE"),
        ("FREQ=DAILY RDATE:18000101T000000Z", "from 1900 on"),
        ("FREQ=DAILY RDATE;TZID=Europe/Paris:20270101T000000Z", "is no time"),
        ("FREQ=DAILY EXDATE;VALUE=DATE:20270101T000000", "is no date"),
        ("DTSTART:20270101T000000Z DTSTART:20270101T000000Z FREQ=DAILY", "DTSTART is given twice"),
        (
            "RDATE;TZID=Asia/Tokyo:20270101T010203 EXDATE;TZID=Asia/Seoul:20270101T000000",
            "Asia/Seoul and Asia/Tokyo",
        ),
        ("FREQ=DAILY " * 9, "it has 9 rules; at most 8"),
        ("FREQ=DAILY;X=" + "y" * 4_000, "at most 4000"),
    ],
)
def test_what_is_not_known_is_refused_by_name(text: str, why: str) -> None:
    found = RequestChecks().problem(asked(rrule=text), NOW)
    assert found is not None
    assert found.code == "bad_rule"
    assert why in found.reason


def test_a_rule_needs_its_start() -> None:
    found = RequestChecks().problem(asked(rrule="FREQ=DAILY", start_at=None), NOW)
    assert found is not None
    assert "DTSTART" in found.reason


@pytest.mark.parametrize(
    "text",
    ["FREQ=DAILY;INTERVAL=7;BYDAY=MO", "FREQ=DAILY;UNTIL=20200101T000000Z", "FREQ=DAILY;COUNT=1"],
)
def test_a_rule_that_is_never_due_is_refused(text: str) -> None:
    found = RequestChecks().problem(asked(rrule=text), NOW + 1)
    assert found is not None
    assert found.code == "never_fires"


def test_a_preview_says_where_the_start_is_no_occurrence() -> None:
    found = preview(asked(rrule="FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,MO;COUNT=9"), NOW, 3)
    assert isinstance(found, Preview)
    words = "Every 2 weeks, on Monday and Tuesday, 9 in all, UTC, from 2027-01-15"
    assert found.words.startswith(words)
    assert [each.code for each in found.warnings] == ["start_is_not_due"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("FREQ=DAILY", 9258),
        ("FREQ=DAILY;BYHOUR=0,9,17", 27774),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", 304),
        ("FREQ=MINUTELY;INTERVAL=7", (9258 * 1440 + 480) // 7),
    ],
)
def test_a_rule_that_slept_for_years_is_counted_by_its_days(text: str, count: int) -> None:
    """A quarter of a century, and less than 10 000 looks for a day."""
    found = trigger(text, "2001-09-10T00:00:00Z")
    after_ms = parse_instant("2001-09-10T00:00:00Z")
    began = process_time()
    assert found.latest_ms(after_ms, parse_instant("2027-01-15T08:00:00Z"))[1] == count
    assert process_time() - began < 0.5


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11;COUNT=100001",
        "FREQ=MINUTELY;COUNT=100001",
        "FREQ=SECONDLY;INTERVAL=7;COUNT=100001",
        "FREQ=WEEKLY;BYDAY=MO,FR;BYHOUR=9,17;COUNT=4001",
        "FREQ=YEARLY;BYMONTH=1,7;BYHOUR=0,1,2,3,4,5,6,7;BYMINUTE=0,20,40;COUNT=1001",
    ],
)
def test_an_instant_after_very_many_costs_no_walk(text: str) -> None:
    """COUNT is exact, and the next instant of a rule that fired 100 000 times is found at once."""
    found: Any = trigger(text, "2001-01-01T00:00:00Z")
    most = int(text.rpartition("=")[2])
    start_ms, far_ms = parse_instant("2001-01-01T00:00:00Z"), parse_instant("2050-01-01T00:00:00Z")
    last_ms, count = found.latest_ms(start_ms - 1, far_ms)
    assert count == most
    assert found.after_ms(last_ms) is None
    before_ms, _ = found.latest_ms(start_ms - 1, last_ms - 1)
    again = trigger(text, "2001-01-01T00:00:00Z")
    began = process_time()
    assert again.after_ms(before_ms) == last_ms
    assert process_time() - began < 0.05


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=4,6,9,11",
        "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=SECONDLY;INTERVAL=2;BYSECOND=1",
        "FREQ=SECONDLY;INTERVAL=122;BYMINUTE=1;BYSECOND=1,3,5,7,9",
        "FREQ=MINUTELY;INTERVAL=14;BYMINUTE=1,3,5,7,9,11,13,15,17,19,21",
        "FREQ=HOURLY;INTERVAL=35064;BYHOUR=5",
        "FREQ=SECONDLY;BYSETPOS=2;BYSECOND=0",
        "FREQ=DAILY EXRULE:FREQ=HOURLY",
        "FREQ=SECONDLY EXRULE:FREQ=SECONDLY",
        "FREQ=MINUTELY;INTERVAL=7 EXRULE:FREQ=MINUTELY",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;BYHOUR=1,2,3;BYMINUTE=1,2,3;BYSETPOS=1,-1",
        "FREQ=YEARLY;BYWEEKNO=1;BYMONTH=6",
        "FREQ=YEARLY;INTERVAL=36525;BYMONTHDAY=30;BYMONTH=2",
        "FREQ=WEEKLY;INTERVAL=251;BYMONTH=4,12;BYDAY=MO,TU,WE,TH;BYSETPOS=-225",
    ],
)
def test_a_rule_that_never_matches_is_refused_in_some_milliseconds(text: str) -> None:
    began = process_time()
    found = RequestChecks().problem(asked(rrule=text), NOW)
    assert process_time() - began < 0.15
    assert found is not None
    assert found.code == "never_fires"


HOURS: Final = ",".join(str(hour) for hour in range(24))
HALF: Final = ",".join(str(minute) for minute in range(0, 56, 4))


@pytest.mark.parametrize(
    "text",
    [
        "RRULE:FREQ=SECONDLY;INTERVAL=7 RRULE:FREQ=SECONDLY;INTERVAL=143 EXRULE:FREQ=SECONDLY",
        f"FREQ=SECONDLY;INTERVAL=257;BYHOUR={HOURS};BYMINUTE={HALF};COUNT=2000000000",
    ],
)
def test_a_rule_whose_times_take_long_to_find_is_refused_at_once(text: str) -> None:
    """A partition computes for all of its tenants, and they would wait."""
    began = process_time()
    found = RequestChecks().problem(asked(rrule=text), NOW)
    assert process_time() - began < 0.3
    assert found is not None
    assert found.code == "bad_rule"
    assert "is not looked for" in found.reason


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=SECONDLY;INTERVAL=7 EXRULE:FREQ=DAILY;BYHOUR=9",
        "FREQ=SECONDLY;INTERVAL=10 EXRULE:FREQ=SECONDLY;BYHOUR=0",
        "FREQ=MINUTELY;INTERVAL=7 RRULE:FREQ=HOURLY;INTERVAL=5 EXRULE:FREQ=WEEKLY;BYDAY=SA,SU",
        "FREQ=YEARLY;BYDAY=MO;BYSETPOS=1,-1 RRULE:FREQ=DAILY;BYHOUR=9,17",
        "FREQ=SECONDLY;INTERVAL=257;COUNT=100000",
    ],
)
def test_rules_that_are_found_quickly_are_taken(text: str) -> None:
    assert RequestChecks().problem(asked(rrule=text), NOW) is None


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("FREQ=SECONDLY;INTERVAL=7", 1),
        ("FREQ=DAILY;BYHOUR=9,17", 0),
        ("RRULE:FREQ=DAILY EXRULE:FREQ=WEEKLY;BYDAY=SU", 1),
        ("RRULE:FREQ=SECONDLY;INTERVAL=7 RRULE:FREQ=SECONDLY;INTERVAL=143", 130),
    ],
)
def test_what_counting_looks_at_follows_from_the_text(text: str, looks: int) -> None:
    assert trigger(text, "2027-01-01T00:00:00Z").looks_a_day == looks


def test_lines_of_a_text() -> None:
    """Two rules, one date more, and some less: a union without what is left out."""
    text = (
        "DTSTART;TZID=Europe/Paris:20270104T090000\r\n"
        "RRULE:FREQ=WEEKLY;BYDAY=MO,WE;\r\n UNTIL=20270120\r\n"
        "RRULE:FREQ=DAILY;INTERVAL=2;BYHOUR=9,18;COUNT=4\n"
        "RDATE:20270105T120000,20270106T090000\n"
        "EXDATE;VALUE=DATE:20270111\n"
        "EXDATE:20270106T170000Z\n"
        "EXRULE:FREQ=MONTHLY;BYMONTHDAY=18"
    )
    found = trigger_by(Rule("RRULE", text))
    assert shown(found, 99) == [
        "2027-01-04T08:00", "2027-01-04T17:00", "2027-01-05T11:00", "2027-01-06T08:00",
        "2027-01-13T08:00", "2027-01-20T08:00",
    ]  # fmt: skip
    assert found.latest_ms(ACCEPTED, parse_instant("2030-01-01T00:00Z"))[1] == 6


def test_a_text_of_dates_alone() -> None:
    found = trigger_by(Rule("RRULE", "DTSTART:20270101T000000Z RDATE:20270301T120000Z"))
    assert shown(found) == ["2027-03-01T12:00"]


def test_a_zone_is_named_once() -> None:
    text = "DTSTART;TZID=Europe/Paris:20270104T090000 FREQ=DAILY"
    found = RequestChecks().problem(asked(rrule=text, start_at=None, timezone="Asia/Tokyo"), NOW)
    assert found is not None
    assert "its TZID is Europe/Paris, and timezone is Asia/Tokyo" in found.reason
    assert RequestChecks().problem(asked(rrule=text, start_at=None), NOW) is None
    wrong = RequestChecks().problem(asked(rrule=text.replace("Paris", "Pariss")), NOW)
    assert wrong is not None
    assert wrong.code == "bad_timezone"


def test_a_preview_shows_times_of_the_zone_in_the_text() -> None:
    text = "DTSTART;TZID=Europe/Paris:20270704T090000 FREQ=DAILY"
    found = preview(asked(rrule=text, start_at=None), NOW, 1)
    assert isinstance(found, Preview)
    assert found.timezone == "Europe/Paris"
    assert found.occurrences[0].local == "2027-07-04T09:00:00.000+02:00"


def test_a_long_text_lies_at_rest_whole() -> None:
    text = "FREQ=DAILY EXDATE:" + ",".join(f"202702{day:02}T080000Z" for day in range(1, 29))
    rule = Rule("RRULE", text, "Europe/Paris", start_at=NOW, misfire="SKIP")
    assert len(text) > 255
    assert decode_rule(encode_rule(rule)) == rule


WORDS: Final = {
    "FREQ=MONTHLY;BYDAY=-1FR": "Every month, on the last Friday",
    "FREQ=YEARLY;BYMONTH=3;BYDAY=2SU,-2MO;BYHOUR=9":
        "Every year, in March, on the 2nd to last Monday and the 2nd Sunday, at hour 9",
    "FREQ=MINUTELY;INTERVAL=15;BYHOUR=8,9": "Every 15 minutes, at hour 8 and 9",
    "FREQ=DAILY;UNTIL=20400101T000000Z": "Every day, until 2040-01-01 00:00:00Z",
    "FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1":
        "Every month, on Monday and Tuesday, only the last of each month",
    "FREQ=DAILY EXRULE:FREQ=WEEKLY;BYDAY=SU EXDATE;VALUE=DATE:20270101":
        "Every day; not every week, on Sunday; not on 2027-01-01",
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), WORDS.items())
def test_words(text: str, words: str) -> None:
    found = preview(asked(rrule=text), NOW, 1)
    assert isinstance(found, Preview)
    assert found.words.startswith(f"{words}, UTC")


def test_frozen_bytes() -> None:
    """Written once and never changed: a store of any release holds such bytes."""
    rule = Rule("RRULE", "FREQ=DAILY", "Europe/Paris", start_at=1_800_000_000_000)
    encoded = bytes.fromhex(
        "01 04 30 02 00 00 01 a3 18 5c 50 00 0c 45 75 72 6f 70 65 2f 50 61 72 69 73"
        " 0a 46 52 45 51 3d 44 41 49 4c 59"
    )
    assert encode_rule(rule) == encoded
    assert decode_rule(encoded) == rule


def test_the_registry_makes_it() -> None:
    assert RECURRING["RRULE"].trigger(rule_of(asked(rrule="FREQ=DAILY"))).first_ms(NOW - 1) == NOW
