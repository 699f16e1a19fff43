"""Arguments of the client become requests as the schema wants them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from belfry.client.requests import duration_ms, instant_ms, problem, request
from belfry.wire import catalogue

NOW_MS = 1_796_115_600_000


def made(**options: Any) -> dict[str, Any]:
    return request("demo", "hello", "UPSERT", options)


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"at": NOW_MS}, {"kind": "AT", "at": NOW_MS}),
        ({"at": "2026-12-01T09:00:00Z"}, {"kind": "AT", "at": NOW_MS}),
        ({"at": datetime(2026, 12, 1, 9, tzinfo=UTC)}, {"kind": "AT", "at": NOW_MS}),
        ({"in_": "5m"}, {"kind": "AFTER", "delay_ms": 300_000}),
        ({"in_": timedelta(seconds=1)}, {"kind": "AFTER", "delay_ms": 1_000}),
        ({"in_": 0}, {"kind": "AFTER", "delay_ms": 0}),
        ({"every": 250}, {"kind": "EVERY", "interval_ms": 250}),
        (
            {"cron": "0 9 * * *", "timezone": "Europe/Paris"},
            {"kind": "CRON", "cron": "0 9 * * *", "timezone": "Europe/Paris"},
        ),
    ],
)
def test_when(options: dict[str, Any], fields: dict[str, Any]) -> None:
    found = made(**options)
    assert found.items() >= fields.items()
    reader = catalogue.own_reader("ScheduleRequest")
    assert reader.read(catalogue.encode("ScheduleRequest", found)) == found


@pytest.mark.parametrize(
    ("options", "given"), [({}, "none"), ({"at": 1, "in_": 1}, "at, in_"), ({"at": None}, "none")]
)
def test_when_is_said_exactly_once(options: dict[str, Any], given: str) -> None:
    with pytest.raises(ValueError, match=f"Exactly one of .* given: {given}"):
        made(**options)


def test_what_to_send() -> None:
    found = made(
        in_=1,
        payload="grün",
        key=b"\xff",
        group="g",
        event_type="t",
        headers=[("a", "1"), ("a", None), ("b", b"\xff")],
    )
    assert found["payload"] == "grün".encode()
    assert found["key"] == b"\xff"
    assert found["headers"] == [
        {"name": "a", "value": b"1"},
        {"name": "a", "value": None},
        {"name": "b", "value": b"\xff"},
        {"name": "event-type", "value": b"t"},
    ]
    assert made(in_=1, headers={"a": "1"})["headers"] == [{"name": "a", "value": b"1"}]
    assert made(in_=1)["payload"] is None


def test_instants_and_durations_are_rounded_up() -> None:
    assert instant_ms(datetime(2026, 12, 1, 9, 0, 0, 1, tzinfo=UTC)) == NOW_MS + 1
    assert duration_ms(timedelta(microseconds=1)) == 1


def test_a_naive_datetime_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        instant_ms(datetime(2026, 12, 1))  # noqa: DTZ001  (what is refused)


@pytest.mark.parametrize(
    ("tenant", "schedule_id", "options", "code"),
    [
        ("de mo", "i", {"in_": 1}, "bad_tenant"),
        ("", "i", {"in_": 1}, "no_tenant"),
        ("demo", "", {"in_": 1}, "bad_schedule_id"),
        ("demo", "i", {"at": 1_700_000_000}, "instant_in_seconds"),
        ("demo", "i", {"at": 10**16}, "instant_too_far"),
        ("demo", "i", {"in_": -1}, "bad_delay"),
        ("demo", "i", {"in_": 1, "group": ""}, "bad_fields"),
        ("demo", "i", {"in_": 1, "request_id": "x" * 256}, "bad_request_id"),
    ],
)
def test_what_any_worker_would_reject(
    tenant: str, schedule_id: str, options: dict[str, Any], code: str
) -> None:
    found = problem(request(tenant, schedule_id, "UPSERT", options), NOW_MS)
    assert found is not None
    assert found.code == code


@pytest.mark.parametrize("action", ["CANCEL", "PAUSE", "RESUME", "TRIGGER"])
def test_other_actions_need_no_instant(action: str) -> None:
    assert problem(request("demo", "i", action, {}), NOW_MS) is None


@pytest.mark.parametrize("options", [{"every": "1m"}, {"cron": "0 9 * * *"}])
def test_recurring_schedules_are_for_the_worker_to_judge(options: dict[str, Any]) -> None:
    assert problem(made(**options), NOW_MS) is None


def test_a_type_is_told_once_and_only_where_it_may_be() -> None:
    given = [{"name": "event-type", "value": b"mine"}]
    assert made(in_=1, event_type="t", headers={"event-type": "mine"})["headers"] == given
    assert made(in_=1, event_type="t", tell_type=False)["headers"] == []
    assert made(in_=1)["headers"] == []
