"""Where steps gather, groups keep their order, and each event fires once, whoever owns the rows.

Tenants have few schedules each, of one group; steps are smaller than the number of tenants.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random
from typing import Any, Final

import pytest

from belfry.engine.gathering import Gathering
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from tests.unit.engine.driver import FIRED, HOUR, T0, Driver, Step

TENANTS: Final = 9
LATE: Final = ("FIRE_ONCE", "FIRE_ONCE", "FIRE_ALL")


class Crowd:
    """Schedules of tenants that are due in turn, and how they come out."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.driver = Driver()
        self.now_ms = T0
        self.serial = self.random.random() < 0.3
        self.recurs = self.random.choice([0.0, 0.2, 0.6])
        self.number = 0
        self.once: Counter[str] = Counter()
        self.ids: set[bytes] = set()
        self.asked: list[tuple[str, str]] = []
        # By tenant: the latest instant that fired since each schedule's next one has been pending.
        self.latest_ms: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for _ in range(TENANTS * self.random.choice([2, 5, 8])):
            self.ask()
        self.step(200)

    def ask(self) -> None:
        """One more schedule, due by now or soon."""
        choice, name = self.random.choice, f"s{self.number}"
        tenant = f"t{self.number % TENANTS}"
        self.number += 1
        asked: dict[str, Any] = {"at": self.now_ms + choice([-300, 1, 2, 3, 50, 400, 900])}
        if self.random.random() < self.recurs:
            asked = {"kind": "EVERY", "interval_ms": choice([10, 70, 500]), "max_fires": 9}
            asked |= {"jitter_ms": choice([None, 5, 90, 2_000])}
            asked |= {"misfire": choice(LATE), "max_lateness_ms": choice([0, 30, 300])}
        elif self.serial and choice([True, False]):
            asked |= {"serial": True, "ack_timeout_ms": choice([1, 50, 1_000])}
        if "at" in asked:
            self.once[name] = 0
        self.driver.ask(self.now_ms, tenant=tenant, schedule_id=name, group="g", **asked)
        self.asked.append((tenant, name))

    def step(self, at_most: int, *, commit: bool = True) -> Step:
        """A step, of which nothing comes before what was due earlier and pending."""
        step = self.driver.step(self.now_ms, at_most, commit=commit)
        late = {tenant: iter(lateness) for tenant, lateness in step.effects.lateness.items()}
        for shot in step.shots:
            late_ms = next(late[shot.topic.removeprefix(FIRED)])
            due_ms = self.now_ms - late_ms
            assert late_ms >= 0, f"{shot.id} is early"
            if not commit:
                continue
            latest_ms = self.latest_ms[shot.topic.removeprefix(FIRED)]
            assert due_ms >= latest_ms[shot.id], f"{shot.id} of {due_ms - T0} comes too late"
            for name, before in latest_ms.items():
                latest_ms[name] = max(before, due_ms)
            latest_ms[shot.id] = 0
            identity = shot.header("belfry-fire-id") or b""
            assert identity not in self.ids, f"{shot.id} fires twice"
            self.ids.add(identity)
            if shot.id in self.once:
                self.once[shot.id] += 1
        if commit:
            # Requests are taken in behind what fires.
            for tenant, name in self.asked:
                self.latest_ms[tenant][name] = 0
            self.asked.clear()
        return step

    def take_over(self, *, cold: bool) -> None:
        """Another owner comes: it has the rows, or folds the changelog."""
        rows = MemoryMap() if cold else self.driver.rows
        if cold:
            replay, log = Replay(ScheduleStore(rows)), self.driver.changelog
            replay.apply(log, range(len(log)), self.now_ms)
            replay.finish(self.now_ms)
        self.driver.start(rows)

    def hold(self) -> None:
        """A tenant's topic goes, or comes back."""
        why = self.random.choice(["", "", "its topic is missing"])
        self.driver.tenants.hold(f"t{self.random.randrange(TENANTS)}", why)

    def go_on(self) -> None:
        """The next thing happens."""
        draw = self.random.random()
        if draw < 0.05:
            self.take_over(cold=self.random.choice([True, False]))
        elif draw < 0.1:
            self.hold()
        elif draw < 0.3:
            self.ask()
        self.now_ms += self.random.choice([0, 0, 0, 0, 1, 20, 150, 900])
        commit = self.random.random() < 0.9
        self.step(self.random.choice([2, 3, 5, 8, 13]), commit=commit)

    def end(self) -> None:
        """All come out."""
        for number in range(TENANTS):
            self.driver.tenants.hold(f"t{number}", "")
        for _ in range(400):
            if not (self.driver.engine.pending or self.asked):
                break
            self.now_ms += HOUR // 60
            self.step(8)


@pytest.mark.parametrize("seed", range(40))
def test_groups_keep_their_order_where_steps_gather(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathers, fire = 0, Gathering.fire

    def counted(*given: Any) -> Any:
        nonlocal gathers
        gathers += 1
        return fire(*given)

    monkeypatch.setattr(Gathering, "fire", counted)
    crowd = Crowd(seed)
    for _ in range(60):
        crowd.go_on()
    crowd.end()
    assert crowd.driver.engine.pending == 0
    assert set(crowd.once.values()) <= {1}
    assert gathers
