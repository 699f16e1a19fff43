"""How late events were is counted up to the commit with which readers see them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.harness.site import Site, now_ms

pytestmark = pytest.mark.slow

HELD_S = 2


def lateness_s(metrics: str) -> float:
    """The sum of all that the metric has counted."""
    name = "belfry_fire_lateness_seconds_sum"
    return next(float(line.split()[1]) for line in metrics.splitlines() if line.startswith(name))


def test_a_commit_that_is_held_up_counts(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """Each transaction waits before it is committed; the decision to fire was in time."""
    with Site(kafka, unique("truthful"), tmp_path) as site:
        site.fired_topics(["t"])
        worker = site.worker().start(f"S5:late:{HELD_S}").wait_ready(90)
        due_ms = now_ms() + 5_000
        site.ask("t", "held", at=due_ms, payload=b"held")
        site.wait_fired("t", 1, timeout_s=30)
        seen_s = (now_ms() - due_ms) / 1000
        assert seen_s >= HELD_S
        assert HELD_S <= lateness_s(worker.get("/metrics")[1]) <= seen_s + 0.5
