"""Key groups move under a load while an owner is killed: nothing is lost, doubled or early.

Groups of a belfry of four partitions lie in two, then in four, then in three of them, by
`belfry rebalance apply`. `make rescale` plays more of it, and adds partitions (`tests/rescale`).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final

import pytest

from belfry.devstack import Stack
from tests.acceptance.harness.follow import Follower
from tests.acceptance.harness.load import Load, Shape
from tests.acceptance.harness.rescaling import Rescaling
from tests.acceptance.harness.rescaling import Shape as Rescale
from tests.acceptance.harness.site import Site, now_ms
from tests.acceptance.harness.verifying import assert_verified

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

HOMES: Final = 4
PHASES: Final = (2, 4, 3)
TENANTS: Final = tuple(f"t-{number:02}" for number in range(8))
# ``KILLS=0`` tells how late events are where groups move and nobody is killed.
KILLS: Final = int(os.environ.get("KILLS", "1"))
SEED: Final = int(os.environ.get("SEED", "5"))


def test_groups_move_under_load_with_kills_and_nothing_is_lost(
    kafka: str,
    idle_stack: Stack,
    tmp_path: Path,
    unique: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = {
        "KEY_GROUP_MOVES": "true",
        "HTTP_WORKER_SECRET": "what workers of this test share",
        "CLUSTER__PARTITIONS": f"{HOMES}",
    }
    with Site(kafka, unique("moves"), tmp_path, **given) as site:
        site.schedules_topic(HOMES)
        site.fired_topics(TENANTS)
        shape = Rescale(homes=HOMES, workers=1, kills=KILLS, tenants=TENANTS, seed=SEED)
        rescaling = Rescaling(site, shape)
        rescaling.start()
        load = Load(site, Shape(100, (1.0, 8.0), SEED), tenants=TENANTS)
        load.start()
        began_s, seconds = time.monotonic(), []
        for partitions in PHASES:
            rescaling.over(partitions)
            seconds.append(round(time.monotonic() - began_s))
        follower = Follower(site, load.stop(), TENANTS, idle_stack.kafka.log_dir)
        report = follower.drain(max(load.last_due_ms, now_ms()))
        follower.close()
        figures = {
            "kills": [kill.how for kill in rescaling.kills],
            "seconds": seconds,
            "away": len(rescaling.moved),
            "requests": report.requests,
            "fired": report.fired,
            "overrun": report.overrun,
            "late_ms": [median(report.lateness_ms), *sorted(report.lateness_ms)[-3:]],
            "findings": len(report.findings),
        }
        with capsys.disabled():
            print("\n" + json.dumps(figures), file=sys.stderr)  # noqa: T201  # the result
        assert not report.findings, report.summary()
        assert len(rescaling.moved) > len(TENANTS) // 4
        assert report.fired > 300
        for worker in rescaling.workers:
            assert worker.stop() == 0
        assert_verified(site)
