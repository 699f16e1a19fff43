"""Checks of a request: what passes, what does not, and with which code and sentence."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.checks import RequestChecks
from belfry.schedules.fields import EMPTY
from belfry.schedules.instant_bounds import YEARS_100_MS
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request

NOW = 1_800_000_000_000


def made(**fields: Any) -> Request:
    request: Any = {**EMPTY, "tenant": "demo", "schedule_id": "a", "at": NOW, **fields}
    return request  # type: ignore[no-any-return]


def problem(**fields: Any) -> Rejection | None:
    """The problem of a request, which has to be the same for a tenant that is known already."""
    checks = RequestChecks()
    first = checks.problem(made(**fields), NOW)
    assert checks.problem(made(), NOW) is None
    assert checks.problem(made(**fields), NOW) == first
    return first


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tenant": "A-z_0.9"},
        {"tenant": "x" * 100},
        {"schedule_id": "x" * 255},
        {"schedule_id": "order/4711/é"},
        {"schedule_id": "é" * 127},
        {"schedule_id": " "},
        {"schedule_id": "\u200b\ue000\U0001f514"},
        {"at": 10**12},
        {"at": NOW + YEARS_100_MS},
        {"kind": "AFTER", "at": None, "delay_ms": 0},
        {"kind": "AFTER", "at": None, "delay_ms": YEARS_100_MS},
        {"jitter_ms": 0},
        {"jitter_ms": 366 * 86_400_000},
        {"group": "g", "event_type": "t", "request_id": "r"},
        {"group": "é" * 127},
        {"headers": [{"name": "n" * 1024, "value": None}] * 256},
        {"action": "CREATE"},
        {"action": "CANCEL", "at": None},
        {"action": "TRIGGER", "at": None},
    ],
)
def test_what_passes(fields: dict[str, Any]) -> None:
    assert problem(**fields) is None


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"tenant": ""}, "no_tenant"),
        *(
            ({"tenant": bad}, "bad_tenant")
            for bad in ("a b", "a..b", ".a", "a.", "é", "a/b", "a\n")
        ),
        ({"tenant": "x" * 101}, "bad_tenant"),
        *(({"schedule_id": bad}, "bad_schedule_id") for bad in ("", "\n", "a\x7f", "\x85", "\0")),
        ({"schedule_id": "x" * 256}, "bad_schedule_id"),
        ({"schedule_id": "é" * 128}, "bad_schedule_id"),
        ({"schedule_id": "\ud800"}, "bad_schedule_id"),
        ({"action": "UNKNOWN"}, "unknown_action"),
        ({"action": "upsert"}, "unknown_action"),
        ({"action": "ACK"}, "bad_fire_id"),
        *(({"action": "ACK", "fire_id": bad}, "bad_fire_id") for bad in ("", "0F" * 16, "f" * 31)),
        ({"kind": "UNKNOWN"}, "unknown_kind"),
        (
            {
                "kind": "EVERY",
                "interval_ms": 1,
                "end_at": NOW + 5,
                "standing": {"next_at": NOW + 6, "occurrence": 0, "version": 1, "paused": False},
            },
            "bad_standing",
        ),
        ({"at": None}, "no_instant"),
        ({"kind": "AFTER", "at": None}, "no_instant"),
        ({"at": NOW // 1000}, "instant_in_seconds"),
        ({"at": 10**12 - 1}, "instant_in_seconds"),
        ({"at": -(2**63)}, "instant_in_seconds"),
        ({"at": NOW + YEARS_100_MS + 1}, "instant_too_far"),
        ({"at": 2**63 - 1}, "instant_too_far"),
        ({"kind": "AFTER", "delay_ms": -1}, "bad_delay"),
        ({"kind": "AFTER", "delay_ms": YEARS_100_MS + 1}, "bad_delay"),
        ({"jitter_ms": -1}, "bad_jitter"),
        ({"jitter_ms": 2**63 - 1}, "bad_jitter"),
        ({"group": ""}, "bad_fields"),
        ({"group": "g" * 256}, "bad_fields"),
        ({"event_type": "é" * 128}, "bad_fields"),
        ({"headers": [{"name": "n", "value": None}] * 257}, "bad_fields"),
        ({"headers": [{"name": "n" * 1025, "value": None}]}, "bad_fields"),
        ({"request_id": ""}, "bad_request_id"),
        ({"request_id": "r" * 256}, "bad_request_id"),
        ({"action": "CANCEL", "request_id": "r" * 256}, "bad_request_id"),
    ],
)
def test_what_does_not_pass(fields: dict[str, Any], code: str) -> None:
    found = problem(**fields)
    assert found is not None
    assert found.code == code
    assert found.reason.endswith(".")


def test_the_first_reason_counts() -> None:
    found = problem(tenant="a b", schedule_id="", action="ACK", at=None)
    assert found is not None
    assert found.code == "bad_tenant"


def test_an_instant_in_seconds_is_shown_in_milliseconds() -> None:
    found = problem(at=1_800_000_000)
    assert found is not None
    assert "1800000000000" in found.reason


def standing(next_at: int, occurrence: int = 0, version: int = 1) -> dict[str, Any]:
    return {"next_at": next_at, "occurrence": occurrence, "version": version, "paused": False}


@pytest.mark.parametrize(
    ("next_at", "occurrence", "version", "taken"),
    [
        (NOW + 5, 0, 1, True),
        (NOW + 4, 0, 1, False),
        (NOW + 9, 0, 1, True),
        (NOW + 10, 0, 1, False),
        (NOW + 5, 2**32 - 2, 2**32 - 1, True),
        (NOW + 5, 2**32 - 1, 1, False),
        (NOW + 5, 0, 2**32, False),
    ],
)
def test_a_standing_is_taken_where_an_export_can_hold_it(
    next_at: int, occurrence: int, version: int, *, taken: bool
) -> None:
    stood = standing(next_at, occurrence, version)
    bounds = {"start_at": NOW + 5, "end_at": NOW + 9}
    found = problem(kind="EVERY", at=None, interval_ms=1, standing=stood, **bounds)
    assert (found is None) is taken
    assert taken or (found is not None and found.code == "bad_standing")


@pytest.mark.parametrize("at", [0, -1, -(2**63), 10**12 - 1])
def test_what_would_be_refused_again_is_not_advised(at: int) -> None:
    found = problem(at=at)
    assert found is not None
    assert "send" not in found.reason


@pytest.mark.parametrize(
    ("start_at", "code"),
    [
        (-(2**63), "instant_in_seconds"),
        (-62_135_596_800_001, "instant_in_seconds"),
        (10**12 - 1, "instant_in_seconds"),
        (NOW + YEARS_100_MS + 1, "instant_too_far"),
        (253_402_300_799_999, "instant_too_far"),
        (2**63 - 1, "instant_too_far"),
    ],
)
@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "EVERY", "interval_ms": 1},
        {"kind": "CRON", "cron": "* * * * *"},
        {"kind": "RRULE", "rrule": "FREQ=DAILY"},
        {"kind": "RRULE", "rrule": "DTSTART:20400101T000000Z RRULE:FREQ=DAILY"},
    ],
)
def test_a_start_beyond_all_calendars_is_refused(
    rule: dict[str, Any], start_at: int, code: str
) -> None:
    found = problem(at=None, start_at=start_at, **rule)
    assert found is not None
    assert found.code == code


@pytest.mark.parametrize(
    "start",
    [
        "DTSTART:99961031T194608Z",
        "DTSTART:99991231T235959Z",
        "DTSTART:99991231T235959",
        "DTSTART;VALUE=DATE:99991231",
        "DTSTART;TZID=Pacific/Kiritimati:99991231T235959",
    ],
)
def test_a_dtstart_at_the_end_of_all_calendars_is_refused(start: str) -> None:
    found = problem(kind="RRULE", at=None, rrule=f"{start} RRULE:FREQ=DAILY")
    assert found is not None
    assert found.code == "bad_rule"
    assert "its DTSTART is after 9996-10-31, and nothing is due from then on" in found.reason


@pytest.mark.parametrize("count", [100_000_000, (1 << 31) - 1])
def test_a_count_whose_end_is_too_far_to_find_is_refused(count: int) -> None:
    rule = f"FREQ=MONTHLY;BYDAY=MO;BYSETPOS=1;COUNT={count}"
    found = problem(kind="RRULE", at=None, rrule=rule, start_at=NOW)
    assert found is not None
    assert found.code == "bad_rule"
    assert found.reason.endswith(
        "its COUNT ends so many years ahead that its end is not looked for: give UNTIL, end_at or"
        " max_fires instead."
    )


def test_the_last_dtstart_of_all_calendars_ends_nobody() -> None:
    for zone in ("Pacific/Kiritimati", "Etc/GMT+12", "America/New_York"):
        text = f"DTSTART;TZID={zone}:99961031T194607 RRULE:FREQ=DAILY"
        found = problem(kind="RRULE", at=None, rrule=text)
        assert found is not None
        assert found.code == "never_fires"


def test_a_full_memory_of_tenants_changes_no_answer() -> None:
    checks = RequestChecks(known_limit=1)
    for tenant in ("a", "b", "b"):
        assert checks.problem(made(tenant=tenant), NOW) is None
    bad = checks.problem(made(tenant="b c"), NOW)
    assert bad is not None
    assert bad.code == "bad_tenant"


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"at": None}, None),
        ({"at": None, "delay_ms": 5}, "The request has delay_ms: set `kind` to AFTER"),
        ({"at": None, "cron": "0 9 * * *"}, "The request has cron: set `kind` to CRON"),
        ({"kind": "AFTER"}, "The request has at: set `kind` to AT"),
        ({"kind": "RRULE", "rrule": "FREQ=DAILY"}, None),
    ],
)
def test_a_request_of_another_kind_than_it_says_is_told_which(
    fields: dict[str, Any], hint: str | None
) -> None:
    found = problem(**fields)
    assert found is not None
    assert found.code == "no_instant"
    assert (" The request has " in found.reason) == (hint is not None)
    assert hint is None or hint in found.reason
