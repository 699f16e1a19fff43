"""A spread that changes: schedules stay where they began, are found there, and begin only once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from belfry.engine.reports import SourcePartition
from belfry.engine.rerouting import MAX_RETRIES
from belfry.schedules.identity import Homes
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from belfry.wire.accepted import whole
from belfry.wire.lifecycle import LifecycleEvent
from tests.unit.engine.driver import HOUR, T0, TOPIC, Driver

PARTITIONS = 4
IDS = [f"id{number}" for number in range(40)]


class Ring:
    """All partitions of one belfry, with strays carried between them as the worker does."""

    def __init__(self, skews_ms: Sequence[int] = (0,) * PARTITIONS) -> None:
        """`skews_ms`: how far the clock of each partition's broker is ahead."""
        self.skews_ms = skews_ms
        self.drivers = [Driver(partition=p, partitions=PARTITIONS) for p in range(PARTITIONS)]
        self.hops = 0

    def follow(self, policy: TenantPolicy, *partitions: int) -> None:
        """The owners of these partitions learn of a policy; without any, all do."""
        for partition in partitions or range(PARTITIONS):
            self.drivers[partition].tenants.follow(EffectivePolicy(policy))

    def ask(self, arrives: int, **fields: Any) -> None:
        arrives %= PARTITIONS
        appended_ms = T0 + self.skews_ms[arrives]
        self.drivers[arrives].ask(appended_ms, tenant="demo", **fields)

    def settle(self, now_ms: int = T0) -> list[str]:
        """Steps until nothing is on its way; outcomes in their order, with their partition."""
        told: list[LifecycleEvent] = []
        while self.step(told, now_ms):
            pass
        return [f"{each.outcome} {each.schedule_id}" for each in told]

    def step(self, told: list[LifecycleEvent], now_ms: int = T0) -> bool:
        """One step of each partition; whether anything is on its way after it."""
        before = self.hops
        for driver in self.drivers:
            effects = driver.step(now_ms, fire=False).effects
            told += map(whole, effects.lifecycle)
            for stray in effects.rerouted:
                self.hops += 1
                appended_ms = now_ms + self.skews_ms[stray.partition]
                home = self.drivers[stray.partition]
                home.send(stray.value, stray.key, stray.headers, appended_ms)
        return self.hops > before

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
    assert SourcePartition(TOPIC, 0, homes).homes.route("demo", "x", (), 1) == [homes.of("demo")]


HOMES = Homes(PARTITIONS)
OLD_HOME = HOMES.of("demo")
MOVED = [name for name in IDS if HOMES.of("demo", name, 8) != OLD_HOME]
NEW_HOME = HOMES.of("demo", MOVED[0], 8)


@pytest.mark.parametrize("knows_first", [OLD_HOME, NEW_HOME])
@pytest.mark.parametrize("arrives", range(PARTITIONS))
def test_a_change_refuses_nothing_while_workers_know_different_policies(
    knows_first: int, arrives: int
) -> None:
    ring, told = Ring(), list[LifecycleEvent]()
    ring.follow(policy(1))
    ring.follow(policy(8, 1), knows_first)
    ring.ask(arrives, schedule_id=MOVED[0], at=T0 + 5, request_id="r")
    for _ in range(200):
        ring.step(told)
    ring.follow(policy(8, 1))
    while ring.step(told):
        pass
    (verdict,) = told
    assert (str(verdict.outcome), verdict.code) == ("ACCEPTED", None)
    assert (verdict.source_partition, verdict.source_offset) == (arrives, 0)
    assert ring.pending() == 1
    # Whatever follows finds it, and finds it once.
    ring.ask(arrives + 1, schedule_id=MOVED[0], action="CANCEL")
    assert ring.settle() == [f"CANCELLED {MOVED[0]}"]
    assert ring.pending() == 0


def test_a_former_spread_that_is_left_out_refuses_nothing_either() -> None:
    ring, told = Ring(), list[LifecycleEvent]()
    ring.follow(policy(8, 1))
    ring.follow(policy(8), *(each for each in range(PARTITIONS) if each != NEW_HOME))
    for number in range(PARTITIONS):
        ring.ask(number, schedule_id=MOVED[0], at=T0 + 5 + number, request_id=f"r{number}")
    for _ in range(200):
        ring.step(told)
    ring.follow(policy(8))
    while ring.step(told):
        pass
    assert sorted(each.request_id or "" for each in told) == ["r0", "r1", "r2", "r3"]
    assert "REJECTED" not in {str(each.outcome) for each in told}
    assert ring.pending() == 1


def test_workers_that_never_agree_refuse_at_last_and_keep_nothing() -> None:
    ring = Ring()
    ring.follow(policy(1))
    ring.follow(policy(8, 1), OLD_HOME)
    told: list[LifecycleEvent] = []
    ring.ask(OLD_HOME, schedule_id=MOVED[0], at=T0 + 5, request_id="r")
    while ring.step(told):
        pass
    (verdict,) = told
    assert (verdict.code, ring.pending()) == ("misrouted", 0)
    assert MAX_RETRIES <= ring.hops <= 2 * MAX_RETRIES + 2
    assert "Remove" not in (verdict.reason or "")
    ring.follow(policy(8, 1))
    ring.ask(OLD_HOME, schedule_id=MOVED[0], at=T0 + 5, request_id="r")
    assert ring.settle() == [f"ACCEPTED {MOVED[0]}"]


def test_the_origin_outlives_brokers_whose_clocks_differ() -> None:
    """Each broker's clock is an hour behind the last one's, so a hop seems to go back in time."""
    ring, told = Ring([0, -1 * HOUR, -2 * HOUR, -3 * HOUR]), list[LifecycleEvent]()
    ring.follow(policy(8, 1))
    for arrives in range(PARTITIONS):
        ring.ask(arrives, schedule_id=MOVED[0], at=T0 + HOUR + arrives, request_id=f"r{arrives}")
    while ring.step(told):
        pass
    places = {each.request_id: (each.source_partition, each.source_offset) for each in told}
    assert places == {f"r{arrives}": (arrives, 0) for arrives in range(PARTITIONS)}
