"""What comes in just as a key group comes or leaves, and what is too much to follow it."""

from __future__ import annotations

import json

import pytest

from belfry.tenants.policy import TenantPolicy
from belfry.wire.headers import SOURCE
from tests.unit.engine.driver import HOUR, T0
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing


def asked_for(ring: MovingRing, target: int) -> int:
    """Move the group of demo, up to where its home lets requests wait; who gives it away next."""
    home, group = ring.home("demo"), ring.group("demo")
    row = ring.drivers[home].engine._parts.groups.homes.get(group)
    source = home if row is None else row.at
    ring.move("demo", target)
    for each in (home, target, home):
        ring.step(each)
    return source


def given(ring: MovingRing, source: int) -> None:
    """Give it away whole; nobody else does anything meanwhile."""
    while ring.step(source):
        pass


def away(ring: MovingRing) -> int:
    """Let the group of demo lie away from its home; where."""
    target = (ring.home("demo") + 1) % PARTITIONS
    ring.move("demo", target)
    ring.settle()
    return target


def test_a_trigger_in_the_step_in_which_the_last_of_its_group_comes_fires() -> None:
    """As the step began nothing of the group was to fire there."""
    ring = MovingRing()
    ring.follow(TenantPolicy("demo", lifecycle="ALL", source_header=True))
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    source = asked_for(ring, (ring.home("demo") + 1) % PARTITIONS)
    ring.ask("demo", schedule_id="a", action="TRIGGER")
    # The home hears that it has left, and sends the request on behind it.
    given(ring, source)
    ring.settle()
    assert ring.outcomes() == ["ACCEPTED a", "TRIGGERED a"]
    assert [SOURCE in dict(shot.headers) for shot in ring.shots] == [False]


def test_a_trigger_that_waited_for_its_group_to_come_home_fires() -> None:
    ring = MovingRing()
    home = ring.home("demo")
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    away(ring)
    source = asked_for(ring, home)
    ring.ask("demo", schedule_id="a", action="TRIGGER")
    ring.step(home)
    given(ring, source)
    ring.settle()
    assert ring.outcomes() == ["ACCEPTED a", "TRIGGERED a"]


def test_a_trigger_of_a_tenant_that_is_paused_is_refused_while_its_group_comes() -> None:
    ring = MovingRing()
    ring.follow(TenantPolicy("demo", lifecycle="ALL", paused=True))
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    source = asked_for(ring, (ring.home("demo") + 1) % PARTITIONS)
    ring.ask("demo", schedule_id="a", action="TRIGGER")
    given(ring, source)
    ring.settle()
    assert ring.refused == ["tenant_held"]
