"""RRULE: what a rule says, what it may not say, and python-dateutil's answers to the same rules."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr  # type: ignore[import-untyped,unused-ignore]
from hypothesis import given, settings
from hypothesis import strategies as st

from belfry.schedules.checks import RequestChecks
from belfry.schedules.fields import EMPTY
from belfry.schedules.instants import format_instant, parse_instant
from belfry.schedules.preview import Preview, preview
from belfry.schedules.rule import decode_rule, encode_rule, rule_of
from belfry.schedules.triggers import Trigger, trigger_by
from belfry.schedules.triggers.registry import RECURRING
from belfry.schedules.triggers.rrule import DAYS
from belfry.schedules.triggers.rule import Rule

NOW: Final = parse_instant("2027-01-15T08:00:00Z")
ZONES: Final = ("UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia")
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


def test_a_time_that_does_not_exist_is_read_by_the_offset_before_the_gap() -> None:
    found = trigger("FREQ=DAILY", "2027-03-13T02:30:00-05:00", "America/New_York")
    assert shown(found, 3) == ["2027-03-13T07:30", "2027-03-14T07:30", "2027-03-15T06:30"]


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
        ("", "no part of the form"),
        ("DAILY", "no part of the form"),
        ("INTERVAL=2", "FREQ= is not known"),
        ("FREQ=MONTHLY", "FREQ=MONTHLY is not known"),
        ("FREQ=SECONDLY", "FREQ=SECONDLY is not known"),
        ("FREQ=DAILY;BYMONTHDAY=1", "BYMONTHDAY is not known"),
        ("FREQ=WEEKLY;BYDAY=1MO", "'1MO' is none of MO"),
        ("FREQ=WEEKLY;BYDAY=", "no part of the form"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL=0 is not allowed"),
        ("FREQ=DAILY;INTERVAL=99999", "1 to 36525"),
        ("FREQ=DAILY;INTERVAL=²", "INTERVAL=² is not allowed"),
        ("FREQ=DAILY;COUNT=2;UNTIL=20400101T000000Z", "COUNT and UNTIL"),
        ("FREQ=DAILY;UNTIL=20400101", "no instant of UTC"),
        ("FREQ=DAILY;FREQ=WEEKLY", "FREQ is given twice"),
        ("DTSTART:20270101T000000Z\nRRULE:FREQ=DAILY", "FREQ= is not known"),
        ("FREQ=DAILY;X=" + "y" * 300, "more than 255 bytes"),
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
    assert found.words.startswith("Every 2 weeks on Mo, Tu, 9 in all, UTC, from 2027-01-15")
    assert [each.code for each in found.warnings] == ["start_is_not_due"]


def test_a_rule_that_slept_for_years_costs_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    found = trigger("FREQ=DAILY", "2001-09-10T00:00:00Z")
    assert found.first_ms(NOW) == parse_instant("2027-01-16T00:00:00Z")
    asked_for: list[int] = []
    kind: Any = type(found)
    instant_ms = kind._instant_ms

    def counted(self: Any, number: int) -> Any:
        asked_for.append(number)
        return instant_ms(self, number)

    monkeypatch.setattr(kind, "_instant_ms", counted)
    assert found.latest_ms(ACCEPTED, NOW)[1] == 9259
    assert len(asked_for) < 10


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


def text_of(freq: str, interval: int, days: list[str], week: str, end: str) -> str:
    by_day = f";BYDAY={','.join(days)}" if days else ""
    return f"FREQ={freq};INTERVAL={interval}{by_day};WKST={week}{end}"


TEXTS: Final = st.builds(
    text_of,
    st.sampled_from(["DAILY", "WEEKLY"]),
    # None by which a day of the week never comes: dateutil looks for it until the year 9999.
    st.sampled_from([1, 2, 3, 4, 5, 6, 8, 15]),
    st.lists(st.sampled_from(DAYS), max_size=4, unique=True),
    st.sampled_from(DAYS),
    st.sampled_from(["", ";COUNT=1", ";COUNT=7", ";UNTIL=20120401T120000Z"]),
)
STARTS: Final = st.integers(parse_instant("2011-01-01T00:00Z"), parse_instant("2012-06-01T00:00Z"))


@settings(deadline=None)
@given(TEXTS, STARTS, st.sampled_from(ZONES))
def test_dateutil_says_the_same(text: str, start_ms: int, zone: str) -> None:
    """Whatever the rule and the zone, over a year in which Samoa left out a day."""
    start_ms -= start_ms % 1000
    start = datetime.fromtimestamp(start_ms // 1000, ZoneInfo(zone))
    expected: list[int] = []
    for each in islice(rrulestr(text, dtstart=start), 40):
        due_ms = int(each.timestamp()) * 1000
        if due_ms not in expected[-1:]:
            expected.append(due_ms)
    found = walked(trigger_by(Rule("RRULE", text, zone, start_at=start_ms)), len(expected))
    assert found == expected
