"""Brokers go away and come back: the only one, in order and by SIGKILL, and one of three."""

from __future__ import annotations

from belfry.devstack import Kafka
from tests.acceptance.harness.site import wait_for
from tests.chaos.scene import READY_S, Scene


def restart(scene: Scene) -> str:
    """The only broker stops in an orderly way and starts again."""
    return _again(scene, scene.nodes[0], kill=False)


def kill(scene: Scene) -> str:
    """The only broker is killed and starts again."""
    return _again(scene, scene.nodes[0], kill=True)


def kill_one_of_several(scene: Scene) -> str:
    """One of several brokers is killed; the others go on without it, before it comes back."""
    node = scene.chance.choice(scene.nodes)
    scene.gather()
    node.kill()
    before = scene.fired_count()
    wait_for("fires without it", lambda: scene.fired_count() > before + 100, 60)
    without = scene.fired_count() - before
    node.start().wait_ready(READY_S)
    scene.wait_calm()
    return f"node {node.node.node_id} killed; {without} fired while it was away"


def _again(scene: Scene, node: Kafka, *, kill: bool) -> str:
    scene.gather()
    before = node.pid
    if kill:
        node.kill()
    else:
        node.stop()
    code = node.exit_code()
    node.start().wait_ready(READY_S)
    assert node.pid != before
    scene.wait_calm()
    return f"process {before} ended with {code}, process {node.pid} took its place"
