"""A spread that changes: schedules stay where they began, are found there, and begin only once."""

from __future__ import annotations

from typing import Any

from belfry.engine.verdicts import Place
from belfry.schedules.identity import Homes
from belfry.schedules.policy import TenantPolicy
from belfry.schedules.tenant import Terms
from tests.unit.engine.driver import T0, TOPIC, Driver

PARTITIONS = 4
IDS = [f"id{number}" for number in range(40)]


class Ring:
    """All partitions of one belfry, with strays carried between them as the worker does."""

    def __init__(self) -> None:
        self.drivers = [Driver(partition=p, partitions=PARTITIONS) for p in range(PARTITIONS)]
        self.hops = 0

    def follow(self, policy: TenantPolicy) -> None:
        for driver in self.drivers:
            driver.tenants.follow(Terms(policy))

    def ask(self, arrives: int, **fields: Any) -> None:
        self.drivers[arrives % PARTITIONS].ask(tenant="demo", **fields)

    def settle(self, now_ms: int = T0) -> list[str]:
        """Steps until nothing is on its way; outcomes in their order, with their partition."""
        outcomes: list[str] = []
        moving = True
        while moving:
            moving = False
            for driver in self.drivers:
                step = driver.step(now_ms, fire=False)
                outcomes += [f"{e.outcome} {e.schedule_id}" for e in step.effects.lifecycle]
                for stray in step.effects.rerouted:
                    moving = True
                    self.hops += 1
                    self.drivers[stray.partition].send(stray.value, stray.key, stray.headers)
        return outcomes

    def pending(self) -> int:
        return sum(driver.engine.pending for driver in self.drivers)

    def fire(self, now_ms: int) -> list[str]:
        return [each for driver in self.drivers for each in driver.run(now_ms)]


def policy(spread: int, *former: int) -> TenantPolicy:
    return TenantPolicy("demo", lifecycle="ALL", spread=spread, former_spreads=former)


def test_a_spread_tenant_is_at_home_on_several_partitions() -> None:
    ring = Ring()
    ring.follow(policy(8))
    for number, name in enumerate(IDS):
        ring.ask(number, schedule_id=name, at=T0 + 5)
    assert ring.settle().count("ACCEPTED id0") == 1
    assert sum(driver.engine.pending > 0 for driver in ring.drivers) > 1
    assert sorted(ring.fire(T0 + 5)) == sorted(IDS)


def test_schedules_are_found_through_every_change_of_the_spread() -> None:
    ring = Ring()
    changes = [policy(1), policy(4, 1), policy(7, 1, 4), policy(3, 1, 4, 7)]
    for round_, each in enumerate(changes):
        ring.follow(each)
        for number, name in enumerate(IDS):
            ring.ask(number + round_, schedule_id=name, at=T0 + 5 + round_, payload=b"%d" % round_)
        outcomes = ring.settle()
        word = "ACCEPTED" if round_ == 0 else "UPDATED"
        assert sorted(outcomes) == sorted(f"{word} {name}" for name in IDS)
        assert ring.pending() == len(IDS)
    for name in IDS[::2]:
        ring.ask(2, schedule_id=name, action="CANCEL")
    assert sorted(ring.settle()) == sorted(f"CANCELLED {name}" for name in IDS[::2])
    assert sorted(ring.fire(T0 + 100)) == sorted(IDS[1::2])


def test_new_schedules_begin_in_the_new_home() -> None:
    ring = Ring()
    ring.follow(policy(1))
    ring.ask(0, schedule_id="old", at=T0 + 5)
    ring.settle()
    ring.follow(policy(8, 1))
    for number, name in enumerate(IDS):
        ring.ask(number, schedule_id=name, at=T0 + 5)
    ring.settle()
    homes = Homes(PARTITIONS)
    for name in IDS:
        (last,) = homes.route("demo", name, (1,), 8)[-1:]
        key = f"demo/{name}".encode()
        assert ring.drivers[last].engine._store.named(key) is not None
    assert sorted(ring.fire(T0 + 5)) == sorted(["old", *IDS])


def test_requests_of_one_schedule_stay_in_order_while_the_spread_changes() -> None:
    """An upsert and a cancel that are under way together never overtake one another."""
    ring = Ring()
    ring.follow(policy(8, 1))
    for name in IDS:
        ring.ask(1, schedule_id=name, at=T0 + 5)
        ring.ask(1, schedule_id=name, action="CANCEL")
        ring.ask(1, schedule_id=name, at=T0 + 9)
        ring.ask(1, schedule_id=name, action="CANCEL")
    outcomes = ring.settle()
    for name in IDS:
        mine = [each.split()[0] for each in outcomes if each.split()[1] == name]
        assert mine == ["ACCEPTED", "CANCELLED", "ACCEPTED", "CANCELLED"]
    assert ring.pending() == 0


def test_a_repeat_is_answered_where_the_first_was() -> None:
    ring = Ring()
    ring.follow(policy(1))
    ring.ask(0, schedule_id="a", at=T0 + 5)
    ring.settle()
    ring.follow(policy(8, 1))
    for _ in range(2):
        ring.ask(3, schedule_id="a", action="CANCEL", request_id="r")
    assert [each.split()[0] for each in ring.settle()] == ["CANCELLED", "DUPLICATE"]


def test_the_place_of_a_route_is_the_first_of_equal_homes() -> None:
    homes = Homes(2)
    for name in IDS:
        route = homes.route("demo", name, (1, 4), 9)
        assert route == list(dict.fromkeys(route))
        assert homes.route("demo", name, (1, 4, 9), 5)[: len(route)] == route
    assert Place(TOPIC, 0, homes).homes.route("demo", "x", (), 1) == [homes.of("demo")]
