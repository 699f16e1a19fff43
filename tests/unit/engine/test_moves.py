"""A key group moves to another partition: what it has goes along, and its requests follow."""

from __future__ import annotations

import pytest

from belfry.engine.effects import MoveEnd
from belfry.tenants.effective import Level
from tests.unit.engine.driver import HOUR, T0
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing


def others(ring: MovingRing, tenant: str) -> list[int]:
    return [each for each in range(PARTITIONS) if each != ring.home(tenant)]


def test_a_group_moves_with_its_schedules_and_fires_where_it_lies() -> None:
    ring = MovingRing()
    home, (target, _) = ring.home("demo"), others(ring, "demo")
    for number in range(5):
        ring.ask("demo", schedule_id=f"s{number}", at=T0 + 10 + number)
    ring.settle()
    ring.move("demo", target)
    ring.settle()
    assert ring.at_rest()
    assert ring.refused == []
    # Releases that know of no moves read neither these manifests nor local stores that end so.
    grouped = [driver.engine.manifest.grouped for driver in ring.drivers]
    assert [number for number, each in enumerate(grouped) if each] == sorted([home, target])
    assert (ring.pending()[home], ring.pending()[target]) == (0, 5)
    assert ring.ends == [MoveEnd(ring.group("demo"), home, target, "", 5)]
    ring.now_ms = T0 + 100
    ring.settle()
    assert [shot.id for shot in ring.shots] == [f"s{number}" for number in range(5)]


def test_requests_follow_the_group_and_keep_their_order() -> None:
    ring = MovingRing()
    home, (target, _) = ring.home("demo"), others(ring, "demo")
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.move("demo", target)
    ring.ask("demo", schedule_id="b", at=T0 + HOUR, request_id="r1")
    ring.ask("demo", schedule_id="a", action="CANCEL")
    ring.settle()
    ring.ask("demo", schedule_id="b", action="CANCEL")
    ring.ask("demo", schedule_id="b", at=T0 + HOUR, request_id="r1")
    ring.ask("demo", schedule_id="c", at=T0 + HOUR, arrives=target)
    ring.settle()
    assert ring.outcomes() == [
        "ACCEPTED a", "ACCEPTED b", "CANCELLED a", "CANCELLED b", "DUPLICATE b", "ACCEPTED c",
    ]  # fmt: skip
    assert (ring.pending()[home], ring.pending()[target]) == (0, 1)


@pytest.mark.parametrize("away", [False, True])
def test_a_trigger_that_waited_counts_though_it_comes_with_the_last_of_the_group(
    *, away: bool
) -> None:
    """The target takes the end of the group in, and what waited, from one batch."""
    ring = MovingRing()
    home, (other, _) = ring.home("demo"), others(ring, "demo")
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    source, target = home, other
    if away:
        ring.move("demo", other)
        ring.settle()
        source, target = other, home
    ring.move("demo", target)
    for partition in (home, target, home):
        ring.step(partition)
    ring.ask("demo", schedule_id="a", action="TRIGGER")
    ring.step(home)
    for _ in range(10):
        ring.step(source)
    ring.settle()
    assert ring.outcomes() == ["ACCEPTED a", "TRIGGERED a"]
    assert ring.refused == []
    assert [shot.id for shot in ring.shots] == ["a"]


def test_it_moves_on_and_comes_home() -> None:
    ring = MovingRing()
    home, (one, two) = ring.home("demo"), others(ring, "demo")
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    for where in (one, two, one, home, two, home):
        ring.move("demo", where)
        ring.settle()
        assert ring.refused == []
        assert ring.pending()[where] == 1 == sum(ring.pending())
        ring.ask("demo", schedule_id="a", at=T0 + HOUR, payload=b"%d" % len(ring.told))
        ring.settle()
    groups = ring.drivers[home].engine._parts.groups
    assert not groups.homes
    assert not groups.lies
    assert not ring.drivers[home].engine.manifest.grouped
    assert [each.split()[0] for each in ring.outcomes()] == ["ACCEPTED"] + ["UPDATED"] * 6


def test_where_moves_are_not_allowed_nothing_begins() -> None:
    ring = MovingRing(moves=False)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.move("demo", others(ring, "demo")[0])
    ring.settle()
    assert ring.refused == ["bad_move"]
    assert ring.pending()[ring.home("demo")] == 1


def test_a_target_that_does_not_know_moves_is_given_nothing() -> None:
    ring = MovingRing()
    home, (target, _) = ring.home("demo"), others(ring, "demo")
    ring.drivers[target].options = ring.drivers[target].options._replace(moves=False)
    ring.kill(target)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.move("demo", target)
    ring.settle()
    ring.ask("demo", schedule_id="b", at=T0 + HOUR)
    ring.settle()
    assert ring.pending()[home] == 2
    # It can be asked for again, or called off.
    ring.move("demo", home)
    ring.settle()
    assert not ring.drivers[home].engine._parts.groups.homes


def test_a_batch_in_which_the_group_leaves_keeps_the_order_of_its_requests() -> None:
    """The last two come in one batch with READY: neither may be kept where the group was."""
    ring = MovingRing(Level.FAILURES)
    home, (target, _) = ring.home("demo"), others(ring, "demo")
    ring.move("demo", target)
    ring.step(home)
    for number in range(2):
        # The second takes the fast path: its tenant is known by then.
        ring.ask("demo", schedule_id=f"s{number}", at=T0 + HOUR, request_id=f"s{number}")
    ring.step(target)
    general = [{"name": "x", "value": b"general"}]
    ring.ask("demo", schedule_id="a", at=T0 + HOUR, request_id="r2", headers=general)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR, request_id="r3", payload=b"plain")
    ring.settle()
    assert [f"{each.outcome} {each.request_id}" for each in ring.told] == [
        "ACCEPTED s0", "ACCEPTED s1", "ACCEPTED r2", "UPDATED r3",
    ]  # fmt: skip
    assert ring.pending()[target] == 3
