"""Where catching up ends: at a schedule's limit, with a step's last byte, at an empty level."""

from __future__ import annotations

from typing import Any, Final

import pytest

from belfry.firing.rates import PER_SECOND, SOON_MS
from tests.unit.engine.driver import HOUR, T0, Driver, Step
from tests.unit.engine.test_catch_up_shares import BURST, SECOND, instant, late

# Lateness up to here is none, where a schedule does not say otherwise.
LIMIT: Final = 60 * SECOND
NOW: Final = T0 + HOUR + SECOND
EVERY: Final[dict[str, Any]] = {"kind": "EVERY", "interval_ms": SECOND, "misfire": "FIRE_ALL"}
PLENTY: Final = 1 << 20


def with_bytes(driver: Driver, room: int) -> Driver:
    """An engine whose steps have room for so many bytes."""
    driver.engine._step_bytes = driver.engine._step.effects.room = room
    return driver


def scheduled(step: Step) -> list[bytes]:
    return [shot.header("belfry-scheduled-at") or b"" for shot in step.shots]


def seconds(first: int, last: int) -> list[bytes]:
    """The instants of these seconds since T0, the last one inclusive."""
    return [instant(T0 + each * SECOND) for each in range(first, last + 1)]


def behind(by_s: int) -> Driver:
    """A schedule of each second that waits in its queue, until so many seconds after T0."""
    driver = Driver()
    driver.ask(**EVERY)
    driver.step(T0)
    assert driver.step(T0 + by_s * SECOND - SOON_MS, take=0).shots == []
    return driver


def test_what_is_late_by_its_limit_to_the_millisecond_catches_up_no_more() -> None:
    driver = behind(100)
    assert scheduled(driver.step(T0 + 100 * SECOND, take=0)) == seconds(1, 39)
    assert scheduled(driver.step(T0 + 100 * SECOND, take=0)) == seconds(40, 100)


def test_a_share_that_ends_right_before_the_limit_leaves_nothing_in_the_queue() -> None:
    driver = behind(100)
    assert scheduled(driver.step(T0 + 100 * SECOND, at_most=39, take=0)) == seconds(1, 39)
    assert scheduled(driver.step(T0 + 100 * SECOND, take=0)) == seconds(40, 100)


def test_a_step_whose_rate_is_used_up_has_nothing_to_commit() -> None:
    driver = late(a_x=None, b_y=None)
    assert len(driver.step(NOW, take=0).shots) == BURST
    assert driver.step(NOW, take=0).effects.empty


def test_a_rate_for_one_lets_one_tenant_fire_and_then_the_other() -> None:
    driver = late(a_x=None, b_y=None)
    steps = [driver.step(NOW + passed, at_most=1, take=0).ids for passed in (0, SOON_MS)]
    assert sorted(steps) == [["x"], ["y"]]


def heavy(room: int, *ids: str, payload: int = 1_000, **more: Any) -> Driver:
    """Schedules with payloads of so many bytes, late by an hour, and steps of so much room."""
    driver = Driver()
    for schedule_id in ids:
        driver.ask(schedule_id=schedule_id, payload=b"x" * payload, **more, **EVERY)
    driver.step(T0)
    assert driver.step(T0 + HOUR, take=0).shots == []
    return with_bytes(driver, room)


def used_by(fires: int) -> int:
    """The bytes that a step has used up once it has fired so many of these."""
    step = heavy(PLENTY, "a").step(NOW, at_most=fires, take=0)
    assert len(step.shots) == fires
    return PLENTY - step.effects.room


@pytest.mark.parametrize("fires", [1, 2, 7])
@pytest.mark.parametrize(("spare", "more"), [(-1, 0), (0, 0), (1, 1)])
def test_a_burst_ends_with_the_fire_that_uses_the_last_byte_up(
    fires: int, spare: int, more: int
) -> None:
    driver = heavy(used_by(fires) + spare, "a")
    assert len(driver.step(NOW, take=0).shots) == fires + more


def few_and_many(room: int) -> Driver:
    """An urgent schedule that is late seven times, and another one; steps of so much room."""
    driver = Driver()
    driver.ask(schedule_id="few", payload=b"x" * 1_000, priority=5, max_fires=7, **EVERY)
    driver.ask(schedule_id="many", payload=b"x" * 1_000, **EVERY)
    driver.step(T0)
    assert driver.step(T0 + HOUR, take=0).shots == []
    return with_bytes(driver, room)


@pytest.mark.parametrize(("spare", "many"), [(0, 0), (1, 1)])
def test_the_next_level_has_its_turn_where_a_byte_is_left(spare: int, many: int) -> None:
    step = few_and_many(PLENTY).step(NOW, at_most=7, take=0)
    assert step.ids == ["few"] * 7
    step = few_and_many(PLENTY - step.effects.room + spare).step(NOW, take=0)
    assert step.ids == ["few"] * 7 + ["many"] * many


def test_a_share_is_of_all_levels_together() -> None:
    driver = Driver()
    for schedule_id, priority in (("first", 5), ("second", 3)):
        driver.ask(schedule_id=schedule_id, priority=priority, max_fires=7, **EVERY)
    driver.ask(schedule_id="last", **EVERY)
    driver.step(T0)
    assert driver.step(T0 + HOUR, take=0).shots == []
    step = driver.step(NOW, at_most=30, take=0)
    assert step.ids == ["first"] * 7 + ["second"] * 7 + ["last"] * 16


def test_a_tenant_fires_one_however_few_bytes_live_events_leave_and_not_one_of_each_level() -> None:
    driver = with_bytes(late(a_x=0, a_y=5, b_z=0), 3_000)
    driver.ask(tenant="c", schedule_id="live", at=NOW, payload=b"x" * 4_000)
    driver.step(T0 + HOUR, fire=False)
    assert driver.step(NOW, take=0).ids == ["live", "y", "z"]


def test_rows_that_are_taken_at_once_fill_half_of_a_step() -> None:
    # Half of it is three rows of 1 000 bytes and some more.
    step = heavy(6_600, *[f"s{number}" for number in range(6)]).step(NOW, at_most=6, take=0)
    assert sorted(set(step.ids)) == ["s0", "s1", "s2"]


def test_a_level_whose_rows_join_in_this_step_takes_nothing_of_the_share() -> None:
    driver = late(a_low=None)
    driver.ask(tenant="a", schedule_id="high", priority=5, start_at=NOW + SECOND, **EVERY)
    driver.step(T0 + HOUR, fire=False)
    now_ms = NOW + 2 * LIMIT
    assert driver.step(now_ms, at_most=30, take=0).ids == ["low"] * 30
    now_ms += SOON_MS
    assert driver.step(now_ms, at_most=30, take=0).ids == ["high"] * 30
    # The rate is charged with sixty, and with nothing for the level that was empty.
    now_ms += SOON_MS
    left = min(BURST, BURST - 30 + PER_SECOND * SOON_MS // 1_000) - 30
    left = min(BURST, left + PER_SECOND * SOON_MS // 1_000)
    assert len(driver.step(now_ms, take=0).shots) == left
