"""Workers that go and come back, one after another, under a steady load, and how late it made them.

A turn: look who owns what, end one worker, wait until the others own everything, start it again,
wait until it has its share.  At the end the output is read, and each turn is judged by the events
that were due in it: the worst of the partitions that moved, and of those that did not.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from tests.acceptance.harness.reading import Reader
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.steady import TENANTS, Fires, SteadyLoad
from tests.acceptance.harness.worker import Worker

PARTITIONS: Final = 4
SETTLE_S: Final = 1.5
DRAIN_S: Final = 60.0
BEFORE_MS: Final = 1_000


@dataclass(slots=True)
class Turn:
    """One worker's end and return."""

    number: int
    began_ms: int
    moved: set[int]
    stop_ms: int = 0
    ended_ms: int = 0


@dataclass
class Turns:
    """Ends workers in turn; `end` is how."""

    site: Site
    workers: list[Worker]
    end: Callable[[Worker], None]
    load: SteadyLoad
    done: list[Turn] = field(default_factory=list)

    def run(self, rounds: int) -> dict[str, Any]:
        """All turns and what came of them."""
        self.load.start()
        time.sleep(SETTLE_S)
        for number in range(rounds):
            self.done.append(self._turn(number, self.workers[number % len(self.workers)]))
        self.load.stop()
        fires = self._drained()
        return self._figures(fires)

    def _turn(self, number: int, worker: Worker) -> Turn:
        turn = Turn(number, now_ms(), owned(worker))
        self.end(worker)
        turn.stop_ms = now_ms() - turn.began_ms
        others = [other for other in self.workers if other is not worker]
        wait_for("the others to own everything", lambda: whole(others), 150)
        time.sleep(SETTLE_S)
        worker.start()
        wait_for("everybody to have a share", lambda: divided(self.workers), 150)
        time.sleep(SETTLE_S)
        turn.ended_ms = now_ms()
        return turn

    def _drained(self) -> Fires:
        fires = Fires(self.load)
        reader = Reader(self.site.bootstrap)
        topics = [self.site.topic(f"fired.{tenant}") for tenant in TENANTS]
        deadline_ms = max(self.load.due_ms) + DRAIN_S * 1000
        try:
            while True:
                fires.add(reader.read(topics))
                if not fires.lost or now_ms() > deadline_ms:
                    return fires
                time.sleep(0.5)
        finally:
            reader.close()

    def _figures(self, fires: Fires) -> dict[str, Any]:
        moved, stayed = [], []
        for turn in self.done:
            worst = fires.worst_ms(turn.began_ms - BEFORE_MS, turn.ended_ms)
            moved.append(max((worst.get(p, 0) for p in turn.moved), default=0))
            stayed.append(max((w for p, w in worst.items() if p not in turn.moved), default=0))
        return {
            "events": len(fires.times),
            "lost": fires.lost,
            "doubled": fires.doubled,
            "early": fires.early,
            "ends_took_ms": [turn.stop_ms for turn in self.done],
            "worst_of_moved_ms": moved,
            "median_of_moved_ms": median(moved),
            "largest_of_moved_ms": max(moved),
            "largest_of_stayed_ms": max(stayed),
            "largest_ms": max(fires.late_ms),
        }


def owned(worker: Worker) -> set[int]:
    """Partitions that a worker says it owns."""
    _, page = worker.get("/metrics")
    found = re.findall(r'^belfry_partition_owned\{partition="(\d+)"\} 1', page, re.MULTILINE)
    return set(map(int, found))


def whole(workers: list[Worker]) -> bool:
    """Whether these workers own everything between them."""
    return set().union(*map(owned, workers)) == set(range(PARTITIONS))


def divided(workers: list[Worker]) -> bool:
    """Whether each has a share and nobody's overlaps with another's."""
    shares = [owned(worker) for worker in workers]
    return all(shares) and sorted(p for share in shares for p in share) == list(range(PARTITIONS))


def shown(figures: dict[str, Any]) -> str:
    """The figures as one line."""
    return "\n" + json.dumps(figures)
