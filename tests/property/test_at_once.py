"""N at once: random groups of fires that are acknowledged, against an oracle of a few lines.

The oracle knows a sorted list and the fires that are to be acknowledged, and nothing of locks,
backlogs or steps.  Faults are steps that are rolled back, and owners that start anew.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest

from tests.unit.engine.acknowledging import fire_id, rebuilt
from tests.unit.engine.driver import T0, Driver, Shot

WAIT = 90
SEEDS = 20


class Member(NamedTuple):
    """A schedule of the group, in the order in which it leaves."""

    due_ms: int
    offset: int
    name: str
    at_once: int


class Oracle:
    """Who leaves when: in due order, while fewer are awaited than the strictest of them allows."""

    def __init__(self) -> None:
        self.waiting: list[Member] = []
        self.awaited: dict[str, tuple[int, int]] = {}

    def leaves(self, now_ms: int) -> list[str]:
        """What leaves by now, where nobody acknowledges meanwhile."""
        self.expire(now_ms)
        found = []
        self.waiting.sort()
        while self.waiting and self.waiting[0].due_ms <= now_ms and not self.full:
            member = self.waiting.pop(0)
            found.append(member.name)
            if member.at_once:
                self.awaited[member.name] = member.at_once, now_ms + WAIT
        return found

    @property
    def full(self) -> bool:
        allowed = [at_once for at_once, _ in self.awaited.values()]
        return bool(allowed) and len(allowed) >= min(allowed)

    def expire(self, now_ms: int) -> None:
        """Those whose time is over are awaited no longer."""
        self.awaited = {name: each for name, each in self.awaited.items() if each[1] > now_ms}


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

    def ask(self, number: int) -> None:
        """A member that is due soon, by itself or with others."""
        at_once = self.random.choice((0, 1, 2, 2, 3, 3, 5))
        due_ms = self.now_ms + self.random.choice((1, 1, 2, 5, 30))
        asked: dict[str, Any] = {"at": due_ms, "group": "g", "schedule_id": f"s{number}"}
        if at_once:
            asked |= {"concurrency": at_once, "ack_timeout_ms": WAIT}
        offset = self.driver.ask(timestamp_ms=self.now_ms, **asked)
        self.oracle.waiting.append(Member(due_ms, offset, f"s{number}", at_once))

    def acknowledge(self) -> None:
        """Somebody has done some of the work."""
        names = sorted(self.oracle.awaited)
        for name in self.random.sample(names, self.random.randint(0, len(names))):
            shot = self.fired[name]
            self.driver.ask(
                action="ACK", schedule_id=name, fire_id=fire_id(shot), timestamp_ms=self.now_ms
            )
            del self.oracle.awaited[name]

    def step(self) -> list[str]:
        """One step, that may be rolled back before it is done again."""
        at_most = self.random.choice((1, 2, 100))
        if self.random.random() < 0.2:
            self.driver.step(self.now_ms, at_most, commit=False)
        shots = self.driver.step(self.now_ms, at_most).shots
        self.fired |= {shot.id: shot for shot in shots}
        return [shot.id for shot in shots]

    def settle(self) -> list[str]:
        """Take in what was asked for, then step until nothing more is to be done now."""
        self.driver.step(self.now_ms, fire=False)
        found: list[str] = []
        for _ in range(200):
            next_ms = self.driver.engine.next_due_ms()
            if next_ms is None or next_ms > self.now_ms:
                return found
            found += self.step()
        raise AssertionError("it never comes to rest")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_as_many_are_out_as_the_strictest_allows(seed: int) -> None:
    world = World(seed)
    for number in range(60):
        for several in range(world.random.choice((0, 1, 1, 4))):
            world.ask(number * 10 + several)
        world.acknowledge()
        if world.random.random() < 0.1:
            rebuilt(world.driver, world.now_ms)
        assert world.settle() == world.oracle.leaves(world.now_ms)
        world.now_ms += world.random.choice((1, 1, 2, 10, 40))
    while world.oracle.waiting:
        world.now_ms += 50
        world.acknowledge()
        assert world.settle() == world.oracle.leaves(world.now_ms)
