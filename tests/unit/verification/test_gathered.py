"""A step that gathers fires beyond its watermark; what fires too soon is found all the same."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.mirror.judged_anew import JudgedAnew
from belfry.mirror.losses import FiresBehind
from belfry.verification.findings import Breach
from tests.property import histories
from tests.unit.engine.driver import FIRED, HOUR, T0
from tests.unit.verification.trace import Recording, Trace, Verification, verified

TENANTS, EACH, STEP, APART_MS = 40, 6, 40, 50
RECURS_MS = T0 + 9_000
FLOORS = {f"{FIRED}t{number}": -1 for number in range(TENANTS)}


def recorded(**treated: int) -> Trace:
    """Six of its events of one tenant are in a step, where the watermark comes to the first."""
    driver = Recording()
    for number in range(TENANTS):
        driver.apply(f"t{number}", **treated)
        recurs: dict[str, Any] = {"schedule_id": "each", "kind": "EVERY", "interval_ms": HOUR}
        driver.ask(tenant=f"t{number}", start_at=RECURS_MS, **recurs)
    for number in range(TENANTS * EACH):
        tenant, due_ms = f"t{number % TENANTS}", T0 + 1_000 + number * APART_MS
        driver.ask(tenant=tenant, schedule_id=f"{tenant}/{number // TENANTS}", at=due_ms)
    driver.step(T0)
    driver.run(T0 + HOUR // 2, STEP)
    assert len(driver.trace.fired) == TENANTS * (EACH + 1)
    return driver.trace


def found_in(trace: Trace) -> Verification:
    return verified(trace, floors=FLOORS)


@pytest.mark.parametrize("treated", [{}, {"remember_ms": 0}], ids=["markers", "tombstones"])
def test_what_fired_beyond_the_watermark_is_no_finding(treated: dict[str, int]) -> None:
    made = found_in(recorded(**treated))
    assert made.findings == []
    assert made.counts.fires == TENANTS * (EACH + 1)
    assert made.counts.digests == made.counts.transactions


@pytest.mark.parametrize("treated", [{}, {"remember_ms": 0}], ids=["markers", "tombstones"])
def test_an_event_that_is_missing_of_these_is_found(treated: dict[str, int]) -> None:
    trace = recorded(**treated)
    lost = next(each for each in trace.fired if each.schedule_id == b"t3/4")
    trace.fired.remove(lost)
    found = found_in(trace).findings
    assert Breach.LOST in {each.breach for each in found}
    assert any(lost.identity.hex() in each.expected for each in found)


def test_what_recurs_and_fired_before_it_was_due_is_found() -> None:
    """The rows of its step were written more than a second before its instant."""
    trace = recorded()
    for at, each in enumerate(trace.changelog):
        trace.changelog[at] = each._replace(timestamp_ms=min(each.timestamp_ms, RECURS_MS - 2_000))
    assert {each.breach for each in found_in(trace).findings} == {Breach.EARLY}


@pytest.mark.parametrize("treated", [{}, {"remember_ms": 0}], ids=["markers", "tombstones"])
def test_a_mirror_lists_what_was_fired_beyond_the_watermark(treated: dict[str, int]) -> None:
    trace = recorded(**treated)
    fires = FiresBehind({}, JudgedAnew())
    assert len([*fires.of(trace.changelog)]) == fires.told == len(trace.fired)


class Crowds(histories.History):
    """Random histories with more requests of more tenants, and steps that are smaller than these.

    Clocks go back, owners change, steps are rolled back, and requests and policies are of all
    kinds.
    """

    def requests(self) -> None:
        for _ in range(self.random.choice([0, 3, 10, 25])):
            self.driver.ask(timestamp_ms=self.now_ms, **self._request())
        self.now_ms += self.random.choice([0, 0, 1, 3, 10, 40, 90, 700])
        for _ in range(self.random.choice([1, 1, 3])):
            self.step(self.random.choice([2, 3, 5, 8]), commit=self.random.random() < 0.85)


@pytest.mark.parametrize("seed", range(12))
def test_random_crowds_have_no_findings(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tenants = tuple(f"t{number}" for number in range(12))
    monkeypatch.setattr(histories, "TENANTS", tenants)
    monkeypatch.setattr(histories, "Driver", Recording)
    history = Crowds(seed)
    assert isinstance(history.driver, Recording)
    for tenant in tenants[:: 1 + seed % 2]:
        history.driver.apply(tenant, remember_ms=0)
    for _ in range(50):
        history.go_on()
    made = verified(history.driver.trace, floors=FLOORS, held=frozenset(tenants))
    assert made.findings == []
    assert made.counts.fires > 0
