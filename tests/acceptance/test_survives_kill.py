"""A worker that is killed over and over fires everything once, never early, and loses nothing.

``make survive ROUNDS=100`` runs the long form; the suite runs a few rounds of it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest

from belfry.devstack import Stack
from tests.acceptance.harness import sent
from tests.acceptance.harness.load import Shape
from tests.acceptance.harness.rounds import Loop, Survival
from tests.acceptance.harness.site import Site
from tests.acceptance.harness.verifying import assert_verified

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7_200)]

ROUNDS = int(os.environ.get("ROUNDS", "6"))
LONG = ROUNDS > 20


def test_every_event_survives(
    kafka: str,
    idle_stack: Stack,
    tmp_path: Path,
    unique: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    seed = int(os.environ.get("SEED", "7"))
    shape = Shape(400 if LONG else 300, (1.0, 20.0) if LONG else (1.0, 8.0), seed)
    with Site(kafka, unique("survive"), tmp_path) as site:
        survival = Loop(site, shape, ROUNDS, idle_stack.kafka.log_dir).run()
        sent.write(survival.evidence.sent, tmp_path / "sent.jsonl")
        with capsys.disabled():
            print("\n" + json.dumps(figures(survival)), file=sys.stderr)  # noqa: T201  # the result
        assert not survival.report.findings, survival.report.summary()
        assert survival.report.fired > 100 * ROUNDS
        assert_verified(site)


def figures(survival: Survival) -> dict[str, Any]:
    """What a run has shown, in numbers."""
    report = survival.report
    return {
        "rounds": len(survival.rounds),
        "seconds": round(survival.seconds),
        "requests": report.requests,
        "verdicts": dict(report.verdicts),
        "expected": report.expected,
        "extras": report.extras,
        "fired": report.fired,
        "findings": len(report.findings),
        "overrun": report.overrun,
        "restart_to_first_fire_ms": spread(survival.first_fire_ms()),
        "largest_lateness_of_a_round_ms": spread(survival.largest_lateness_ms()),
        "lateness_ms": spread(report.lateness_ms),
        "ends": [f"{each.how} {each.mischief}".strip() for each in survival.rounds],
    }


def spread(values: list[int]) -> dict[str, int]:
    """Median, 90th and 99th percentile, largest."""
    if len(values) < 2:
        return {"max": max(values, default=0)}
    cuts = quantiles(values, n=100, method="inclusive")
    shown = {"p50": round(cuts[49]), "p90": round(cuts[89]), "p99": round(cuts[98])}
    return {**shown, "max": max(values)}
