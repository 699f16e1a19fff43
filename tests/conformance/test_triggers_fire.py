"""Whatever the kind: each instant of a rule fires once, over rolled back steps and new owners.

The engine that ships, on a map in memory: every other step is rolled back, and a new owner, which
has nothing but the changelog, takes over after each step.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

import pytest

from belfry.schedules.fields import EMPTY
from belfry.schedules.instants import parse_instant
from belfry.schedules.rule import rule_of
from belfry.schedules.triggers import trigger_by
from belfry.schedules.triggers.kind import TriggerKind
from belfry.schedules.triggers.registry import KINDS, RECURRING
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from tests.unit.engine.driver import T0, Driver

FIRES: Final = 6
CASES: Final = [
    (kind, {"kind": kind.name, **example}) for kind in KINDS.values() for example in kind.examples
]
CASE: Final = pytest.mark.parametrize(
    ("kind", "asked"), CASES, ids=[f"{kind.name} {asked[kind.field.name]}" for kind, asked in CASES]
)


def expected(kind: TriggerKind, asked: dict[str, Any]) -> list[int]:
    """The first instants of what was asked for, by the trigger alone."""
    request: Any = {**EMPTY, "tenant": "demo", "schedule_id": "a", **asked}
    if kind.name not in RECURRING:
        once: Any = kind
        return [once.first_ms(request, T0)]
    trigger = trigger_by(rule_of(request))

    def instants() -> Any:
        due_ms = trigger.first_ms(T0)
        while due_ms is not None:
            yield due_ms
            due_ms = trigger.after_ms(due_ms)

    return list(islice(instants(), FIRES))


def new_owner(driver: Driver, now_ms: int) -> None:
    """Start anew on what the changelog says."""
    rows = MemoryMap()
    replay = Replay(ScheduleStore(rows))
    offsets = list(range(len(driver.changelog)))
    replay.apply(driver.changelog, offsets, now_ms)
    replay.finish(now_ms)
    driver.start(rows)


@CASE
def test_each_instant_fires_once(kind: TriggerKind, asked: dict[str, Any]) -> None:
    wanted = expected(kind, asked)
    fired: list[int] = []
    driver = Driver()
    driver.engine.claim(b"{}")
    driver.end(T0)
    driver.ask(max_fires=FIRES if kind.recurs else None, **asked)
    assert driver.step(T0).outcomes[0] == "ACCEPTED"
    now_ms = T0
    while (due_ms := driver.engine.next_due_ms()) is not None:
        if due_ms > now_ms:
            assert driver.step(due_ms - 1, take=0).ids == [], "it fires early"
        now_ms = max(now_ms, due_ms)
        driver.step(now_ms, take=0, commit=False)
        shots = driver.step(now_ms, take=0).shots
        told = [(shot.header("belfry-scheduled-at") or b"").decode() for shot in shots]
        fired.extend(map(parse_instant, told))
        new_owner(driver, now_ms)
    assert fired == wanted
