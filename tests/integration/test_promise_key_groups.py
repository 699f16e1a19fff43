"""Key groups move under a load while owners are killed: nothing is lost, doubled or early.

``make rescale`` uses a belfry of 16 partitions as one of 4, then of 16, then of 6: groups go where
they are to lie by `belfry rebalance apply`, and workers are killed meanwhile, at random instants
and at named steps. The suite does so with four partitions: 2, 4, then 3 of them.

The number of partitions itself never changes, for homes are worked out with it. Fewer means that
groups leave those above.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest

from belfry.devstack import Stack
from belfry.placement.key_groups import KeyGroups
from belfry.schedules.identity import partition_of
from tests.acceptance.harness.follow import Follower
from tests.acceptance.harness.load import Load, Shape
from tests.acceptance.harness.rounds import STEPS
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.verifying import assert_verified
from tests.acceptance.harness.worker import Worker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

LONG: Final = "KILLS" in os.environ
KILLS: Final = int(os.environ.get("KILLS", "1"))
HOMES, PHASES, WORKERS = (16, (4, 16, 6), 2) if LONG else (4, (2, 4, 3), 1)
TENANTS: Final = tuple(f"t-{number:02}" for number in range(48 if LONG else 8))
SECRET: Final = "what workers of this test share"
READY_S: Final = 90.0
PHASE_S: Final = 240.0


def rebalance(worker: Worker, *words: str) -> subprocess.Popen[str]:
    env = {**os.environ, **worker.settings}
    env["BELFRY_HTTP_URL"] = f"http://127.0.0.1:{worker.http_port}"
    command = [sys.executable, "-m", "belfry.cli", "rebalance", *words, "--output", "json"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True)


def told(worker: Worker, *words: str) -> dict[str, Any]:
    """What a command prints, once it ends well."""

    def ran() -> dict[str, Any] | None:
        with rebalance(worker, *words) as command:
            out, _ = command.communicate(timeout=PHASE_S)
            found: dict[str, Any] | None = json.loads(out) if command.returncode == 0 else None
        return found

    found = wait_for(" ".join(words), ran, PHASE_S)
    assert found is not None
    return found


class Rescaling:
    """The workers of one belfry, and what is done to them."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site = site
        self.chance = random.Random(seed)
        self.workers = [site.worker() for _ in range(WORKERS)]
        self.kills: list[str] = []
        self.moved = 0

    def start(self) -> None:
        for worker in self.workers:
            worker.start()
        for worker in self.workers:
            worker.wait_ready(READY_S)

    def over(self, partitions: int) -> None:
        """Have all groups lie in so many partitions, however often the command has to be given."""
        deadline = time.monotonic() + PHASE_S
        for _ in range(KILLS):
            with self._apply(partitions) as command:
                time.sleep(self.chance.uniform(1.5, 4.0))
                self._kill()
                # A person gives up now and then as well.
                if self.chance.random() < 0.3:
                    command.kill()
                command.communicate(timeout=PHASE_S)
        while not self._rests(partitions):
            assert time.monotonic() < deadline, f"groups do not come to rest: {self.kills}"
            with self._apply(partitions) as command:
                _, error = command.communicate(timeout=PHASE_S)
                print(error[-400:])  # noqa: T201  # shown where the test fails

    def _apply(self, partitions: int) -> subprocess.Popen[str]:
        words = ("apply", "--partitions", f"{partitions}", "--by", "pending", "--over", "0")
        within = ("--within", "0.5", "--at-once", "3", "--limit", "90", "--yes")
        return rebalance(self.workers[0], *words, *within)

    def _kill(self) -> None:
        """One of the workers goes as by a power failure, and comes back, with a step to die at."""
        victim = self.chance.choice(self.workers)
        victim.kill()
        step = f"{self.chance.choice(STEPS)}:kill:{self.chance.randint(1, 60)}"
        failpoint = step if self.chance.random() < 0.5 else ""
        victim.start(failpoint)
        self.kills.append(failpoint or "kill")
        if failpoint:
            victim.child.wait(8.0)
            victim.kill()
            victim.start()
        for worker in self.workers:
            worker.wait_ready(READY_S)

    def _rests(self, partitions: int) -> bool:
        """Whether all groups of tenants rest, in no partition above these."""
        found = told(self.workers[0], "status")
        if found["missing"] or found["silent"]:
            return False
        groups = KeyGroups(HOMES)
        lies = {each["group"]: each["lies"] for each in found["key_groups"]}
        rest = {each["state"] for each in found["key_groups"]} <= {"rests"}
        places = [lies.get(groups.of(name), partition_of(name.encode(), HOMES)) for name in TENANTS]
        self.moved = max(self.moved, len(lies))
        return rest and max(places) < partitions and len(set(places)) > partitions // 2


def test_groups_move_under_load_with_kills_and_nothing_is_lost(
    kafka: str,
    idle_stack: Stack,
    tmp_path: Path,
    unique: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    shape = Shape(250 if LONG else 100, (1.0, 8.0), int(os.environ.get("SEED", "5")))
    more = {"SESSION_TIMEOUT_MS": "6000"} if LONG else {}
    given = more | {
        "KEY_GROUP_MOVES": "true",
        "HTTP_WORKER_SECRET": SECRET,
        "CLUSTER__PARTITIONS": f"{HOMES}",
    }
    with Site(kafka, unique("rescale"), tmp_path, **given) as site:
        site.schedules_topic(HOMES)
        site.fired_topics(TENANTS)
        rescaling = Rescaling(site, shape.seed)
        rescaling.start()
        load = Load(site, shape, tenants=TENANTS)
        load.start()
        began_s, seconds = time.monotonic(), []
        for partitions in PHASES:
            rescaling.over(partitions)
            seconds.append(round(time.monotonic() - began_s))
        follower = Follower(site, load.stop(), TENANTS, idle_stack.kafka.log_dir)
        report = follower.drain(max(load.last_due_ms, now_ms()))
        follower.close()
        figures = {
            "kills": rescaling.kills,
            "seconds": seconds,
            "away": rescaling.moved,
            "requests": report.requests,
            "fired": report.fired,
            "overrun": report.overrun,
            "late_ms": [median(report.lateness_ms), *sorted(report.lateness_ms)[-3:]],
            "findings": len(report.findings),
        }
        with capsys.disabled():
            print("\n" + json.dumps(figures), file=sys.stderr)  # noqa: T201  # the result
        assert not report.findings, report.summary()
        assert rescaling.moved > len(TENANTS) // 4
        assert report.fired > 300
        for worker in rescaling.workers:
            assert worker.stop() == 0
        assert_verified(site)
