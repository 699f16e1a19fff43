"""What goes along with a key group that moves, what stays, and what is in its way."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from belfry.engine import giving, group_rows
from belfry.store.layout.keys import ZONES_KEY
from belfry.store.layout.records import encode_zones
from belfry.tenants.policy import TenantPolicy
from belfry.wire.headers import SOURCE
from tests.unit.engine.driver import HOUR, T0
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing

SERIAL: dict[str, Any] = {"group": "g", "serial": True, "ack_timeout_ms": 30_000}


def target_of(ring: MovingRing, tenant: str = "demo") -> int:
    return (ring.home(tenant) + 1) % PARTITIONS


def moved(ring: MovingRing, tenant: str = "demo") -> int:
    """Move the group of a tenant; where it lies then."""
    target = target_of(ring, tenant)
    ring.settle()
    ring.move(tenant, target)
    ring.settle()
    assert ring.at_rest()
    return target


def fired_ids(ring: MovingRing) -> list[str]:
    return [shot.id for shot in ring.shots]


def at(ring: MovingRing, ms: int) -> None:
    ring.now_ms = T0 + ms
    ring.settle()


def test_an_awaited_fire_goes_along_and_its_ack_lets_the_next_one_go() -> None:
    ring = MovingRing()
    ring.ask("demo", schedule_id="first", at=T0 + 10, **SERIAL)
    ring.ask("demo", schedule_id="second", at=T0 + 20, **SERIAL)
    at(ring, 25)
    assert fired_ids(ring) == ["first"]
    target = moved(ring)
    ring.kill(target)
    at(ring, 50)
    assert fired_ids(ring) == ["first"]
    identity = (ring.shots[0].header("belfry-fire-id") or b"").decode()
    ring.ask("demo", schedule_id="first", action="ACK", fire_id=identity)
    ring.settle()
    assert fired_ids(ring) == ["first", "second"]
    assert ring.outcomes()[-1] == "UPDATED first"


def test_an_awaited_fire_times_out_where_it_lies() -> None:
    ring = MovingRing()
    ring.ask("demo", schedule_id="first", at=T0 + 10, **SERIAL)
    ring.ask("demo", schedule_id="second", at=T0 + 20, **SERIAL)
    at(ring, 25)
    moved(ring)
    at(ring, 30_100)
    assert fired_ids(ring) == ["first", "second"]
    assert ring.outcomes().count("FAILED first") == 1


def test_who_waits_for_a_group_is_not_let_go_while_its_members_are_on_their_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(giving, "SLICE_ROWS", 1)
    ring = MovingRing()
    ring.ask("demo", schedule_id="all", kind="AFTER_GROUP", after_group="g")
    ring.ask("demo", schedule_id="m", at=T0 + 1_000, **SERIAL)
    # The walk of the home has met `m`.
    moved(ring)
    ring.sweep(target_of(ring))
    at(ring, 500)
    assert fired_ids(ring) == []
    at(ring, 1_000)
    assert fired_ids(ring) == ["m"]
    identity = (ring.shots[0].header("belfry-fire-id") or b"").decode()
    ring.ask("demo", schedule_id="m", action="ACK", fire_id=identity)
    ring.settle()
    assert fired_ids(ring) == ["m", "all"]


def test_ends_answers_pauses_and_calendars_go_along() -> None:
    ring = MovingRing()
    ring.ask("demo", schedule_id="over", at=T0 + 10, request_id="r")
    ring.ask("demo", schedule_id="paused", at=T0 + 20)
    ring.ask("demo", schedule_id="paused", action="PAUSE")
    days = json.dumps({"days": ["2027-01-16"]})
    ring.ask("demo", schedule_id="de", action="CALENDAR", days_off=days)
    at(ring, 30)
    target = moved(ring)
    ring.kill(target)
    before = len(ring.told)
    ring.ask("demo", schedule_id="over", action="CANCEL")
    ring.ask("demo", schedule_id="over", at=T0 + 10, request_id="r")
    ring.ask("demo", schedule_id="de", action="CALENDAR", days_off=days)
    ring.ask("demo", schedule_id="paused", action="RESUME")
    ring.settle()
    told = [each.split()[0] for each in ring.outcomes()[before:]]
    assert told == ["TOO_LATE", "DUPLICATE", "UNCHANGED", "RESUMED"]
    assert fired_ids(ring) == ["over", "paused"]


def test_those_of_one_instant_leave_in_the_order_in_which_they_were_asked_for() -> None:
    ring = MovingRing()
    names = [f"s{number}" for number in (7, 3, 9, 1)]
    for name in names:
        ring.ask("demo", schedule_id=name, at=T0 + 100)
    moved(ring)
    for name in ("s0", "s8"):
        ring.ask("demo", schedule_id=name, at=T0 + 100)
    at(ring, 100)
    assert fired_ids(ring) == [*names, "s0", "s8"]


def test_a_trigger_has_another_fire_id_at_the_same_offset_of_another_partition() -> None:
    ring = MovingRing()
    home, target = ring.home("demo"), target_of(ring)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    moved(ring)
    for _ in range(20):
        ring.ask("demo", schedule_id="a", action="TRIGGER")
    ring.settle()
    ring.move("demo", home)
    ring.settle()
    while len(ring.drivers[home].source) < len(ring.drivers[target].source) + 20:
        ring.ask("demo", schedule_id="a", action="TRIGGER")
    ring.settle()
    ids = [shot.header("belfry-fire-id") for shot in ring.shots]
    assert len(ids) == len(set(ids)) > 20


def test_what_has_moved_does_not_say_where_its_request_lies() -> None:
    ring = MovingRing()
    ring.follow(TenantPolicy("demo", lifecycle="ALL", source_header=True))
    ring.ask("demo", schedule_id="here", at=T0 + 10)
    at(ring, 10)
    ring.ask("demo", schedule_id="there", at=T0 + 20)
    moved(ring)
    at(ring, 20)
    here, there = ring.shots
    assert SOURCE in dict(here.headers)
    assert SOURCE not in dict(there.headers)


def neighbour(ring: MovingRing, tenant: str) -> str:
    """Another tenant of the same group."""
    names = (f"t{number}" for number in count())
    return next(each for each in names if ring.group(each) == ring.group(tenant))


def test_a_spread_tenant_stays_and_is_found_where_it_was() -> None:
    ring = MovingRing()
    big = neighbour(ring, "demo")
    home = ring.home("demo")
    ring.ask(big, schedule_id="old", at=T0 + HOUR)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    ring.follow(TenantPolicy(big, lifecycle="ALL", spread=5, former_spreads=(1,)))
    target = moved(ring)
    assert ring.pending()[home] == ring.pending()[target] == 1
    ring.ask(big, schedule_id="old", action="CANCEL")
    ring.ask("demo", schedule_id="a", action="CANCEL")
    for number in range(10):
        ring.ask(big, schedule_id=f"n{number}", at=T0 + HOUR)
        ring.ask(big, schedule_id=f"n{number}", action="CANCEL")
    ring.settle()
    assert ring.outcomes()[2:].count("CANCELLED old") == 1
    assert sum(ring.pending()) == 0


def test_a_spread_tenant_fires_on_where_its_group_is_awaited() -> None:
    """The home of the group is down, so the target waits, and nothing of this tenant comes."""
    ring = MovingRing()
    target = target_of(ring)
    big = neighbour(ring, "demo")
    ring.follow(TenantPolicy(big, lifecycle="ALL", spread=16))
    for number in range(20):
        ring.ask(big, schedule_id=f"n{number}", at=T0 + 10)
    ring.settle()
    here = ring.pending()[target]
    ring.move("demo", target)
    ring.step(ring.home("demo"))
    ring.step(target)
    ring.now_ms = T0 + 10
    ring.step(target)
    assert len(ring.shots) == here > 0


def test_a_tenant_that_is_spread_after_its_move_is_found_and_pins_its_group() -> None:
    ring = MovingRing()
    ring.ask("demo", schedule_id="old", at=T0 + HOUR)
    target = moved(ring)
    ring.follow(TenantPolicy("demo", lifecycle="ALL", spread=5, former_spreads=(1,)))
    for number in range(10):
        ring.ask("demo", arrives=number % PARTITIONS, schedule_id=f"n{number}", at=T0 + HOUR)
    ring.ask("demo", schedule_id="old", at=T0 + HOUR, payload=b"new")
    ring.settle()
    assert sum(ring.pending()) == 11
    assert ring.outcomes().count("UPDATED old") == 1
    before = ring.pending()
    ring.move("demo", ring.home("demo"))
    ring.settle()
    assert ring.at_rest()
    assert ring.pending() == before
    ring.ask("demo", schedule_id="old", action="CANCEL")
    ring.settle()
    assert ring.pending()[target] == before[target] - 1


@pytest.mark.parametrize("why", ["job", "many", "large", "aside", "tenants"])
def test_what_is_in_the_way_leaves_all_as_it_is(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = MovingRing()
    home, target = ring.home("demo"), target_of(ring)
    for number in range(3):
        ring.ask("demo", schedule_id=f"s{number}", at=T0 + HOUR, payload=b"x" * 100)
    ring.settle()
    if why == "job":
        kept = ring.drivers[home].engine._parts.jobs._kept
        monkeypatch.setattr(kept, "tenants", lambda: {b"demo"})
    elif why == "many":
        monkeypatch.setattr(group_rows, "MOST_ROWS", 1)
    elif why == "tenants":
        monkeypatch.setattr(group_rows, "MOST_TENANTS", 0)
    elif why == "large":
        monkeypatch.setattr(group_rows, "MOST_ROW_BYTES", 100)
    else:
        monkeypatch.setattr(type(ring.drivers[home].engine.aside), "any", property(lambda _: True))
    ring.move("demo", target)
    ring.ask("demo", schedule_id="s0", action="CANCEL")
    ring.settle()
    assert ring.at_rest()
    (end,) = ring.ends
    assert (end.group, end.source, end.target) == (ring.group("demo"), home, target)
    assert end.why.split(":")[0] == why
    assert ring.pending()[home] == 2
    assert not ring.drivers[home].engine._parts.groups.homes
    assert not ring.drivers[target].engine._parts.groups.lies
    monkeypatch.undo()
    ring.move("demo", target)
    ring.settle()
    assert ring.pending()[target] == 2


@pytest.mark.parametrize("commit", [True, False])
def test_killed_or_rolled_back_behind_each_step_of_a_move(
    commit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`commit`: the step before the kill is in the log; else it is rolled back."""
    monkeypatch.setattr(giving, "SLICE_ROWS", 2)
    for cut in range(25):
        ring = MovingRing()
        for number in range(5):
            ring.ask("demo", schedule_id=f"s{number}", at=T0 + 10 + number, group="g")
        ring.settle()
        ring.move("demo", target_of(ring))
        ring.ask("demo", schedule_id="s9", at=T0 + 19, group="g")
        steps = 0
        for partition in [*range(PARTITIONS)] * 12:
            steps += ring.step(partition, commit=commit or steps != cut)
            if steps > cut:
                ring.kill(partition)
                break
            ring.now_ms += 1
        ring.settle()
        assert ring.at_rest()
        at(ring, 100)
        assert fired_ids(ring) == [*(f"s{number}" for number in range(5)), "s9"], cut
        assert sum(ring.pending()) == 0


def test_what_was_found_by_older_time_zone_data_is_looked_through_there() -> None:
    ring = MovingRing()
    home, target = ring.home("demo"), target_of(ring)
    for driver in ring.drivers:
        driver.engine.claim(b"settings")
        driver.end(T0)
    # As if the owner of the home had older data than that of the target.
    older = encode_zones("2020a")
    ring.drivers[home].engine._store.note(ZONES_KEY, older)
    ring.drivers[home].end(T0)
    ring.ask("demo", schedule_id="a", kind="CRON", cron="0 9 * * *", timezone="Europe/Paris")
    moved(ring)
    zones = ring.drivers[target].engine._parts.zones
    assert zones.under_way
    ring.kill(target)
    zones = ring.drivers[target].engine._parts.zones
    assert zones.under_way
    ring.sweep(target)
    assert not zones.under_way
