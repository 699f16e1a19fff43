"""A worker's clock is set: forward, back, and by less than the guard minds.

A step beyond the tolerance pauses firing until the clock is right again; a smaller one holds firing
back.  Either way nothing may be early by the broker's clock, which the audit judges.
"""

from __future__ import annotations

import re

from tests.acceptance.harness.site import wait_for
from tests.acceptance.harness.worker import Worker
from tests.chaos.scene import Scene

BEYOND_MS = 3_000
WITHIN_MS = 250


def forward(scene: Scene) -> str:
    """Three seconds ahead: the guard pauses firing."""
    return _step(scene, BEYOND_MS)


def back(scene: Scene) -> str:
    """Three seconds behind: the guard pauses firing."""
    return _step(scene, -BEYOND_MS)


def a_little(scene: Scene) -> str:
    """A quarter of a second ahead: nothing pauses, and nothing may be early."""
    scene.gather()
    scene.clock.put(WITHIN_MS)
    try:
        skew = wait_for(
            "the skew to be measured",
            lambda: found if (found := value(scene.victim, "belfry_clock_skew_seconds")) else 0.0,
        )
        assert skew > WITHIN_MS / 1000 / 2, skew
    finally:
        scene.clock.put(0)
    scene.wait_calm()
    return f"{WITHIN_MS} ms ahead; measured {skew * 1000:.0f} ms"


def _step(scene: Scene, by_ms: int) -> str:
    scene.gather()
    scene.clock.put(by_ms)
    try:
        wait_for("firing to pause", lambda: value(scene.victim, "belfry_firing_paused") == 1.0)
    finally:
        scene.clock.put(0)
    scene.wait_calm()
    return f"clock set by {by_ms} ms; firing paused, and went on"


def value(worker: Worker, name: str) -> float:
    """A metric without labels; 0 where it is not there."""
    _, page = worker.get("/metrics")
    found = re.search(rf"^{name} (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0
