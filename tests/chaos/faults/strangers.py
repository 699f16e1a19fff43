"""Somebody else has a transaction open in belfry's changelog while the partition's owner dies.

What the owner commits behind it cannot be read, so nobody may fire before it is over.  All others
go on, and nobody's local state is thrown away.
"""

from __future__ import annotations

from typing import Final

from tests.acceptance.harness.site import wait_for
from tests.acceptance.harness.stranger import Stranger
from tests.chaos.scene import Scene, owned

HIDDEN: Final = 200
MEANWHILE: Final = 100
TOLD_S: Final = 60.0


def transaction(scene: Scene) -> str:
    """The victim fires behind a stranger's transaction and dies; its successor has to wait."""
    scene.gather()
    partition = min(owned(scene.victim))
    stranger = Stranger(scene.site, "changelog", partition, f"stranger-{len(scene.strikes)}")
    scene.strangers.append((partition, stranger.offset))
    try:
        scene.wait_fires(HIDDEN)
        begin = scene.log_size(scene.steady)
        scene.victim.kill()
        wait_for("the stranger in the log", lambda: _named(scene, begin, stranger.name), TOLD_S)
        scene.wait_fires(MEANWHILE)
        status, said = scene.steady.get("/healthz/ready")
        assert status == 503, said
        assert stranger.name in said
        assert partition not in owned(scene.steady)
    finally:
        stranger.end()
    scene.wait_steady_has_all()
    assert "local state is set aside" not in scene.said(scene.steady, begin)
    scene.victim.start()
    scene.wait_calm()
    return f"{stranger.name} held partition {partition} back from offset {stranger.offset} on"


def _named(scene: Scene, begin: int, name: str) -> bool:
    lines = scene.said(scene.steady, begin).splitlines()
    return any("hides the end of the changelog" in line and name in line for line in lines)
