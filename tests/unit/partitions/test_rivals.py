"""When a partition that was fenced off is tried again, whatever the group says meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belfry.engine.ownership import Ownership
from belfry.partitions import rivals as judging
from belfry.partitions.rivals import Rivals


def test_a_group_that_shares_while_it_is_asked_stops_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The group's thread calls `assigned_anew` at any time, so also amid a question."""
    settings: Any = SimpleNamespace(session_timeout_ms=1_000)
    group: Any = SimpleNamespace()
    rivals = Rivals(settings, group)
    group.rejoin = rivals.assigned_anew
    ended: Any = SimpleNamespace(state=Ownership.STOPPED, partition=3)
    now_s = 0.0
    monkeypatch.setattr(judging, "monotonic", lambda: now_s)
    assert not rivals.may_restart(ended)
    now_s = 1.0
    assert rivals.may_restart(ended)
    # And its next end is judged anew.
    assert not rivals.may_restart(ended)
