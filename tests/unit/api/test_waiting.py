"""What a schedule waits for besides its due instant is told, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.api.json.shapes import moment
from belfry.api.workers.waiting import OVERDUE_MS, waiting
from belfry.store.layout.locations import (
    BEHIND_LOCK,
    IN_BACKLOG,
    IN_CATCH_UP,
    IN_PAUSED,
    IN_TIMELINE,
)
from belfry.store.layout.pending import Away
from belfry.store.lookup import standing_of
from belfry.tenants.effective import EffectivePolicy, Tenant
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.waits import Wait, why, why_not_firing
from tests.unit.store.test_due_lookup import DueShelf
from tests.unit.store.test_lookup import NOW_MS


def treated(held: str = "", **policy: Any) -> Tenant:
    """A tenant that is blocked for a reason, or (empty) not."""
    return Tenant("t", "fired.t", EffectivePolicy(TenantPolicy("t", **policy)), held=held)


FREE, BLOCKED, PAUSED = treated(), treated("its topic is missing"), treated(paused=True)
LIMITED = treated(max_fires_per_second=2.5)
STANDS = why_not_firing(clock="it went back")
HELD = Wait(why("tenant_blocked", BLOCKED), NOW_MS - 5, 1, NOW_MS)


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
        (IN_BACKLOG, b"", -1, PAUSED, "tenant_blocked", "its policy pauses it"),
        (IN_BACKLOG, b"", -1, LIMITED, "tenant_queue", "2.5 fires a second"),
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


def test_what_waits_for_its_payload_says_so_in_looks_and_lists() -> None:
    shelf = DueShelf()
    shelf.put("t", "x", NOW_MS - 1, BEHIND_LOCK, b"u", payload=Away(b"stands for it"))
    found = standing_of(shelf.rows, b"t/x", NOW_MS)
    assert found is not None
    for each in (found, found.without_payload()):
        told = waiting(each, FREE, NOW_MS)
        assert (told["waiting_for"], told["waiting_cause"]) == ("day_file", "day_file")
        assert "day file" in told["waiting_reason"]


def test_what_is_over_waits_for_nothing() -> None:
    shelf = DueShelf()
    shelf.over("t", "x", NOW_MS)
    found = standing_of(shelf.rows, b"t/x", NOW_MS)
    assert found is not None
    assert waiting(found, None, NOW_MS) == {}


def test_since_when_is_told_where_the_tenant_waits_for_the_same() -> None:
    shelf = DueShelf()
    shelf.put("t", "x", NOW_MS, IN_BACKLOG, b"")
    found = standing_of(shelf.rows, b"t/x", NOW_MS)
    assert found is not None
    told = waiting(found, BLOCKED, NOW_MS, HELD)
    assert (told["waiting_cause"], told["waiting_since"]) == ("output_topic", moment(NOW_MS - 5))
    assert waiting(found, PAUSED, NOW_MS, HELD)["waiting_since"] is None


@pytest.mark.parametrize(("late_ms", "told"), [(OVERDUE_MS, False), (OVERDUE_MS + 1, True)])
def test_what_is_overdue_says_that_nothing_fires(late_ms: int, told: bool) -> None:
    shelf = DueShelf()
    shelf.put("t", "x", NOW_MS - late_ms, IN_TIMELINE, b"")
    found = standing_of(shelf.rows, b"t/x", NOW_MS)
    assert found is not None
    shown = waiting(found, FREE, NOW_MS, None, STANDS)
    assert (shown.get("waiting_cause") == "clock") is told
    assert ("it went back" in shown.get("waiting_reason", "")) is told


def test_a_partition_that_does_not_fire_says_so() -> None:
    found = why_not_firing(clock="it went back", partition="taking in")
    assert found is not None
    assert (found.cause, found.waiting_for) == ("partition", "firing")
    assert "taking in" in found.reason
    assert why_not_firing() is None
