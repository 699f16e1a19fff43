"""After acknowledgements: random work and who waits for it, against an oracle of a few lines.

The oracle knows when what is due, what is to be acknowledged, and who waits for whom; nothing of
places, walks or steps.  Faults are steps that are rolled back, and owners that start anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from belfry.engine.job_counts import Budget
from tests.unit.engine.acknowledging import fire_id, rebuilt
from tests.unit.engine.driver import T0, Driver, Shot

WAIT = 90
SEEDS = 8
GROUPS = ("g", "h")


@dataclass
class Work:
    """A one-shot of a group, whose fire is to be acknowledged until then (None: it waits)."""

    group: str
    due_ms: int
    until_ms: int | None = None


@dataclass
class Waits:
    """Who waits for a schedule or a group; its instant, once it has one."""

    whom: str
    delay_ms: int
    latest_ms: int | None
    due_ms: int | None = None

    def from_now_on(self, ms: int) -> None:
        """It is due so long after this instant."""
        due_ms = ms + self.delay_ms
        self.due_ms = due_ms if self.latest_ms is None else min(due_ms, self.latest_ms)


class Oracle:
    """What fires when."""

    def __init__(self) -> None:
        self.work: dict[str, Work] = {}
        self.waits: dict[str, Waits] = {}

    def acknowledged(self, name: str, now_ms: int) -> None:
        del self.work[name]
        for each in self.waits.values():
            if each.whom == name and each.due_ms is None:
                each.from_now_on(now_ms)

    def fires(self, now_ms: int) -> list[str]:
        """All that fires by now, where nobody acknowledges meanwhile."""
        found: list[str] = []
        for name, each in list(self.work.items()):
            if each.until_ms is not None and each.until_ms <= now_ms:
                del self.work[name]
            elif each.until_ms is None and each.due_ms <= now_ms:
                each.until_ms = now_ms + WAIT
                found.append(name)
        while more := self._dependents(now_ms):
            found += more
        return sorted(found)

    def _dependents(self, now_ms: int) -> list[str]:
        busy = {each.group for each in self.work.values()}
        for each in self.waits.values():
            if each.due_ms is None and each.whom in set(GROUPS) - busy:
                each.from_now_on(now_ms)
        due = [
            name
            for name, each in self.waits.items()
            if min(each.due_ms or now_ms + 1, each.latest_ms or now_ms + 1) <= now_ms
        ]
        for name in due:
            del self.waits[name]
        return due


class World:
    """An engine, and the oracle beside it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.driver = Driver()
        self.driver.engine.claim(b"settings")
        self.driver.end(T0)
        self.oracle = Oracle()
        self.fired: dict[str, Shot] = {}
        self.now_ms = T0

    def ask_for_work(self, name: str) -> None:
        due_ms, group = self.now_ms + self.random.choice((1, 2, 5, 30)), self.random.choice(GROUPS)
        many: dict[str, Any] = {"concurrency": 255, "ack_timeout_ms": WAIT, "group": group}
        self.driver.ask(timestamp_ms=self.now_ms, schedule_id=name, at=due_ms, **many)
        self.oracle.work[name] = Work(group, due_ms)

    def ask_to_wait(self, name: str) -> None:
        """Somebody waits for a schedule, or for a group."""
        delay_ms = self.random.choice((0, 0, 7))
        latest_ms = self.random.choice((None, None, self.now_ms + 50))
        asked: dict[str, Any] = {"ack_delay_ms": delay_ms, "latest_at": latest_ms}
        whom = self.random.choice((*GROUPS, *self.oracle.work))
        kind = "AFTER_GROUP" if whom in GROUPS else "AFTER_ACK"
        self.driver.ask(
            timestamp_ms=self.now_ms, schedule_id=name, kind=kind, **{kind.lower(): whom}, **asked
        )
        self.oracle.waits[name] = Waits(whom, delay_ms, latest_ms)

    def change(self) -> None:
        """Some work is done, and some that waits is cancelled."""
        out = sorted(name for name, each in self.oracle.work.items() if each.until_ms is not None)
        for name in self.random.sample(out, self.random.randint(0, len(out))):
            given = {"schedule_id": name, "fire_id": fire_id(self.fired[name])}
            self.driver.ask(action="ACK", timestamp_ms=self.now_ms, **given)
            self.oracle.acknowledged(name, self.now_ms)
        for name in sorted(self.oracle.waits):
            if self.random.random() < 0.05:
                self.driver.ask(action="CANCEL", schedule_id=name, timestamp_ms=self.now_ms)
                del self.oracle.waits[name]

    def settle(self) -> list[str]:
        """Take in what was asked for, and step until nothing more is to be done now."""
        self.driver.step(self.now_ms, fire=False)
        found: list[str] = []
        for _ in range(100):
            before = len(found)
            self._fire(found)
            self._walk()
            if len(found) == before and not self._is_due():
                return sorted(found)
        raise AssertionError("it never comes to rest")

    def _is_due(self) -> bool:
        next_ms = self.driver.engine.next_due_ms()
        return next_ms is not None and next_ms <= self.now_ms

    def _fire(self, found: list[str]) -> None:
        while self._is_due():
            if self.random.random() < 0.2:
                self.driver.step(self.now_ms, commit=False)
            shots = self.driver.step(self.now_ms).shots
            self.fired |= {shot.id: shot for shot in shots}
            found += [shot.id for shot in shots]

    def _walk(self) -> None:
        """Sweeps, and steps of walks, of which some are rolled back: the next sweep looks again."""
        commit = False
        while not commit:
            commit = True
            for _ in range(2):
                self.driver.sweep(self.now_ms)
            while self.driver.engine.jobs.under_way:
                budget = Budget(self.random.choice((1, 3, 100)), 100)
                if not self.driver.engine.advance_jobs(self.now_ms, budget).empty:
                    commit = self.random.random() < 0.8
                    self.driver.end(self.now_ms, commit=commit)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_who_waits_fires_when_it_is_due_by_the_oracle(seed: int) -> None:
    world = World(seed)
    for number in range(60):
        for several in range(world.random.choice((0, 0, 1, 1, 3))):
            world.ask_for_work(f"x{number}.{several}")
        for several in range(world.random.choice((0, 1, 2))):
            world.ask_to_wait(f"y{number}.{several}")
        world.change()
        if world.random.random() < 0.1:
            rebuilt(world.driver, world.now_ms)
        assert world.settle() == world.oracle.fires(world.now_ms), number
        world.now_ms += world.random.choice((1, 1, 2, 10, 40))
    for _ in range(10):
        world.now_ms += 50
        world.change()
        assert world.settle() == world.oracle.fires(world.now_ms)
