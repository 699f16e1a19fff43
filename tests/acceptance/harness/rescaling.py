"""Workers of one belfry whose groups go over more or fewer partitions, while workers are killed.

`grow` gives the belfry partitions by `belfry rebalance grow`: the command and a worker are killed
together at each topic that it changes, and it is given again. `over` has groups lie in so many
partitions by `belfry rebalance apply`, with kills at random instants and at named steps.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from subprocess import Popen
from typing import Any, Final, NamedTuple

from belfry.placement.key_groups import KeyGroups
from belfry.schedules.identity import partition_of
from tests.acceptance.harness.evidence import Evidence, token
from tests.acceptance.harness.rebalancing import COMMAND_S, partitions, rebalance, told
from tests.acceptance.harness.rounds import STEPS
from tests.acceptance.harness.sent import UPSERT
from tests.acceptance.harness.site import Site, now_ms

READY_S: Final = 120.0
PHASE_S: Final = 240.0
# The topics that `grow` changes, in its order, and where each of them stands afterwards.
GROWN_TOPICS: Final = ("homes", "changelog", "schedules")
LOOK_S: Final = 0.005
# Fires that are due just before a kill, or when all is ready again, are late by it.
AROUND_MS: Final = 3_000


class Kill(NamedTuple):
    """A kill: how, and from when on not everything could fire, epoch ms."""

    how: str
    from_ms: int
    until_ms: int


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How many homes, workers, and kills for each phase; whose groups are looked for.

    `within` is how even groups are to lie, and `used` the part of partitions that has to be used.
    """

    homes: int
    workers: int
    kills: int
    tenants: tuple[str, ...]
    seed: int
    within: float = 0.5
    used: float = 0.5


class Rescaling:
    """The workers of one belfry, and what is done to them."""

    def __init__(self, site: Site, shape: Shape) -> None:
        self.site = site
        self.shape = shape
        self.chance = random.Random(shape.seed)
        self.workers = [site.worker() for _ in range(shape.workers)]
        self.kills: list[Kill] = []
        # What was done, one after the other, and when each was over: epoch ms.
        self.phases: dict[str, int] = {}
        # Partitions of the topics when `grow` was killed, and the tenants that have lain elsewhere.
        self.halfway: list[list[int]] = []
        self.moved: set[str] = set()
        # Where groups lay when they were looked for last.
        self.places: set[int] = set()

    def start(self) -> None:
        """Start all workers, and wait until everything fires."""
        for worker in self.workers:
            worker.start()
        self._wait_ready()

    def grow(self, count: int) -> None:
        """Give the belfry so many partitions, with kills behind each topic that is changed."""
        wanted = (self.shape.homes, count, count)
        for at, topic in enumerate(GROWN_TOPICS if self.shape.kills else ()):
            with self._growing(count) as command:
                self._wait_topic(command, topic, wanted[at])
                if self.chance.random() < 0.5:
                    time.sleep(self.chance.uniform(0.0, 1.0))
                command.kill()
                self.halfway.append(partitions(self.site, *GROWN_TOPICS))
                self._kill()
        words = ("grow", "--partitions", f"{count}", "--limit", f"{READY_S}", "--yes")
        told(self.workers[0], *words)
        assert partitions(self.site, *GROWN_TOPICS) == list(wanted)

    def _growing(self, count: int) -> Popen[str]:
        return rebalance(self.workers[0], "grow", "--partitions", f"{count}", "--yes")

    def _wait_topic(self, command: Popen[str], topic: str, count: int) -> None:
        deadline = time.monotonic() + PHASE_S
        while command.poll() is None and partitions(self.site, topic) != [count]:
            assert time.monotonic() < deadline, f"{topic} never had {count} partitions"
            time.sleep(LOOK_S)

    def over(self, count: int) -> None:
        """Have all groups lie in so many partitions, however often the command has to be given."""
        deadline = time.monotonic() + PHASE_S
        for _ in range(self.shape.kills):
            with self._apply(count) as command:
                time.sleep(self.chance.uniform(1.5, 4.0))
                self._kill()
                # A person gives up now and then as well.
                if self.chance.random() < 0.3:
                    command.kill()
                command.communicate(timeout=COMMAND_S)
        while not self._rests(count):
            how = [kill.how for kill in self.kills]
            assert time.monotonic() < deadline, f"groups do not come to rest: {how}"
            with self._apply(count) as command:
                _, error = command.communicate(timeout=COMMAND_S)
                print(error[-400:])  # noqa: T201  # shown where the test fails

    def _apply(self, count: int) -> Popen[str]:
        words = ("apply", "--partitions", f"{count}", "--by", "pending", "--over", "0")
        within = ("--within", f"{self.shape.within}", "--at-once", "3", "--limit", "90", "--yes")
        return rebalance(self.workers[0], *words, *within)

    def _kill(self) -> None:
        """One of the workers goes as by a power failure, and comes back, with a step to die at."""
        victim, from_ms = self.chance.choice(self.workers), now_ms()
        victim.kill()
        step = f"{self.chance.choice(STEPS)}:kill:{self.chance.randint(1, 60)}"
        failpoint = step if self.chance.random() < 0.5 else ""
        victim.start(failpoint)
        if failpoint:
            victim.child.wait(8.0)
            victim.kill()
            victim.start()
        self._wait_ready()
        self.kills.append(Kill(failpoint or "kill", from_ms, now_ms()))

    def _wait_ready(self) -> None:
        for worker in self.workers:
            worker.wait_ready(READY_S)

    def _rests(self, count: int) -> bool:
        """Whether all groups of tenants rest, in no partition above these."""
        found = told(self.workers[0], "status")
        if found["missing"] or found["silent"]:
            return False
        homes, groups = self.shape.homes, KeyGroups(self.shape.homes)
        lies = {each["group"]: each["lies"] for each in found["key_groups"]}
        tenants = self.shape.tenants
        away = {name: lies[groups.of(name)] for name in tenants if groups.of(name) in lies}
        self.moved |= away.keys()
        places = {away.get(name, partition_of(name.encode(), homes)) for name in tenants}
        self.places = places
        rest = {each["state"] for each in found["key_groups"]} <= {"rests"}
        return rest and max(places) < count and len(places) > count * self.shape.used

    def lateness(self, evidence: Evidence) -> dict[str, Any]:
        """How late events of tenants that have moved were, and where nobody was killed."""
        sent = {token(one.payload): one for one in evidence.sent if one.action == UPSERT}
        late, calm = [0], [0]
        worst: dict[str, int] = {}
        for record in evidence.fired:
            one = sent.get(token(record.value))
            if one is None or one.tenant not in self.moved:
                continue
            if record.header("belfry-occurrence") == b"-1":
                continue
            since_ms = max(one.due_ms, one.appended_ms)
            late.append(record.timestamp_ms - since_ms)
            if not any(self._touches(kill, since_ms, record.timestamp_ms) for kill in self.kills):
                calm.append(late[-1])
                phase = self._phase(since_ms)
                worst[phase] = max(worst.get(phase, 0), late[-1])
        late.sort()
        calm.sort()
        return {
            "fires": len(late) - 1,
            "median_ms": late[len(late) // 2],
            "worst_ms": late[-1],
            "without_kills": len(calm) - 1,
            "without_kills_worst_ms": calm[-1],
            "without_kills_worst_ms_until": worst,
        }

    def _phase(self, at_ms: int) -> str:
        """The first phase that was not over yet."""
        return next((name for name, until_ms in self.phases.items() if at_ms < until_ms), "end")

    @staticmethod
    def _touches(kill: Kill, from_ms: int, until_ms: int) -> bool:
        return kill.from_ms - AROUND_MS < until_ms and from_ms < kill.until_ms + AROUND_MS
