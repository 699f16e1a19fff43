"""`belfry schedule get`: the last fires, with the ends of their deliveries."""

from __future__ import annotations

from typing import Any

from belfry.cli.looking import _whole
from belfry.client.scheduled import PastDelivery, PastFire

FIRE: dict[str, Any] = {
    "fire_id": "f", "scheduled_at": "2030-01-01T09:00:00.000Z", "missed": 1, "late_ms": 7,
    "due_at": "2030-01-01T09:00:00.000Z", "fired_at": "2030-01-01T09:00:00.007Z",
}  # fmt: skip
END: dict[str, Any] = {
    "target": "https://u.example/\x1b", "outcome": "FAILED", "attempt": 3, "code": "timeout",
    "at": "2030-01-01T09:01:00.000Z",
}  # fmt: skip


def test_an_end_of_a_delivery_stands_below_its_fire() -> None:
    arrived = {**END, "outcome": "DELIVERED", "attempt": 2, "code": None}
    shown = _whole({"last_fires": [{**FIRE, "deliveries": [END, arrived]}, FIRE]}).splitlines()
    fired = "last             2030-01-01T09:00:00.000Z  7 ms late, for 1 missed ones too  f"
    below = " " * 16 + " 2030-01-01T09:01:00.000Z  "
    assert shown == [
        fired,
        below + "FAILED at attempt 3, https://u.example/\\x1b: timeout",
        below + "DELIVERED at attempt 2, https://u.example/\\x1b",
        fired,
    ]
    assert _whole({"last_fires": [{**FIRE, "deliveries": None}]}).splitlines() == [fired]


def test_the_client_has_the_same() -> None:
    found = PastFire.from_json({**FIRE, "deliveries": [END]})
    at_ms = found.fired_ms + 59_993
    assert found.deliveries == (PastDelivery(END["target"], "FAILED", 3, at_ms, "timeout"),)
    assert PastFire.from_json({**FIRE, "deliveries": None}).deliveries is None
    # A worker of an older release tells none.
    assert PastFire.from_json(FIRE).deliveries == ()
