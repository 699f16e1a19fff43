"""`belfry schedule get`: the last fires, with the ends of their deliveries."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.api.json.occurrences import counts_json
from belfry.cli.looking import _whole
from belfry.client.scheduled import FiresSoFar, PastDelivery, PastFire
from belfry.store.last_fires import FireCounts

FIRE: dict[str, Any] = {
    "fire_id": "f", "scheduled_at": "2030-01-01T09:00:00.000Z", "missed": 1, "late_ms": 7,
    "due_at": "2030-01-01T09:00:00.000Z", "fired_at": "2030-01-01T09:00:00.007Z",
}  # fmt: skip
END: dict[str, Any] = {
    "target": "https://u.example/\x1b", "outcome": "FAILED", "attempt": 3, "code": "timeout",
    "at": "2030-01-01T09:01:00.000Z",
}  # fmt: skip

MISSED = "were given up, or another fire stood for them"


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


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (FireCounts(0, 0, 0, 0), "none has fired yet"),
        (FireCounts(12_003, 0, 0, 0), "12,003 fired, each within a second"),
        (
            FireCounts(12_003, 2, 3, 4_200),
            f"12,003 fired, 2 of them more than a second late, at most 4s200ms; 3 {MISSED}",
        ),
        (FireCounts(0, 0, 3, 0), f"0 fired; 3 {MISSED}"),
    ],
)
def test_how_all_fires_went_is_a_line_of_its_own(counts: FireCounts, said: str) -> None:
    assert _whole({"fires": counts_json(counts)}) == f"{'fires':16} {said}"


def test_the_client_has_the_counts() -> None:
    found = FiresSoFar.from_json(counts_json(FireCounts(3, 1, 1, 2_000)))
    assert found == FiresSoFar(3, 1, 1, 2_000, 0.75, 0.666667)


def test_the_client_has_the_same() -> None:
    found = PastFire.from_json({**FIRE, "deliveries": [END]})
    at_ms = found.fired_ms + 59_993
    assert found.deliveries == (PastDelivery(END["target"], "FAILED", 3, at_ms, "timeout"),)
    assert PastFire.from_json({**FIRE, "deliveries": None}).deliveries is None
    # A worker of an older release tells none.
    assert PastFire.from_json(FIRE).deliveries == ()
