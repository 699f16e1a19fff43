"""Tasks that start one another are no deeper than the first one: there is no end to how many."""

from __future__ import annotations

from random import Random

from tests.simulation.stage import Stage, enter, leave

# Far more than Python's limit of recursion allows for, were each as deep as the one before.
TASKS = 2_000


def test_tasks_that_start_one_another_do_not_add_up() -> None:
    stage = Stage(Random(0))
    begun: list[int] = []

    def begin() -> None:
        begun.append(len(begun))
        if len(begun) < TASKS:
            stage.spawn("next", begin)
            stage.sleep(1.0)

    enter(stage)
    try:
        stage.spawn("first", begin)
        stage.sleep(10.0 * TASKS)
    finally:
        leave()
    assert len(begun) == TASKS
    assert not stage.failures
