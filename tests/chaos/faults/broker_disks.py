"""The disk under a broker's log is full: the broker ends, and comes back once there is room.

A broker's log lies on a small disk for as long as the fault lasts:

    stop ─► log moved to a tmpfs ─► start ─► filled to the last byte ─► the broker ends by itself
         ─► emptied ─► start ─► all copies in sync ─► stop ─► log moved back ─► start
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from belfry.devstack import Kafka
from tests.acceptance.harness.site import wait_for
from tests.chaos.faults.disks import filled, small_disk
from tests.chaos.scene import READY_S, Scene

# What a broker's small disk has left when it starts: its load takes minutes to fill that.
ROOM_MB: Final = 96
WITHOUT: Final = 100
# A node writes with each batch; one that has ended takes a moment to say why.
ENDS_S: Final = 60.0
STOP_S: Final = 60.0
SYMPTOM: Final = "No space left on device"


def full(scene: Scene) -> str:
    """A broker's disk fills up: it ends, the others go on, and it comes back when there is room."""
    scene.gather()
    node = scene.chance.choice(scene.nodes)
    with _on_small_disk(scene, node):
        _wait_calm(scene)
        with filled(node.log_dir, leave_mb=0) as size:
            wait_for("the broker to end", lambda: node.exit_code() is not None, ENDS_S)
            code = node.exit_code()
            assert SYMPTOM in node.log_file.read_text("utf-8", errors="replace")
            if len(scene.nodes) > 1:
                scene.wait_fires(WITHOUT)
        node.start().wait_ready(READY_S)
        _wait_calm(scene)
        scene.wait_fires(WITHOUT)
    _wait_calm(scene)
    return f"{size} bytes filled the disk of node {node.node.node_id}, which ended with {code}"


@contextmanager
def _on_small_disk(scene: Scene, node: Kafka) -> Iterator[None]:
    """A node's log lies on a small disk; it is stopped in order for each of the two moves."""
    log, kept = node.log_dir, node.log_dir.with_name("log-kept")
    node.stop(STOP_S)
    log.rename(kept)
    used_mb = sum(each.stat().st_blocks for each in kept.rglob("*")) // 2048 + 1
    with small_disk(log, f"{used_mb + ROOM_MB}m"):
        _copy(f"{kept}/.", str(log))
        shutil.rmtree(kept)
        node.start().wait_ready(READY_S)
        yield
        node.stop(STOP_S)
        kept.mkdir()
        _copy(f"{log}/.", str(kept))
    log.rmdir()
    kept.rename(log)
    node.start().wait_ready(READY_S)
    wait_for("every copy to be in sync", scene.in_sync, READY_S)


def _copy(source: str, target: str) -> None:
    """Copy a log; the indexes of its segments have holes, which stay holes."""
    subprocess.run(["cp", "-a", "--sparse=always", source, target], check=True)


def _wait_calm(scene: Scene) -> None:
    wait_for("every copy to be in sync", scene.in_sync, READY_S)
    scene.wait_calm()
