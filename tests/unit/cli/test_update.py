"""`belfry schedule update` asks for the schedule as it stands, but for what was given."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from belfry.api.json import shapes
from belfry.api.json.bodies import DefinitionBody
from belfry.cli import updating
from belfry.cli.entry import main
from belfry.cli.updating import definition
from belfry.store.layout.keys import schedule_key
from belfry.store.lookup import standing_of
from tests.unit.engine.driver import HOUR, T0, Driver

TARGET = {
    "url": "https://hooks.example.com/belfry",
    "timeout_ms": 3_000,
    "max_attempts": 2,
    "secret_ref": "hooks",
    "headers": [{"name": "x-team", "value": "orders"}],
    "strategy": "ALL",
}
CONTENT: dict[str, Any] = {
    "payload": b"\x00\xff",
    "key": b"k",
    "event_type": "due",
    "headers": [{"name": "h", "value": b"v"}, {"name": "null", "value": None}],
    "http_targets": [TARGET],
    "misfire": "FIRE_ONCE",
    "max_lateness_ms": 60_000,
}
ASKED: dict[str, dict[str, Any]] = {
    "AT": {"at": T0 + HOUR, "jitter_ms": 5_000},
    "AFTER": {"kind": "AFTER", "delay_ms": HOUR},
    "AFTER that slides": {"kind": "AFTER", "delay_ms": HOUR, "max_wait_ms": 2 * HOUR},
    "EVERY": {"kind": "EVERY", "interval_ms": 60_000, "max_fires": 9, "overlap": "SKIP"},
    "EVERY without the night": {
        "kind": "EVERY",
        "interval_ms": 60_000,
        "except_cron": "* 0-5 * * *",
        "timezone": "Europe/Berlin",
    },
    "CRON": {"kind": "CRON", "cron": "0 8 * * 1-5", "timezone": "Europe/Berlin"},
}


@pytest.mark.parametrize("kind", ASKED)
def test_what_is_not_given_stays(kind: str) -> None:
    driver = Driver()
    driver.ask(**CONTENT, **ASKED[kind])
    assert driver.step(T0).outcomes == ["ACCEPTED"]
    due_ms = driver.engine.next_due_ms()
    found = standing_of(driver.rows, schedule_key("demo", "a"), T0)
    assert found is not None
    body = orjson.dumps(definition(shapes.whole(found)))
    driver.ask(**{**DefinitionBody.model_validate_json(body).fields(), "action": "UPSERT"})
    # A delay becomes the instant that it led to.
    expected = "UPDATED" if kind.startswith("AFTER") else "UNCHANGED"
    assert driver.step(T0 + 1_000).outcomes == [expected]
    assert driver.engine.next_due_ms() == due_ms


def test_what_is_left_out_is_shown_in_words() -> None:
    driver = Driver()
    driver.ask(**ASKED["EVERY without the night"])
    driver.step(T0)
    found = standing_of(driver.rows, schedule_key("demo", "a"), T0)
    assert found is not None
    shown = shapes.whole(found)
    assert shown["words"] == (
        "Every 1m; left out: every minute, between 00:00 and 05:59, Europe/Berlin"
    )
    assert (shown["except_cron"], shown["timezone"]) == ("* 0-5 * * *", "Europe/Berlin")


NIGHT: dict[str, Any] = {"except_cron": "* 0-5 * * *", "timezone": "Europe/Berlin"}

# What is asked once, and is no part of a schedule.
NOT_OF_SCHEDULES = {"request_id", "throttle_ms", "reason", "expected_version", "kind"}


class Worker:
    """Stands for the worker that has the schedule, and keeps what it is asked for."""

    asked: dict[str, Any]
    holds: dict[str, Any] = NIGHT

    def __init__(self, _: object) -> None:
        pass

    def get(self, _: str) -> dict[str, Any]:
        return {
            "state": "PENDING", "kind": "EVERY", "interval_ms": 60_000, "version": 1,
            "generation": 7, **Worker.holds,
        }  # fmt: skip

    def ask(self, _: str, __: str, body: dict[str, Any], ___: object) -> dict[str, Any]:
        Worker.asked = body
        names = ("tenant", "schedule_id", "outcome", "version", "due_at")
        return dict.fromkeys(names, "x")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--payload", "x"], {"interval_ms": 60_000, "payload_text": "x", **NIGHT}),
        (["--every", "5m"], {"interval_ms": 300_000, **NIGHT}),
        (["--cron", "@daily", "--tz", "UTC"], {"cron": "@daily", **NIGHT, "timezone": "UTC"}),
        (["--in", "5m"], {"delay_ms": 300_000}),
        (
            ["--except-cron", "* 1 * * *"],
            {"interval_ms": 60_000, **NIGHT, "except_cron": "* 1 * * *"},
        ),
        (["--except-cron", ""], {"interval_ms": 60_000, "timezone": "Europe/Berlin"}),
        (
            ["--set", "jitter_ms=5000", "--set", "misfire=SKIP", "--set", "except_cron=none"],
            {"interval_ms": 60_000, "timezone": "Europe/Berlin", "jitter_ms": 5_000}
            | {"misfire": "SKIP"},
        ),
        (
            ["--set", 'http_targets=[{"url":"https://h.example"}]', "--set", "key_base64=eA=="],
            {"interval_ms": 60_000, **NIGHT, "key_base64": "eA=="}
            | {"http_targets": [{"url": "https://h.example"}]},
        ),
    ],
)
def test_what_is_left_out_stays_in_its_zone(
    arguments: list[str], expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updating, "Remote", Worker)
    assert main(["schedule", "update", "demo", "a", *arguments]) == 0
    assert {name: value for name, value in Worker.asked.items() if value is not None} == expected


@pytest.mark.parametrize(
    ("holds", "given"),
    [
        ({"payload_base64": "/w=="}, {"payload_text": "x"}),
        ({"payload_text": "x"}, {"payload_base64": "/w=="}),
        ({"payload_text": "x"}, {"payload_json": {"a": 1}}),
        ({"key_base64": "/w=="}, {"key_text": "x"}),
        ({"key_text": "x"}, {"key_base64": "/w=="}),
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_one_name_of_a_field_takes_the_place_of_another(
    holds: dict[str, Any], given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updating, "Remote", Worker)
    monkeypatch.setattr(Worker, "holds", holds | {"group": "g"})
    ((name, value),) = given.items()
    typed = value if isinstance(value, str) else orjson.dumps(value).decode()
    assert main(["schedule", "update", "demo", "a", "--set", f"{name}={typed}"]) == 0
    assert Worker.asked == {"interval_ms": 60_000, "group": "g", **given}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("jiter_ms=5", "'jiter_ms' is no field. Did you mean jitter_ms?"),
        ("cron=@daily", "'cron' is no field."),
        ("jitter_ms", "give FIELD=VALUE, such as jitter_ms=5000"),
    ],
)
def test_a_field_that_is_none_is_told_before_anything_is_asked(
    given: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedule", "update", "demo", "a", "--set", given]) == 2
    assert told in capsys.readouterr().err


def test_every_field_of_a_schedule_can_be_updated() -> None:
    """What has no option of its own can be set; a delay, a rule and an instant have theirs."""
    body = set(DefinitionBody.model_fields)
    assert body - {*updating.DEFINING, *updating.SAME[0]} <= NOT_OF_SCHEDULES
