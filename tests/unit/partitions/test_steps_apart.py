"""Steps of a partition keep the distance that an operator asks for, whoever wakes it meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from belfry.partitions import steps
from belfry.partitions.step_shares import StepRoom


def pauses(interval_ms: int, *, drains: bool = False) -> list[float]:
    """What a step yields that follows one of two requests, which began 10 ms before it ended."""
    given, owned, upkeep, batch = MagicMock(), MagicMock(), MagicMock(), MagicMock()
    given.opener.settings = SimpleNamespace(
        batch_records=10, step_bytes=1_000, fire_chunk=10, commit_interval_ms=interval_ms
    )
    given.room, batch.size, batch.records = StepRoom(), 0, ["a", "b"]
    given.worker.is_asked_often.return_value = False
    clock = given.opener.clock
    clock.both_ms.return_value = (1.0, 1.0)
    clock.monotonic_ms.return_value = 1_000.0
    upkeep.add_to.return_value, upkeep.longest_s.return_value = None, 1.0
    owned.engine.next_due_ms.return_value, owned.engine.aside.any = None, False
    owned.engine.drains = drains
    owned.resolver.deferred.any, owned.resolver.too_many = False, False
    batch.behind.return_value = None

    def accept(*_: Any) -> Any:
        clock.monotonic_ms.return_value = 1_010.0
        return SimpleNamespace(empty=True, fired=[], objects={})

    owned.engine.accept.side_effect = accept
    one = steps.Steps(given, MagicMock(), upkeep, lambda: False, MagicMock(asked=True))
    one.mail = MagicMock()
    one.mail.next.return_value = batch
    list(one.step(owned))
    return [pause or 0.0 for pause in one.step(owned)]


def test_without_a_distance_a_step_follows_at_once() -> None:
    assert pauses(0) == [0.0]


def test_a_step_waits_for_what_is_left_of_the_distance_though_something_has_come() -> None:
    assert pauses(50) == [pytest.approx(0.04), 0.0]
    assert pauses(10) == [0.0]


def test_a_backlog_that_may_fire_does_not_wait() -> None:
    assert pauses(50, drains=True) == [0.0]
