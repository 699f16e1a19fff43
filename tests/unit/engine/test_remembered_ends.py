"""How long it is remembered that a schedule is over, by its tenant's policy: nothing to a day."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.store.layout import keys
from belfry.store.layout.records import is_marker
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy, problems
from tests.unit.engine.driver import HOUR, T0, Driver

NAME = b"demo/a"


def remembering(remember_ms: int) -> Driver:
    driver = Driver()
    policy = TenantPolicy("demo", remember_ms=remember_ms)
    driver.tenants.follow(EffectivePolicy(policy))
    return driver


def row_of(driver: Driver) -> bytes | None:
    """What the store holds under the name of the schedule."""
    return driver.rows.get(keys.named_key(NAME))


def fire(driver: Driver, **fields: Any) -> None:
    """The schedule `a` has fired, or has come to its end."""
    driver.ask(at=T0 + 5, **fields)
    driver.step(T0)
    driver.step(T0 + 6)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"max_lateness_ms": 5_000},
        {"kind": "EVERY", "at": None, "interval_ms": 3, "max_fires": 1},
    ],
    ids=["plain", "rule", "recurring"],
)
def test_who_remembers_nothing_leaves_no_row(fields: dict[str, Any]) -> None:
    """A tombstone in the changelog, nothing in the store, and nothing waits."""
    driver = remembering(0)
    asked = {"at": T0 + 5, **fields}
    driver.ask(**asked)
    driver.step(T0)
    fired = driver.step(T0 + 6)
    assert fired.ids == ["a"]
    assert fired.effects.rows[NAME] is None
    assert row_of(driver) is None
    assert driver.engine.pending == 0


def test_one_that_is_given_up_leaves_nothing_either() -> None:
    driver = remembering(0)
    driver.ask(at=T0 + 5, max_lateness_ms=1, misfire="SKIP")
    driver.step(T0)
    given_up = driver.step(T0 + HOUR)
    assert given_up.ids == []
    assert given_up.effects.rows[NAME] is None


@pytest.mark.parametrize("remember_ms", [0, 1, HOUR, 24 * HOUR])
def test_a_cancel_is_too_late_for_as_long_as_the_end_is_remembered(remember_ms: int) -> None:
    """By when the request arrived, whether or not a sweep has come by."""
    driver = remembering(remember_ms)
    fire(driver)
    answers = []
    for after_ms in (remember_ms - 1, remember_ms):
        now_ms = T0 + 6 + max(after_ms, 0)
        driver.ask(now_ms, action="CANCEL", request_id=f"{after_ms}")
        answers += driver.step(now_ms).outcomes
    assert answers == (["TOO_LATE", "NOT_FOUND"] if remember_ms else ["NOT_FOUND"] * 2)


@pytest.mark.parametrize("remember_ms", [HOUR, 24 * HOUR])
def test_a_sweep_forgets_it_then(remember_ms: int) -> None:
    driver = remembering(remember_ms)
    fire(driver)
    for after_ms, remembered in ((remember_ms - 1, True), (remember_ms, False)):
        now_ms = T0 + 6 + after_ms
        driver.ask(now_ms, tenant="other", schedule_id="x", at=T0 + 10**10)
        driver.step(now_ms)
        driver.sweep(now_ms)
        row = row_of(driver)
        assert (row is not None and is_marker(row)) is remembered


def test_an_id_is_free_at_once_and_begins_anew() -> None:
    driver = remembering(0)
    fire(driver)
    driver.ask(T0 + 7, action="CREATE", at=T0 + 20, request_id="again")
    assert driver.step(T0 + 7).outcomes == ["ACCEPTED"]
    assert driver.step(T0 + 20).ids == ["a"]


def test_a_step_that_is_rolled_back_forgets_nothing() -> None:
    driver = remembering(0)
    driver.ask(at=T0 + 5)
    driver.step(T0)
    driver.step(T0 + 6, commit=False)
    assert driver.engine.pending == 1
    assert driver.step(T0 + 6).ids == ["a"]


def test_a_window_that_is_longer_than_the_memory_is_refused() -> None:
    driver = remembering(HOUR)
    driver.ask(at=T0 + 5, throttle_ms=HOUR + 1)
    assert driver.step(T0).codes == ["bad_throttle"]
    driver.ask(at=T0 + 5, throttle_ms=HOUR)
    assert driver.step(T0).codes == []


@pytest.mark.parametrize("remember_ms", [-1, 24 * HOUR + 1])
def test_no_policy_remembers_for_longer_than_a_day(remember_ms: int) -> None:
    (found,) = problems(TenantPolicy("demo", remember_ms=remember_ms))
    assert found == f"remember_ms is {remember_ms}; 0 to 86400000 is allowed."
