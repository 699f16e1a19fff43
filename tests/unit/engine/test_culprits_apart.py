"""Whoever is blamed is blamed alone: what failed for one is done as ever for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from belfry.engine.job_counts import Budget
from belfry.engine.transitions import Transitions
from belfry.tenants.effective import Level
from tests.unit.engine.driver import HOUR, T0, Driver

MUCH: Final = Budget(1_000, 1_000)
FAULTY: Final = b"demo/fault"


def faulty(
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    meets: Callable[..., bool],
    error: type[Exception] = KeyError,
) -> None:
    """Let a function of a class raise where it is given what it `meets`."""
    sound = getattr(owner, name)

    def planted(*given: Any, **named: Any) -> Any:
        if meets(*given):
            raise error("planted")
        return sound(*given, **named)

    monkeypatch.setattr(owner, name, planted)


# -- requests ------------------------------------------------------------------------------------


def test_one_that_fails_sends_no_plain_one_the_general_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faulty(monkeypatch, Transitions, "begin", lambda *_: True)
    # A tenant that is told of each of its requests has none that is plain.
    driver = Driver(Level.FAILURES)
    driver.note(held="")
    for name in ("a", "b"):
        driver.ask(schedule_id=name, at=T0 + 5)
    driver.ask(schedule_id="fault", kind="EVERY", interval_ms=HOUR)
    driver.ask(schedule_id="c", at=T0 + 5)
    step = driver.step(T0)
    assert step.codes == ["check_failed"]
    assert driver.run(T0 + 5) == ["a", "b", "c"]
