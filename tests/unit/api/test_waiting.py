"""What a schedule waits for besides its due instant is told, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.api.workers.waiting import waiting
from belfry.store.layout.records import BEHIND_LOCK, IN_BACKLOG, IN_CATCH_UP, IN_PAUSED, IN_TIMELINE
from belfry.store.lookup import standing_of
from tests.unit.store.test_due_lookup import DueShelf
from tests.unit.store.test_lookup import NOW_MS


class Treated:
    """A tenant that is blocked for a reason, or (empty) not."""

    def __init__(self, stopped: str = "") -> None:
        self.stopped = stopped


FREE, BLOCKED = Treated(), Treated("its topic is missing")


@pytest.mark.parametrize(
    ("where", "gate", "away_ms", "tenant", "what", "why"),
    [
        (IN_TIMELINE, b"", 1, FREE, None, None),
        (IN_TIMELINE, b"", 1, BLOCKED, None, None),
        (IN_BACKLOG, b"", 1, BLOCKED, None, None),
        (IN_BACKLOG, b"", 0, BLOCKED, "tenant_blocked", "its topic is missing"),
        (IN_BACKLOG, b"", -1, FREE, "tenant_queue", "queue"),
        (IN_BACKLOG, b"", -1, None, "tenant_queue", "queue"),
        (IN_CATCH_UP, b"", -1, FREE, "catch_up", "late"),
        (IN_CATCH_UP, b"", -1, BLOCKED, "tenant_blocked", "its topic is missing"),
        (BEHIND_LOCK, b"gorders", -1, FREE, "ack_lock", "'orders'"),
        (BEHIND_LOCK, b"sx", -1, FREE, "ack_lock", "own"),
        (BEHIND_LOCK, b"u", -1, FREE, "later_release", "this version"),
        (IN_PAUSED, b"", 1, FREE, "resume", "resume"),
    ],
)
def test_what_it_waits_for(
    where: int, gate: bytes, away_ms: int, tenant: Any, what: str | None, why: str | None
) -> None:
    shelf = DueShelf()
    shelf.put("t", "x", NOW_MS + away_ms, where, gate)
    found = standing_of(shelf.rows, b"t/x", NOW_MS)
    assert found is not None
    told = waiting(found, tenant, NOW_MS)
    assert told.get("waiting_for") == what
    assert (why is None) == (told == {})
    assert why is None or why in told["waiting_reason"]


def test_what_is_over_waits_for_nothing() -> None:
    shelf = DueShelf()
    shelf.over("t", "x", NOW_MS)
    found = standing_of(shelf.rows, b"t/x", NOW_MS)
    assert found is not None
    assert waiting(found, None, NOW_MS) == {}
