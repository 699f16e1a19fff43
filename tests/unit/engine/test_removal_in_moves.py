"""A tenant that was removed, and whose key group moves: what it has is cancelled where it comes."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.engine import giving
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from tests.unit.engine.driver import HOUR, T0
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing

TENANT: Final = "demo"
COUNT: Final = 6


def asked() -> tuple[MovingRing, int, int]:
    """Schedules that wait, at their home; which that is, and another partition."""
    ring = MovingRing()
    for number in range(COUNT):
        ring.ask(TENANT, schedule_id=f"s{number}", at=T0 + HOUR + number)
    ring.settle()
    home = ring.home(TENANT)
    return ring, home, (home + 1) % PARTITIONS


def remove(ring: MovingRing) -> None:
    policy = TenantPolicy(TENANT, lifecycle="ALL", removed=True)
    for driver in ring.drivers:
        driver.tenants.follow(EffectivePolicy(policy, blocked="it was removed"))


def swept(ring: MovingRing, partition: int) -> int:
    """How many schedules sweeps of a partition cancel."""
    found = 0
    for _ in range(4):
        found += len(ring.drivers[partition].sweep(ring.now_ms).lifecycle)
    return found


def test_nothing_is_cancelled_amid_a_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """What left the source is what comes to the target."""
    monkeypatch.setattr(giving, "SLICE_ROWS", 2)
    ring, home, target = asked()
    ring.move(TENANT, target)
    for each in (home, target, home, home, home, target):
        ring.step(each)
    assert 0 < ring.pending()[home] < COUNT
    assert 0 < ring.pending()[target] < COUNT
    remove(ring)
    assert [swept(ring, each) for each in range(PARTITIONS)] == [0] * PARTITIONS
    ring.settle()
    assert ring.pending()[target] == COUNT
    assert [swept(ring, home), swept(ring, target)] == [0, COUNT]


def test_what_comes_after_the_last_look_is_cancelled() -> None:
    """The target has looked, and nothing of the tenant was there; its group comes later."""
    ring, _, target = asked()
    remove(ring)
    assert swept(ring, target) == 0
    ring.move(TENANT, target)
    ring.settle()
    assert ring.pending()[target] == COUNT
    assert swept(ring, target) == COUNT
    assert sum(ring.pending()) == 0
