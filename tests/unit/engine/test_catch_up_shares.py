"""Catching up is shared: tenants share a step's room, a tenant's schedules what it gets of it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from belfry.firing.rates import PER_SECOND, SAVED_MS
from tests.unit.engine.driver import HOUR, T0, Driver, Step

SECOND = 1_000
BURST = PER_SECOND * SAVED_MS // 1_000


def late(**schedules: int | None) -> Driver:
    """Schedules of each second, with their priorities, that were missed for an hour.

    A name is `tenant_id`.
    """
    driver = Driver()
    for name, priority in schedules.items():
        tenant, _, schedule_id = name.partition("_")
        given = {} if priority is None else {"priority": priority}
        driver.ask(
            tenant=tenant, schedule_id=schedule_id, kind="EVERY", interval_ms=SECOND,
            misfire="FIRE_ALL", **given,
        )  # fmt: skip
    driver.step(T0)
    # All of them join the queue, before any of them fires.
    assert driver.step(T0 + HOUR, take=0).shots == []
    return driver


def instant(ms: int) -> bytes:
    """An instant as fired records tell it."""
    told = datetime.fromtimestamp(ms / 1_000, UTC).isoformat(timespec="milliseconds")
    return told.replace("+00:00", "Z").encode()


def shares(step: Step) -> Counter[str]:
    return Counter(step.ids)


@pytest.mark.parametrize("at_most", [1, 2, 3, 4, 30, 31, 100])
def test_schedules_of_a_tenant_share_what_it_gets(at_most: int) -> None:
    driver = late(a_x=None, a_y=None, a_z=None)
    step = driver.step(T0 + HOUR + SECOND, at_most=at_most, take=0)
    found = shares(step)
    assert found.total() == at_most
    assert max(found.values()) - min(found[name] for name in "xyz") <= 1


@pytest.mark.parametrize("at_most", [2, 30, 31, 100])
def test_tenants_share_a_step_however_many_schedules_they_have(at_most: int) -> None:
    driver = late(a_x=None, b_p=None, b_q=None, b_r=None)
    found = shares(driver.step(T0 + HOUR + SECOND, at_most=at_most, take=0))
    assert found.total() == at_most
    assert abs(found["x"] - (found["p"] + found["q"] + found["r"])) <= 1


@pytest.mark.parametrize("at_most", [1, 20, 100])
def test_an_urgent_level_goes_first_and_a_share_is_of_all_levels(at_most: int) -> None:
    driver = late(a_x=0, a_y=5, b_z=0)
    found = shares(driver.step(T0 + HOUR + SECOND, at_most=at_most, take=0))
    assert found.total() <= at_most
    assert found["y"] >= found["x"]
    assert found["z"] <= -(-at_most // 2)


@pytest.mark.parametrize("names", [["a_x"], ["a_x", "a_y", "a_z"], ["a_x", "b_y", "c_z"]])
def test_the_rate_is_charged_with_what_fires_and_nothing_else(names: list[str]) -> None:
    driver = late(**dict.fromkeys(names))
    now_ms = T0 + HOUR + SECOND
    assert len(driver.step(now_ms, take=0).shots) == BURST
    for passed_ms in (10, 25, 17, 58, 100, 400):
        now_ms += passed_ms
        want = PER_SECOND * min(passed_ms, SAVED_MS) // 1_000
        assert len(driver.step(now_ms, take=0).shots) == want
        # Nothing is left of it for another step at that instant.
        assert driver.step(now_ms, take=0).shots == []


def test_what_an_urgent_level_leaves_of_a_share_goes_to_the_next_one() -> None:
    driver = Driver()
    every: dict[str, Any] = {"kind": "EVERY", "interval_ms": SECOND, "misfire": "FIRE_ALL"}
    driver.ask(schedule_id="few", priority=5, max_fires=10, **every)
    driver.ask(schedule_id="many", priority=0, **every)
    driver.step(T0)
    assert driver.step(T0 + HOUR, take=0).shots == []
    step = driver.step(T0 + HOUR + SECOND, at_most=30, take=0)
    assert step.ids == ["few"] * 10 + ["many"] * 20


def test_a_burst_ends_with_what_was_missed_and_nothing_fires_before_it_is_due() -> None:
    driver = late(a_x=None)
    now_ms, fired = T0 + HOUR, 0
    for _ in range(100):
        now_ms += 70
        for shot in driver.step(now_ms, take=0).shots:
            assert (shot.header("belfry-scheduled-at") or b"") <= instant(now_ms)
            fired += 1
    assert fired == (now_ms - T0) // SECOND


def test_what_got_too_old_while_it_waited_is_passed_over_and_the_rest_fires() -> None:
    driver = Driver()
    driver.apply(look_back_ms=HOUR // 2)
    driver.ask(kind="EVERY", interval_ms=SECOND, misfire="FIRE_ALL")
    driver.step(T0)
    driver.step(T0 + HOUR, take=0)
    assert len(driver.step(T0 + HOUR + SECOND, take=0).shots) == BURST
    # Nobody fires for an hour, and more than half of what waits is too old by then.
    now_ms, found = T0 + 2 * HOUR, list[bytes]()
    for _ in range(40):
        shots = driver.step(now_ms, take=0).shots
        found += [shot.header("belfry-scheduled-at") or b"" for shot in shots]
        now_ms += SAVED_MS
    assert found == [instant(ms) for ms in range(T0 + 3 * HOUR // 2, now_ms - SAVED_MS + 1, SECOND)]
    assert driver.engine.pending == 1
