"""What a step that was rolled back has left behind is no finding, and hides none.

The histories have tenants of both guarantees beside each other (`left_behind.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from belfry.verification.findings import Breach, Spot
from belfry.verification.memory import FiredEntry
from tests.property import histories
from tests.unit.engine.driver import FIRED
from tests.unit.verification.left_behind import FIRM, TENANTS, LeftBehind, judged
from tests.unit.verification.trace import Recording, Trace

OF_FIRM: Final = {FIRED + tenant for tenant in FIRM}
SEEDS: Final = range(10, 34)


@pytest.fixture(name="told")
def _told(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], LeftBehind]:
    """Makes the history of a seed."""
    monkeypatch.setattr(histories, "TENANTS", TENANTS)
    monkeypatch.setattr(histories, "Driver", Recording)

    def made(seed: int) -> LeftBehind:
        history = LeftBehind(seed)
        for _ in range(60):
            history.go_on()
        return history

    return made


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_left_behind_is_no_finding(told: Callable[[int], LeftBehind], seed: int) -> None:
    history = told(seed)
    made = judged(history.trace)
    assert made.findings == []
    assert made.counts.at_least_once == history.left
    assert made.counts.order_unknown <= 2
    assert min(history.left, made.counts.fires) > 0


def firm_fire(history: LeftBehind) -> FiredEntry:
    """An event of a tenant whose events come once."""
    return history.random.choice([each for each in history.trace.fired if each.spot[0] in OF_FIRM])


def lose(trace: Trace, fire: FiredEntry) -> None:
    trace.fired.remove(fire)


def double(trace: Trace, fire: FiredEntry) -> None:
    trace.fired.append(fire._replace(spot=Spot(fire.spot.topic, 1, 1_000_000)))


def invent(trace: Trace, fire: FiredEntry) -> None:
    spot = Spot(fire.spot.topic, 1, 1_000_000)
    trace.fired.append(fire._replace(identity=bytes(16), spot=spot))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("damage", "breaches"),
    [
        (lose, {Breach.LOST, Breach.COUNT, Breach.UNTOLD_FIRE, Breach.UNASKED, Breach.CANCELLED}),
        (double, {Breach.DOUBLED}),
        (invent, {Breach.UNASKED}),
    ],
)
def test_damage_is_found_beside_what_is_left_behind(
    told: Callable[[int], LeftBehind],
    seed: int,
    damage: Callable[[Trace, FiredEntry], None],
    breaches: set[Breach],
) -> None:
    history = told(seed)
    damage(history.trace, firm_fire(history))
    found = {each.breach for each in judged(history.trace).findings}
    assert found
    assert found <= breaches
