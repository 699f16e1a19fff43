"""New time zone data moves what is pending, once, and whatever comes first: the sweep or the fire.

The change is made up: Paris turns its clocks an hour ahead of what the real data says in January.

    rule 0 9 * * *        old data 08:00 UTC        new data 07:00 UTC, or later 09:00 UTC
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta, timezone
from typing import Any

import pytest

from belfry.engine import compiled_rule
from belfry.schedules import triggers
from belfry.schedules.instants import parse_instant
from belfry.schedules.outcomes import Outcome
from belfry.schedules.triggers import cron, zones
from belfry.schedules.triggers.clock import Clock
from belfry.schedules.triggers.expression import expression
from belfry.schedules.triggers.zones import Zone
from belfry.store.layout import keys
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.pending_bytes import paused
from belfry.store.layout.records import encode_zones
from belfry.store.schedules import ScheduleStore
from belfry.wire.accepted import whole
from belfry.wire.lifecycle import LifecycleEvent
from tests.unit.engine.acknowledging import rebuilt
from tests.unit.engine.driver import Driver

NOW = parse_instant("2027-01-15T03:00:00Z")
EIGHT = parse_instant("2027-01-15T08:00:00Z")
HOUR = 3_600_000
DAY = 24 * HOUR
Release = Callable[[str, float], None]


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Iterator[Release]:
    """New data: its version, and the offset that it gives Paris, in hours."""

    def forget() -> None:
        triggers._trigger_of.cache_clear()
        compiled_rule.compiled_bare.cache_clear()

    def publish(version: str, hours: float) -> None:
        moved = Zone(timezone(timedelta(hours=hours)))
        monkeypatch.setattr(zones, "VERSION", version)
        monkeypatch.setattr(cron, "clock", lambda text, _: Clock(expression(text), moved))
        forget()

    forget()
    yield publish
    monkeypatch.undo()
    forget()


def begun() -> Driver:
    """A partition whose instants were found by the real data."""
    driver = Driver()
    driver.engine.claim(b"settings")
    driver.end(NOW)
    driver.ask(kind="CRON", cron="0 9 * * *", timezone="Europe/Paris")
    driver.ask(schedule_id="p", kind="CRON", cron="0 9 * * *", timezone="Europe/Paris")
    driver.ask(schedule_id="p", action="PAUSE")
    driver.ask(schedule_id="every", kind="EVERY", interval_ms=DAY)
    driver.ask(schedule_id="once", at=EIGHT)
    driver.step(NOW)
    return driver


def nominal(driver: Driver, schedule_id: str) -> int:
    store = ScheduleStore(driver.rows)
    name = keys.schedule_key("demo", schedule_id)
    record = store.pending_at(name, store.named(name) or b"")
    assert paused(record) == (schedule_id == "p")
    return decode_pending(record).nominal_ms


@pytest.mark.parametrize("hours", [2, 0])
def test_what_is_pending_is_derived_anew_once(release: Release, hours: int) -> None:
    driver = begun()
    release("made up", hours)
    rebuilt(driver, NOW)
    moved_ms = EIGHT - (hours - 1) * HOUR
    effects = driver.sweep(NOW)
    assert effects.rederived == 2
    assert [nominal(driver, name) for name in ("a", "p")] == [moved_ms, moved_ms]
    assert [nominal(driver, name) for name in ("every", "once")] == [NOW + DAY, EIGHT]
    assert driver.engine.next_due_ms() == min(moved_ms, EIGHT)
    assert driver.rows.get(b"k" + keys.ZONES_KEY) == encode_zones("made up")
    for again in range(3):
        rebuilt(driver, NOW)
        assert driver.sweep(NOW + again).empty
    assert driver.run(moved_ms - 1) == (["once"] if hours == 0 else [])
    assert "a" in driver.run(moved_ms)
    assert nominal(driver, "a") == moved_ms + DAY


def test_the_same_data_is_no_change(release: Release) -> None:
    driver = begun()
    rebuilt(driver, NOW)
    assert driver.sweep(NOW).empty


def test_many_are_derived_anew_by_and_by(release: Release) -> None:
    driver = begun()
    for number in range(50):
        driver.ask(schedule_id=f"c{number}", kind="CRON", cron="0 9 * * *", timezone="Europe/Paris")
    driver.step(NOW)
    release("made up", 2)
    rebuilt(driver, NOW)
    counts, awaited = list[int](), list[bool]()
    for _ in range(12):
        awaited.append(driver.engine.sweeps_awaited)
        counts.append(driver.sweep(NOW, at_most=1).rederived)
    assert awaited == [
        *(True for count in counts if count),
        *(False for count in counts if not count),
    ]
    assert sum(counts) == 52
    assert max(counts) <= 20
    assert driver.sweep(NOW).empty


def test_what_is_due_before_the_sweep_does_not_fire_at_both_instants(release: Release) -> None:
    """At 08:00 UTC by the old data, at 09:00 by the new."""
    driver = begun()
    release("made up", 0)
    rebuilt(driver, NOW)
    assert driver.run(EIGHT) == ["once"]
    assert driver.run(EIGHT + HOUR) == ["a"]
    assert nominal(driver, "a") == EIGHT + HOUR + DAY


def test_a_rollback_begins_again(release: Release) -> None:
    driver = begun()
    release("made up", 2)
    rebuilt(driver, NOW)
    assert driver.engine.sweep(NOW, 1_000).rederived == 2
    driver.end(NOW, commit=False)
    assert nominal(driver, "a") == EIGHT
    assert driver.sweep(NOW).rederived == 2
    assert nominal(driver, "a") == EIGHT - HOUR


def isolated(**policy: Any) -> Driver:
    """The same of a tenant whose events wait in a queue of their own."""
    driver = Driver()
    driver.engine.claim(b"settings")
    driver.end(NOW)
    driver.apply(**policy)
    for number in range(3):
        cron = f"{number} 9 * * *"
        driver.ask(schedule_id=f"{number}", kind="CRON", cron=cron, timezone="Europe/Paris")
    driver.step(NOW)
    return driver


@pytest.mark.parametrize("policy", [{"max_fires_per_second": 1000.0}, {"priority": -1}])
@pytest.mark.parametrize("hours", [2, 0])
@pytest.mark.parametrize("commit", [True, False])
def test_what_an_isolated_tenant_has_pending_is_derived_anew(
    release: Release, policy: dict[str, Any], hours: int, commit: bool
) -> None:
    driver = isolated(**policy)
    release("made up", hours)
    # With the store that it had: one that is rebuilt has all that is not due in the timeline.
    driver.start(driver.rows)
    if not commit:
        driver.engine.sweep(NOW, 1_000)
        driver.end(NOW, commit=False)
    assert driver.sweep(NOW).rederived == 3
    moved_ms = EIGHT - (hours - 1) * HOUR
    assert [nominal(driver, f"{n}") for n in range(3)] == [moved_ms + n * 60_000 for n in range(3)]
    assert driver.run(moved_ms - 1) == []
    assert driver.run(moved_ms + 60_000) == ["0", "1"]
    assert driver.run(moved_ms + HOUR) == ["2"]
    assert driver.engine.pending == 3


def test_a_crowd_is_derived_anew_too(release: Release) -> None:
    driver = isolated()
    driver.engine._parts.waiting.isolate(b"demo")
    driver.ask(schedule_id="crowd", kind="CRON", cron="0 9 * * *", timezone="Europe/Paris")
    driver.step(NOW)
    release("made up", 2)
    driver.start(driver.rows)
    assert driver.sweep(NOW).rederived == 4
    assert sorted(driver.run(EIGHT - HOUR)) == ["0", "crowd"]


WAYS: dict[str, dict[str, Any]] = {
    "in time": {},
    "a run that is late": {"misfire": "FIRE_ONCE", "max_lateness_ms": 0},
    "each of a late run": {"misfire": "FIRE_ALL", "max_lateness_ms": 0},
    "given up": {"misfire": "SKIP", "max_lateness_ms": 0},
    "overlap SKIP": {"overlap": "SKIP"},
    "overlap QUEUE_ONE": {"overlap": "QUEUE_ONE"},
    "a group": {"group": "g"},
    "serial": {"group": "g", "serial": True},
    "jitter": {"jitter_ms": 600_000},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wait", ["timeline", "priority", "paused", "held"])
@pytest.mark.parametrize("hours", [2, 0])
@pytest.mark.parametrize("swept", [True, False])
def test_no_instant_moves_onto_one_that_has_fired(
    release: Release, way: str, wait: str, hours: float, swept: bool
) -> None:
    """The 10 o'clock that is pending would be, by the new data, what fired as 9 o'clock."""
    driver = Driver()
    driver.engine.claim(b"settings")
    driver.end(NOW)
    driver.apply(priority=-1 if wait == "priority" else 0)
    driver.ask(kind="CRON", cron="0 9,10 * * *", timezone="Europe/Paris", **WAYS[way])
    driver.step(NOW)
    now_ms = EIGHT + HOUR // 4
    fires = all_fires(driver, now_ms)
    if wait == "paused":
        driver.ask(action="PAUSE")
        driver.step(now_ms)
    elif wait == "held":
        driver.tenants.hold("demo", "its topic is missing")
        now_ms += HOUR
        assert all_fires(driver, now_ms) == []
    release("made up", hours)
    driver.start(driver.rows)
    if swept:
        driver.sweep(now_ms)
    driver.tenants.hold("demo", "")
    if wait == "paused":
        driver.ask(action="RESUME")
        driver.step(now_ms)
    for each in range(1, 40):
        for fire in fires[-1:]:
            driver.ask(action="ACK", fire_id=fire.fire_id)
        fires += all_fires(driver, now_ms + each * HOUR)
    ids = [fire.fire_id for fire in fires]
    assert len(ids) == len(set(ids))
    assert driver.engine.pending == 1
    assert len(ids) >= {"given up": 0, "overlap SKIP": 2}.get(way, 3)


def all_fires(driver: Driver, now_ms: int) -> list[LifecycleEvent]:
    """What is told of fires until nothing more is due."""
    told = [*driver.step(now_ms).effects.lifecycle]
    while (due_ms := driver.engine.next_due_ms()) is not None and due_ms <= now_ms:
        told += driver.step(now_ms).effects.lifecycle
    return [whole(each) for each in told if each.outcome is Outcome.FIRED]


def test_what_is_written_in_the_step_of_the_sweep_is_derived_anew_too(release: Release) -> None:
    driver = begun()
    release("made up", 2)
    rebuilt(driver, NOW)
    driver.ask(schedule_id="p", action="RESUME")
    driver.ask(schedule_id="p", action="PAUSE")
    driver.engine.accept(driver.batch(), NOW)
    assert driver.engine.sweep(NOW, 1_000).rederived == 2
    driver.end(NOW)
    assert [nominal(driver, name) for name in ("a", "p")] == [EIGHT - HOUR] * 2
