"""A rebalance storm: guests join and leave the group, in order and by SIGKILL, all at once."""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.acceptance.harness.site import wait_for
from tests.acceptance.harness.worker import Worker
from tests.chaos.scene import Scene

GUESTS: Final = 3
ASSIGNED: Final = '"assigned"'


def storm(scene: Scene) -> str:
    """Guests start together; each leaves as soon as it has something, every other by SIGKILL."""
    scene.gather()
    begin = scene.log_size(scene.steady)
    guests = [scene.guest(number).start() for number in range(GUESTS)]
    for number, guest in enumerate(guests):
        wait_for("a guest to be answered", partial(_answered, scene, guest), 60)
        if number % 2:
            guest.kill()
        else:
            assert guest.stop() == 0, guest.tail()
    scene.wait_calm()
    times = scene.said(scene.steady, begin).count(ASSIGNED)
    assert times >= GUESTS, f"the steady worker was assigned anew {times} times only"
    return f"{GUESTS} guests came and went; {times} assignments"


def _answered(scene: Scene, guest: Worker) -> bool:
    return ASSIGNED in scene.said(guest)
