"""Numbers that have reached the largest value with room at rest come to a defined end."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.outcomes import Outcome
from belfry.store.layout.pending import MOST_NUMBER, decode_pending, encode_pending
from belfry.store.layout.records import ENDED_COMPLETED, decode_marker
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import BOUNDS, TenantPolicy, problems
from tests.unit.engine.driver import T0, Driver

NAME = b"demo/a"


def standing_at(occurrence: int, **fields: Any) -> Driver:
    """A schedule of each millisecond whose next fire has this number."""
    driver = Driver()
    driver.ask(kind="EVERY", interval_ms=1, start_at=T0 + 5, **fields)
    driver.step(T0)
    record = dict(driver.changelog)[NAME] or b""
    row = decode_pending(record)._replace(occurrence=occurrence)
    place = driver.engine._store.named(NAME)
    assert place is not None
    driver.engine._store.remove(NAME, place)
    driver.engine._store.keep_in_timeline(NAME, encode_pending(row), T0 + 5, row.seq)
    driver.engine.claim(None)
    driver.end(T0)
    return driver


@pytest.mark.parametrize("left", [0, 1, 2])
@pytest.mark.parametrize("fields", [{}, {"group": "g"}, {"jitter_ms": 3}, {"misfire": "FIRE_ALL"}])
def test_a_rule_that_reaches_the_last_number_is_completed(
    left: int, fields: dict[str, Any]
) -> None:
    driver = standing_at(MOST_NUMBER - left, **fields)
    fired, completed = 0, 0
    for now_ms in range(T0 + 5, T0 + 20):
        effects = driver.step(now_ms, take=0).effects
        fired += len(effects.fired)
        if not effects.empty:
            completed += effects.outcomes[Outcome.COMPLETED]
    assert (fired, driver.engine.pending) == (max(left, 1), 0)
    marker = decode_marker(dict(driver.changelog)[NAME] or b"")
    assert (marker.how, marker.occurrence) == (ENDED_COMPLETED, MOST_NUMBER)


def test_others_fire_beside_it() -> None:
    driver = standing_at(MOST_NUMBER)
    driver.ask(schedule_id="b", at=T0 + 6)
    driver.step(T0)
    assert sorted(driver.run(T0 + 10)) == ["a", "b"]


@pytest.mark.parametrize("name", BOUNDS)
def test_a_policys_numbers_have_bounds(name: str) -> None:
    least, most = BOUNDS[name]
    for value in (least, most):
        assert problems(TenantPolicy("demo", **{name: value})) == []  # type: ignore[arg-type]
    for value in (least - 1, most + 1):
        found = problems(TenantPolicy("demo", **{name: value}))  # type: ignore[arg-type]
        assert len(found) == 1
        assert f"{name} is {value};" in found[0]


def test_bounds_of_a_policy_are_told_in_full() -> None:
    (told,) = problems(TenantPolicy("demo", priority=-(2**31)))
    assert told == "priority is -2147483648; -2147483647 to 2147483647 is allowed."


@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e-7, 1e10, 1e308, float("inf"), float("nan")])
def test_a_rate_that_cannot_be_counted_is_refused(rate: float) -> None:
    assert problems(TenantPolicy("demo", max_fires_per_second=rate))
    assert problems(TenantPolicy("demo", max_requests_per_second=rate))


@pytest.mark.parametrize("rate", [0.0, 1e-6, 1e9])
def test_the_extremes_of_a_rate_fire(rate: float) -> None:
    policy = TenantPolicy("demo", max_fires_per_second=rate, max_requests_per_second=rate)
    assert problems(policy) == []
    driver = Driver()
    driver.tenants.follow(EffectivePolicy(policy))
    for number in range(3):
        driver.ask(schedule_id=f"s{number}", at=T0 + 5)
        driver.step(T0 + number)
        driver.step(T0 + 10 + number, take=0)
