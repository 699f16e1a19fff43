"""Brokers go away and come back: a lone one, one of three, and each of three in turn.

Where there are several, the others go on: events have to fire while one is away.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Final

from belfry.devstack import Kafka
from tests.acceptance.harness.site import wait_for
from tests.chaos.scene import READY_S, Scene

WITHOUT: Final = 100
# A node that is silent for nine seconds is taken for dead by the others.
FROZEN_S: Final = 12.0


def restart(scene: Scene) -> str:
    """A broker stops in an orderly way and starts again."""
    return _again(scene, scene.chance.choice(scene.nodes), kill=False)


def kill(scene: Scene) -> str:
    """A broker is killed and starts again."""
    return _again(scene, scene.chance.choice(scene.nodes), kill=True)


def in_turn(scene: Scene) -> str:
    """A rolling restart: each stops in order, and the next one once the last one is back."""
    return "; ".join(_again(scene, node, kill=False) for node in scene.nodes)


def freeze(scene: Scene) -> str:
    """A broker is stopped by SIGSTOP for longer than its session, and goes on as if nothing was."""
    scene.gather()
    node = scene.chance.choice(scene.nodes)
    assert node.pid is not None
    os.kill(node.pid, signal.SIGSTOP)
    try:
        time.sleep(FROZEN_S)
        if len(scene.nodes) > 1:
            scene.wait_fires(WITHOUT)
    finally:
        os.kill(node.pid, signal.SIGCONT)
    wait_for("every copy to be in sync", scene.in_sync, READY_S)
    scene.wait_calm()
    return f"process {node.pid} stood still for {FROZEN_S:.0f} s and more"


def _again(scene: Scene, node: Kafka, *, kill: bool) -> str:
    scene.gather()
    before = node.pid
    if kill:
        node.kill()
    else:
        node.stop()
    code = node.exit_code()
    if len(scene.nodes) > 1:
        scene.wait_fires(WITHOUT)
    node.start().wait_ready(READY_S)
    assert node.pid != before
    wait_for("every copy to be in sync", scene.in_sync, READY_S)
    scene.wait_calm()
    return f"process {before} ended with {code}, process {node.pid} took its place"
