"""Much at once: a crowd due at one instant, and all that comes due while nobody runs."""

from __future__ import annotations

from typing import Final

from tests.acceptance.harness.site import now_ms, wait_for
from tests.chaos.scene import Scene

CROWD: Final = 6_000
LEAD_MS: Final = 6_000
FREEZE_MS: Final = 100
OVERDUE: Final = 600


def thundering_minute(scene: Scene) -> str:
    """Thousands are due at the same millisecond; the victim is killed while it fires them.

    The hop freezes just before, so the victim dies with its part begun and not committed.  That
    the rest comes out is for the audit: the load cancels and changes some of a crowd, too.
    """
    scene.gather()
    due_ms = now_ms() + LEAD_MS
    scene.load.crowd(CROWD, due_ms)
    # What has come out so far is read now: the next look has to be over before a standby steps in.
    scene.fired_due(due_ms)
    wait_for("the crowd to be taken in", lambda: now_ms() > due_ms - FREEZE_MS, 60)
    scene.hop.freeze()
    before = scene.hop.stopped_frames
    try:
        wait_for("the victim's part", lambda: scene.hop.stopped_frames > before)
        out = wait_for("the first of the crowd", lambda: scene.fired_due(due_ms), 60)
        scene.victim.kill()
    finally:
        scene.hop.heal()
    assert 0 < out < CROWD, f"{out} of {CROWD} were out when the victim was killed"
    scene.victim.start()
    scene.wait_calm()
    return f"{out} of {CROWD} were out when the victim was killed"


def long_outage(scene: Scene) -> str:
    """Both workers die; hundreds come due, and requests go on coming, before they start again."""
    scene.gather()
    scene.victim.kill()
    scene.steady.kill()
    from_ms = now_ms()
    wait_for("enough to come due", lambda: scene.dues_since(from_ms) >= OVERDUE, 300)
    overdue = scene.dues_since(from_ms)
    scene.steady.start()
    scene.victim.start()
    scene.wait_calm()
    return f"{overdue} came due while nobody ran"
