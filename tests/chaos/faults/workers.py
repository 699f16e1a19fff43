"""Three workers: two of them end at once, and three owners of a partition fence one another.

What takes three is found by no scene of two: a partition whose owner and whose standby are gone,
and an owner that wakes after its successor has had a successor.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Final

from tests.acceptance.harness.failover import divided, owned, whole
from tests.acceptance.harness.site import wait_for
from tests.acceptance.harness.worker import Worker
from tests.chaos.scene import CALM_S, Scene, asleep

FIRES: Final = 100


def two_end(scene: Scene) -> str:
    """Of three that share the partitions two are killed at once; the third takes everything."""
    third = _joined(scene)
    shares = [sorted(owned(each)) for each in (scene.victim, third)]
    scene.victim.kill()
    third.kill()
    scene.wait_steady_has_all()
    scene.wait_fires(FIRES)
    scene.gather()
    return f"the owners of {shares[0]} and {shares[1]} were killed at once"


def owners_in_turn(scene: Scene) -> str:
    """A first owner is stopped, then its successor; both wake up under a third one.

    Which worker the second one is depends on who took over: the last one left has everything.
    """
    third = _joined(scene)
    before = owned(scene.victim)
    _sleeps(scene.victim)
    others = [scene.steady, third]
    wait_for("the first to be replaced", lambda: whole(others), CALM_S)
    scene.wait_fires(FIRES)
    second = next(each for each in others if before & owned(each))
    passed = sorted(before & owned(second))
    _sleeps(second)
    (last,) = (each for each in others if each is not second)
    wait_for("the second to be replaced", lambda: whole([last]) and last.ready, CALM_S)
    scene.wait_fires(FIRES)
    for each in (scene.victim, second):
        each.signal(signal.SIGCONT)
    _wait_shared([scene.steady, scene.victim, third])
    assert third.stop() == 0, third.tail()
    scene.wait_calm()
    return f"partitions {passed} had three owners, of which two woke up later"


def _joined(scene: Scene) -> Worker:
    """The third worker, once all three have a share."""
    scene.gather()
    third = scene.guest(0).start()
    _wait_shared([scene.steady, scene.victim, third])
    return third


def _wait_shared(workers: Sequence[Worker]) -> None:
    def shared() -> bool:
        return divided([*workers]) and all(worker.ready for worker in workers)

    wait_for("three to share the partitions", shared, CALM_S)


def _sleeps(worker: Worker) -> None:
    """Stop it; it is asleep when this returns."""
    worker.signal(signal.SIGSTOP)
    wait_for("the worker to be stopped", lambda: asleep(worker))
