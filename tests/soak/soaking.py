"""A soak: two workers under a steady load for hours, one of them restarted over and over.

The *steady* worker lives as long as the run and is sampled; the *restless* one is killed and
stopped in turns, so that partitions move all the time.  At the end everything is audited.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from tests.acceptance.harness.evidence import Report
from tests.acceptance.harness.follow import Follower
from tests.acceptance.harness.load import TENANTS, Load, Shape
from tests.acceptance.harness.sent import Sent
from tests.acceptance.harness.site import Site
from tests.acceptance.harness.worker import Worker
from tests.soak.samples import Sample, grown, late, sample

SAMPLE_S: Final = 10.0
LIFE_S: Final = 180.0
MINUTE_MS: Final = 60_000


@dataclass
class Soak:
    """One run; `lives` are how the restless worker's lives ended."""

    site: Site
    shape: Shape
    seconds: float
    log_dir: Path
    samples: list[Sample] = field(default_factory=list)
    restless: list[Sample] = field(default_factory=list)
    lives: list[str] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    reached_s: float = 0.0

    def run(self) -> Report:
        """All of it: load, restarts, samples, drain, audit."""
        site = self.site
        site.schedules_topic()
        site.fired_topics(TENANTS)
        steady = site.worker().start().wait_ready(120)
        restless = site.worker().start().wait_ready(120)
        load = Load(site, self.shape)
        follower = Follower(site, load.sent, TENANTS, self.log_dir)
        load.start()
        self._go_on(steady, restless, follower)
        self.sent = load.stop()
        report = follower.drain(load.last_due_ms, patience_s=180)
        follower.close()
        assert restless.stop() == steady.stop() == 0
        return report

    def _go_on(self, steady: Worker, restless: Worker, follower: Follower) -> None:
        since = life_since = time.monotonic()
        while (now := time.monotonic()) - since < self.seconds:
            self.samples.append(sample(steady.child.pid, steady.data_dir, since))
            self.restless.append(sample(restless.child.pid, restless.data_dir, since))
            follower.read()
            if now - life_since > LIFE_S:
                life_since = now
                self._restart(restless)
            time.sleep(SAMPLE_S)
        self.reached_s = time.monotonic() - since

    def _restart(self, restless: Worker) -> None:
        if len(self.lives) % 2:
            restless.kill()
            self.lives.append("killed")
        else:
            assert restless.stop() == 0, restless.tail()
            self.lives.append("stopped")
        restless.start().wait_ready(120)

    def not_flat(self, report: Report) -> list[str]:
        """What grew, in sentences."""
        return grown(self.samples, report.fired) + late([row[1] for row in minutes(report)])

    def figures(self, report: Report) -> dict[str, Any]:
        """What the run has shown, in numbers."""
        every = quantiles(report.lateness_ms, n=1000, method="inclusive")
        first, last = self.samples[len(self.samples) // 5], self.samples[-1]
        return {
            "seconds": round(self.reached_s),
            "requests": report.requests,
            "fired": report.fired,
            "findings": len(report.findings),
            "overrun": report.overrun,
            "lives": len(self.lives) + 1,
            "lateness_ms": {
                "p50": round(every[499]), "p99": round(every[989]), "max": max(report.lateness_ms),
            },
            "warm": _shown(first),
            "last": _shown(last),
            "largest": {
                "memory_mb": max(each.memory_mb for each in self.samples),
                "handles": max(each.handles for each in self.samples),
                "threads": max(each.threads for each in self.samples),
                "disk_mb": max(each.disk_mb for each in self.samples),
            },
        }  # fmt: skip


def minutes(report: Report) -> list[tuple[int, float, int]]:
    """Each minute's number, its median lateness and its largest, ms."""
    found: dict[int, list[int]] = defaultdict(list)
    for at_ms, late_ms in zip(report.fired_at_ms, report.lateness_ms, strict=True):
        found[at_ms // MINUTE_MS].append(late_ms)
    first = min(found, default=0)
    return [(key - first, median(found[key]), max(found[key])) for key in sorted(found)]


def _shown(one: Sample) -> dict[str, float]:
    return {
        "memory_mb": one.memory_mb,
        "handles": one.handles,
        "threads": one.threads,
        "disk_mb": one.disk_mb,
    }
