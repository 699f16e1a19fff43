"""A rule in words, with its instants and with what to know about it."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.days_off import packed_days
from belfry.schedules.fields import EMPTY
from belfry.schedules.instants import format_instant, parse_instant
from belfry.schedules.preview import MOST, Preview, local_time, preview
from belfry.schedules.rejections import Rejection

NOW = parse_instant("2026-03-01T12:00:00Z")


def asked(count: int = 5, shown_in: str | None = None, **fields: Any) -> Preview:
    request: Any = {**EMPTY, **fields}
    found = preview(request, NOW, count, shown_in)
    assert isinstance(found, Preview)
    return found


def cron(text: str, timezone: str | None = None, **more: Any) -> Preview:
    return asked(kind="CRON", cron=text, timezone=timezone, **more)


def test_instants_come_with_the_local_time_of_their_day() -> None:
    found = cron("0 9 29 3,4 *", "Europe/Paris", count=2)
    shown = [(format_instant(each.scheduled_ms), each.local) for each in found.occurrences]
    assert shown == [
        ("2026-03-29T07:00:00.000Z", "2026-03-29T09:00:00.000+02:00"),
        ("2026-04-29T07:00:00.000Z", "2026-04-29T09:00:00.000+02:00"),
    ]


def test_a_local_time_west_of_utc() -> None:
    assert local_time(NOW + 250, -12_600) == "2026-03-01T08:30:00.250-03:30"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "AT", "at": NOW}, "Once, at 2026-03-01T12:00:00.000Z"),
        ({"kind": "AFTER", "delay_ms": 90_000}, "Once, 1m30s after Kafka has the request"),
        (
            {"kind": "EVERY", "interval_ms": 5_000, "start_at": NOW, "max_fires": 3},
            "Every 5s, from 2026-03-01T12:00:00.000Z, 3 times",
        ),
        (
            {"kind": "CRON", "cron": "*/15 8-18 * * mon-fri", "timezone": "Asia/Tokyo"},
            "Every 15 minutes, between 08:00 and 18:59, Monday through Friday, Asia/Tokyo",
        ),
        ({"kind": "CRON", "cron": "@daily", "jitter_ms": 60_000},
         "At 00:00, UTC, up to 1m later each time"),
        ({"kind": "CRON", "cron": "0 0 lw * *"},
         "At 00:00, on the last weekday of the month, UTC"),
        ({"kind": "EVERY", "interval_ms": 900_000, "except_cron": "* 0-5 * * *", "max_fires": 3},
         "Every 15m; left out: every minute, between 00:00 and 05:59, UTC, 3 times"),
        ({"kind": "CRON", "cron": "0 9 * * *", "except_cron": "* * * * 0,6"},
         "At 09:00, UTC; left out: every minute, only on Sunday and Saturday"),
    ],
)  # fmt: skip
def test_words(fields: dict[str, Any], words: str) -> None:
    assert asked(**fields).words == words


@pytest.mark.parametrize(
    ("found", "codes"),
    [
        (cron("0 9 * * *"), []),
        (cron("0 9 * * *", "Europe/Paris"), []),
        (cron("30 2 * * *", "Europe/Paris"), ["clock_gap", "clock_repeat", "clock_gap"]),
        (cron("0 3 * * *", "Europe/Paris"), []),
        (cron("30 2 * * *", "Europe/Paris", except_cron="* 2 * * *"), ["clock_gap", "clock_gap"]),
        (cron("30 2 * * *", "Europe/Paris", except_cron="* 3 * * *"), ["clock_repeat"]),
        (cron("0,30 2 * * *", "Europe/Paris", except_cron="0-29 2-3 * * *"), ["clock_repeat"]),
        (cron("* * * * *", except_cron="* * * * *"), ["never_fires"]),
        (cron("0 0 13 * FRI"), ["either_day"]),
        (cron("0 0 13 * *", end_at=NOW + 1), ["never_fires"]),
        (asked(kind="EVERY", interval_ms=999), ["very_frequent"]),
        (asked(kind="EVERY", interval_ms=60_000, jitter_ms=60_000), []),
        (asked(kind="EVERY", interval_ms=60_000, jitter_ms=60_001), ["jitter_overtakes"]),
        (asked(1, kind="EVERY", interval_ms=60_000, jitter_ms=60_001), ["jitter_overtakes"]),
        (asked(kind="EVERY", interval_ms=60_000, jitter_ms=60_001, max_fires=1), []),
        (cron("0 9,10 * * *", jitter_ms=3_600_001), ["jitter_overtakes"]),
        (asked(kind="AFTER", delay_ms=5, jitter_ms=60_001), []),
        (asked(kind="EVERY", interval_ms=1_000), []),
        (asked(kind="AT", at=NOW), ["in_the_past"]),
    ],
)
def test_warnings(found: Preview, codes: list[str]) -> None:
    assert [each.code for each in found.warnings] == codes


@pytest.mark.parametrize(
    ("text", "gap", "repeat"),
    [
        ("30 2 * * *", "fires once, at 2026-03-29T01:00:00.000Z", "the first time only"),
        ("*/30 * * * *", "passed over", "each time"),
        ("*/30 2 * * *", "fires once, at 2026-03-29T01:00:00.000Z", "each time"),
    ],
)
def test_changed_clocks_in_words(text: str, gap: str, repeat: str) -> None:
    at_gap, at_repeat = cron(text, "Europe/Paris").warnings[:2]
    assert at_gap.text.startswith("2026-03-29 02:")
    assert gap in at_gap.text
    assert at_repeat.text.startswith("2026-10-25 02:")
    assert repeat in at_repeat.text


def test_local_times_of_an_interval_are_of_the_zone_in_which_it_leaves_out() -> None:
    night = {"except_cron": "* 0-5 * * *", "timezone": "Asia/Tokyo"}
    found = asked(1, "Europe/Paris", kind="EVERY", interval_ms=3_600_000, **night)
    assert (found.timezone, found.occurrences[0].local[11:16]) == ("Asia/Tokyo", "22:00")


def test_why_it_is_never_due() -> None:
    (ends,) = cron("0 9 * * *", end_at=NOW + 1).warnings
    (left_out,) = cron("0 9 * * *", except_cron="* 9 * * *").warnings
    assert "between now and its end" in ends.text
    assert "except_cron leaves out" in left_out.text


def test_what_the_engine_would_refuse_is_refused() -> None:
    request: Any = {**EMPTY, "kind": "CRON", "cron": "61 * * * *"}
    found = preview(request, NOW, 1)
    assert isinstance(found, Rejection)
    assert found.code == "bad_cron"
    at: Any = {**EMPTY, "kind": "AT", "at": NOW}
    nowhere = preview(at, NOW, 1, "Nowhere")
    assert isinstance(nowhere, Rejection)
    assert nowhere.code == "bad_timezone"
    assert " is no IANA time zone of release " in nowhere.reason


def test_instants_that_are_costly_to_find_end_after_400_years() -> None:
    """29 February or a fifth Sunday of one: each costs a walk over years, and 1 000 were 4.5 s."""
    found = cron("0 0 29 2 SUN#5", count=1_000)
    first, last = found.occurrences[0], found.occurrences[-1]
    assert 350 < (last.scheduled_ms - first.scheduled_ms) / 86_400_000 / 365.25 <= 400
    assert [each.code for each in found.warnings if each.code == "cut_short"] == ["cut_short"]


def test_what_fits_is_not_cut_short() -> None:
    for found in (
        cron("0 0 29 2 *", count=90),
        asked(kind="EVERY", interval_ms=36_500 * 86_400_000, count=20),
        cron("* * * * *", count=1_000, max_fires=3),
    ):
        assert "cut_short" not in [each.code for each in found.warnings]


def test_a_preview_stops_when_it_is_told_to() -> None:
    left = iter([True, True, False])
    request: Any = {**EMPTY, "kind": "CRON", "cron": "* * * * *"}
    found = preview(request, NOW, 1_000, goes_on=lambda: next(left))
    assert isinstance(found, Preview)
    assert len(found.occurrences) == 3
    assert found.warnings[-1].code == "cut_short"


def test_an_instant_just_400_years_after_the_first_is_shown_and_no_later_one() -> None:
    found = cron("0 0 29 2 *", count=200)
    assert found.occurrences[0].local == "2028-02-29T00:00:00.000+00:00"
    assert found.occurrences[-1].local == "2428-02-29T00:00:00.000+00:00"
    assert len(found.occurrences) == 98
    assert [(each.code, each.text) for each in found.warnings] == [
        ("cut_short", "Only 98 of 200 instants are shown: the others are too far to find.")
    ]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"cron": "0 0 1 1 *", "end_at": NOW + 1}, "no instant lies between now and its end"),
        ({"cron": "0 9 * * *", "except_cron": "* 0-12 * * *"},
         "except_cron leaves out every instant that it would have"),
        ({"cron": "0 0 1 1 *", "except_cron": "* 12 * * *", "end_at": NOW + 1},
         "no instant lies between now and its end"),
    ],
)  # fmt: skip
def test_why_a_rule_is_never_due(fields: dict[str, Any], why: str) -> None:
    found = asked(kind="CRON", **fields)
    assert found.occurrences == []
    assert [(each.code, each.text) for each in found.warnings][:1] == [
        ("never_fires", f"It is never due: {why}.")
    ]


def test_a_calendar_that_nobody_has_is_refused_with_whose_it_would_be() -> None:
    for tenant, named in (("shop", "shop"), ("", "(none given)")):
        request: Any = {**EMPTY, "tenant": tenant, "kind": "CRON", "cron": "@daily"}
        found = preview(request | {"calendar": "de"}, NOW, 1)
        assert isinstance(found, Rejection)
        assert (found.code, found.reason) == (
            "unknown_calendar",
            (
                f"calendar 'de' is none that tenant {named} has: name the tenant, and a calendar"
                " that it has (`belfry calendar list`)."
            ),
        )


def test_days_off_are_told_and_left_out() -> None:
    request: Any = {**EMPTY, "kind": "CRON", "cron": "0 9 * * *", "calendar": "de"}
    weekends = packed_days([], [5, 6])
    for way, words, days in (
        (None, "not on days off of calendar de", [2, 3, 4, 5, 6, 9]),
        ("SKIP", "not on days off of calendar de", [2, 3, 4, 5, 6, 9]),
        ("NEXT_BUSINESS_DAY", "moved to the next business day from days off of calendar de",
         [2, 3, 4, 5, 6, 9]),
    ):  # fmt: skip
        found = preview(request | {"on_holiday": way}, NOW, 6, days=weekends)
        assert isinstance(found, Preview)
        assert found.words == f"At 09:00, UTC; {words}"
        assert [int(each.local[8:10]) for each in found.occurrences] == days
        assert [each.number for each in found.occurrences] == [*range(6)]


def test_as_many_are_shown_as_are_asked_for_and_as_fire() -> None:
    assert len(cron("* * * * *", count=3).occurrences) == 3
    assert len(cron("* * * * *", count=3, max_fires=2).occurrences) == 2
    assert len(cron("* * * * * *", count=MOST + 1).occurrences) == MOST


def test_what_waits_for_an_acknowledgement_has_no_instant_but_its_last() -> None:
    waits: dict[str, Any] = {"kind": "AFTER_ACK", "tenant": "demo", "schedule_id": "a"}
    assert asked(**waits, after_ack="b").occurrences == []
    bound = asked(**waits, after_ack="b", latest_at=NOW + 5)
    assert [each.scheduled_ms for each in bound.occurrences] == [NOW + 5]


@pytest.mark.parametrize(("interval_ms", "warned"), [(999, ["very_frequent"]), (1_000, [])])
def test_an_interval_below_a_second_is_warned_of(interval_ms: int, warned: list[str]) -> None:
    for fields in (
        {"kind": "EVERY", "interval_ms": interval_ms},
        {"kind": "CRON", "cron": f"@every {interval_ms}ms"},
    ):
        assert [each.code for each in asked(**fields).warnings] == warned
