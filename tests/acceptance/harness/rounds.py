"""The loop: a worker that is killed and started again, round after round, under a load.

Half of the rounds end by SIGKILL at a random instant, the other half at a failpoint, which is a
SIGKILL too, at a named step of a transaction or a take-over.  Now and then a round ends by SIGTERM
(which flushes the local state), and between rounds the data directory may suffer.
"""

from __future__ import annotations

import os
import random
import time
from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Final

from tests.acceptance.harness.evidence import Evidence, Report
from tests.acceptance.harness.follow import Follower
from tests.acceptance.harness.load import TENANTS, Load, Shape
from tests.acceptance.harness.mischief import Mischief
from tests.acceptance.harness.site import Site, now_ms
from tests.acceptance.harness.worker import Worker

WRITERS: Final = ("direct", "librdkafka")
STEPS: Final = ("S1", "S2", "S3", "S4", "S5", "S7", "S8", "S9", "R1", "R2", "R3", "R4")
LONGEST_ROUND_S: Final = 12.0


@dataclass(slots=True)
class Round:
    """One life of the worker."""

    number: int
    how: str
    started_ms: int
    ended_ms: int = 0
    mischief: str = ""


@dataclass(slots=True)
class Survival:
    """A run and its audit."""

    rounds: list[Round]
    evidence: Evidence
    report: Report
    seconds: float

    def first_fire_ms(self) -> list[int]:
        """From each restart to the first record that came out after it, where one did."""
        fires = sorted(self.report.fired_at_ms)
        found: list[int] = []
        for each in self.rounds:
            at = bisect_left(fires, each.started_ms)
            if at < len(fires) and (fires[at] <= each.ended_ms or not each.ended_ms):
                found.append(fires[at] - each.started_ms)
        return found

    def largest_lateness_ms(self) -> list[int]:
        """The largest lateness among the records of each round that fired any."""
        starts = [each.started_ms for each in self.rounds]
        largest: dict[int, int] = {}
        for at_ms, late_ms in zip(self.report.fired_at_ms, self.report.lateness_ms, strict=True):
            number = bisect_left(starts, at_ms)
            largest[number] = max(late_ms, largest.get(number, 0))
        return list(largest.values())


@dataclass
class Loop:
    """Runs rounds and audits them."""

    site: Site
    shape: Shape
    rounds: int
    log_dir: Path
    done: list[Round] = field(default_factory=list)

    def run(self) -> Survival:
        """All of it: load, rounds, drain, audit.

        Each writer of transactions has two rounds in turn, and takes over what the other one left.
        """
        started = time.monotonic()
        chance = random.Random(self.shape.seed)
        self.site.schedules_topic()
        self.site.fired_topics(TENANTS)
        worker = self.site.worker()
        load = Load(self.site, self.shape)
        mischief = Mischief(worker.data_dir, chance)
        steps = cycle(chance.sample(STEPS, len(STEPS)))
        load.start()
        for number in range(self.rounds):
            step = next(steps) if number % 2 else ""
            if "WRITER" not in os.environ:
                worker.settings["BELFRY_TRANSACTION_WRITER"] = WRITERS[number // 2 % 2]
            self.done.append(self._round(number, worker, step, chance))
            if chance.random() < 0.35:
                self.done[-1].mischief = mischief.some()
        self.done.append(Round(self.rounds, "until drained", now_ms()))
        worker.start()
        follower = Follower(self.site, load.stop(), TENANTS, self.log_dir)
        report = follower.drain(load.last_due_ms)
        follower.close()
        assert worker.stop() == 0
        return Survival(self.done, follower.evidence, report, time.monotonic() - started)

    def _round(self, number: int, worker: Worker, step: str, chance: random.Random) -> Round:
        if step:
            most = {"R": 4, "S": 200}[step[0]]
            failpoint = f"{step}:kill:{chance.randint(1, most)}"
            this = Round(number, failpoint, now_ms())
            worker.start(failpoint).child.wait(LONGEST_ROUND_S)
            worker.kill()
        elif chance.random() < 0.2:
            this = Round(number, "stop", now_ms())
            worker.start().wait_ready()
            time.sleep(chance.uniform(0.0, 3.0))
            assert worker.stop() == 0
        else:
            this = Round(number, "kill", now_ms())
            worker.start()
            if chance.random() < 0.75:
                worker.wait_ready()
            time.sleep(chance.uniform(0.0, 4.0))
            worker.kill()
        this.ended_ms = now_ms()
        return this
