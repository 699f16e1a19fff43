"""`belfry schedule update` asks for the schedule as it stands, but for what was given."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from belfry.api.json import shapes
from belfry.api.json.bodies import DefinitionBody
from belfry.cli import looking
from belfry.cli.entry import main
from belfry.cli.looking import definition
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


class Worker:
    """Stands for the worker that has the schedule, and keeps what it is asked for."""

    asked: dict[str, Any]

    def __init__(self, _: object) -> None:
        pass

    def get(self, _: str) -> dict[str, Any]:
        return {
            "state": "PENDING", "kind": "EVERY", "interval_ms": 60_000, "version": 1,
            "generation": 7, **NIGHT,
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
    ],
)
def test_what_is_left_out_stays_in_its_zone(
    arguments: list[str], expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "Remote", Worker)
    assert main(["schedule", "update", "demo", "a", *arguments]) == 0
    assert {name: value for name, value in Worker.asked.items() if value is not None} == expected
