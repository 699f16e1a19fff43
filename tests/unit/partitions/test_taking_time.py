"""A step of a partition takes requests in for a while alone, by the clock that never goes back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from belfry.partitions import steps
from belfry.partitions.step_shares import StepRoom


@pytest.mark.parametrize(("took_ms", "up"), [(0.0, False), (249.0, False), (250.0, True)])
def test_the_time_of_a_step_is_up_after_a_while(took_ms: float, up: bool) -> None:
    given, owned, upkeep, batch = MagicMock(), MagicMock(), MagicMock(), MagicMock()
    given.opener.settings = SimpleNamespace(
        batch_records=10, step_bytes=1_000, fire_chunk=10, commit_interval_ms=0
    )
    given.room, batch.size = StepRoom(), 0
    given.opener.clock.both_ms.return_value = (1.0, 1.0)
    given.opener.clock.monotonic_ms.return_value = 1_000.0
    upkeep.add_to.return_value, upkeep.longest_s.return_value = None, 1.0
    owned.engine.next_due_ms.return_value, owned.engine.aside.any = None, False
    owned.resolver.deferred.any, owned.resolver.too_many = False, False
    batch.behind.return_value = None
    asked: list[bool] = []

    def accept(*given_to: Any) -> Any:
        given.opener.clock.monotonic_ms.return_value += took_ms
        asked.append(given_to[-1]())
        return SimpleNamespace(empty=True, fired=[], objects={})

    owned.engine.accept.side_effect = accept
    one = steps.Steps(given, MagicMock(), upkeep, lambda: False, MagicMock(asked=False))
    one.mail = MagicMock()
    one.mail.next.return_value = batch
    list(one.step(owned))
    assert asked == [up]
