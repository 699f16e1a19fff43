"""Jobs that are held to their rates are played: how much each step did, and no more of it."""

from __future__ import annotations

from random import Random

import pytest

from belfry.engine.job_counts import Budget
from belfry.schedules.bulk import BulkSpec
from tests.unit.engine.driver import HOUR, T0
from tests.unit.playback.trail import Leaving, play

SECOND = 1_000
# What the loop of a partition lets jobs do in a step (`partitions/pacing.py`).
BUDGETS = (Budget(500, 50), Budget(1_000, 100), Budget(50, 5), Budget(250, 25))


def ask_past(trail: Leaving, tenant: str, random: Random) -> None:
    """Schedules that have a past, some without an occurrence in the range."""
    for number in range(random.randrange(3, 9)):
        trail.ask(
            T0,
            tenant=tenant,
            schedule_id=f"s{number}",
            kind="EVERY",
            interval_ms=random.choice((SECOND, 3 * SECOND, 40 * SECOND)),
            start_at=T0 - random.randrange(1, 40) * SECOND,
        )


def ask_jobs(trail: Leaving, tenant: str, now_ms: int, random: Random) -> None:
    """A backfill at a rate, and perhaps another job behind it."""
    rate = random.choice((20, 100, 100))
    spec = BulkSpec(
        action="BACKFILL", per_second=rate, range_from=T0 - HOUR, range_until=T0 - SECOND
    )
    trail.ask(now_ms, tenant=tenant, schedule_id="past", action="BULK", bulk=spec.text())
    if random.random() < 0.5:
        after = BulkSpec(action="TRIGGER", per_second=rate)
        trail.ask(now_ms, tenant=tenant, schedule_id="after", action="BULK", bulk=after.text())


@pytest.mark.parametrize("seed", range(30))
def test_a_backfill_at_a_rate_is_played(seed: int) -> None:
    random = Random(seed)
    trail = Leaving()
    tenants = ("a", "b", "c")[: random.randrange(1, 4)]
    for tenant in tenants:
        ask_past(trail, tenant, random)
    trail.step(T0 + 1)
    now_ms = T0 + 10
    for tenant in tenants:
        ask_jobs(trail, tenant, now_ms, random)
    trail.step(now_ms)
    while trail.engine.jobs.under_way:
        now_ms += random.choice((1, 3, 7, 50, 50, 130, 700))
        if random.random() < 0.05:
            trail.own(now_ms, cold=random.random() < 0.5)
        fires = random.random() < 0.5
        if fires:
            trail.engine.fire_due(now_ms, 10_000)
        worked_ms = now_ms + random.choice((0, 0, 1, 4))
        effects = trail.engine.advance_jobs(worked_ms, random.choice(BUDGETS))
        if not effects.empty:
            trail.end(worked_ms, commit=random.random() < 0.9)
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs
    assert outcome.player.counts.fires == outcome.events == len(trail.events) > 0
