"""`belfry schedule update` asks for the schedule as it stands, but for what was given."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from belfry.api.json import shapes
from belfry.api.json.bodies import DefinitionBody
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
    "EVERY": {"kind": "EVERY", "interval_ms": 60_000, "max_fires": 9, "overlap": "SKIP"},
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
    expected = "UPDATED" if kind == "AFTER" else "UNCHANGED"
    assert driver.step(T0 + 1_000).outcomes == [expected]
    assert driver.engine.next_due_ms() == due_ms
