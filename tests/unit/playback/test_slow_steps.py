"""A step whose time was up is played as what it was: one that meant to fire more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.engine.driver import HOUR, T0
from tests.unit.playback.trail import Leaving, play

TENANTS = 20


@pytest.mark.parametrize("recurring", [False, True])
def test_a_slow_step_of_many_tenants_does_not_differ(*, recurring: bool) -> None:
    """One that means to fire so few gathers events of fewer tenants, and fires others."""
    trail = Leaving()
    for number in range(200):
        at: dict[str, Any] = {"at": T0 + 1 + number}
        if recurring:
            at = {"kind": "EVERY", "interval_ms": HOUR, "start_at": T0 + 1 + number}
        trail.ask(T0, tenant=f"t{number % TENANTS}", schedule_id=f"s{number}", **at)
    trail.step(T0)
    while (due_ms := trail.engine.next_due_ms()) is not None and due_ms <= T0 + 500:
        trail.engine.fire_due(T0 + 500, 1_000, lambda: True)
        trail.end(T0 + 500)
    assert len(trail.events) == 200
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs
    assert outcome.events == 200
