"""The victim's way to the broker is cut, freezes, or lets answers go no more.

Each lasts until the other worker has taken everything over; then what was held back, such as a
late EndTxn of the former owner, reaches a broker that has fenced it.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.chaos.scene import Scene


def cut(scene: Scene) -> str:
    """Connections end, and new ones end at once."""
    before = scene.hop.ended_links
    _through(scene, scene.hop.cut)
    return f"{scene.hop.ended_links - before} connections ended"


def freeze(scene: Scene) -> str:
    """Nothing passes in either direction, and no connection ends."""
    before = scene.hop.stopped_frames
    _through(scene, scene.hop.freeze)
    return f"{scene.hop.stopped_frames - before} frames held back"


def mute(scene: Scene) -> str:
    """Requests reach the broker, answers do not come back."""
    before = scene.hop.stopped_frames
    _through(scene, scene.hop.mute)
    return f"{scene.hop.stopped_frames - before} answers held back"


def _through(scene: Scene, strike: Callable[[], None]) -> None:
    scene.gather()
    ended, stopped = scene.hop.ended_links, scene.hop.stopped_frames
    strike()
    try:
        scene.wait_steady_has_all()
    finally:
        scene.hop.heal()
    assert scene.hop.ended_links > ended or scene.hop.stopped_frames > stopped
    scene.wait_calm()
