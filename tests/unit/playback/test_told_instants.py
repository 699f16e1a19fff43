"""Instants of a step that its rows tell: of changed calendars, of groups and rules that end."""

from __future__ import annotations

from belfry.engine.after_acks import GRACE_MS
from belfry.engine.job_counts import Budget
from belfry.schedules.bulk import BulkSpec
from tests.unit.engine.driver import HOUR, T0
from tests.unit.playback.trail import Leaving, play

MUCH = Budget(1_000, 100)
CANCEL = BulkSpec(action="CANCEL", prefix="s", per_second=10).text()


def ended(trail: Leaving, schedule_id: str) -> bool:
    """Whether a schedule was rewritten or ended behind its request."""
    return sum(each.key == f"demo/{schedule_id}".encode() for each in trail.log) > 1


def test_a_calendar_that_was_changed_says_how_far_its_partition_had_come() -> None:
    """Nothing fires in the step, so its watermark is of long before."""
    trail = Leaving()
    trail.ask(T0, action="CALENDAR", schedule_id="de", days_off='{"days": ["2026-12-25"]}')
    trail.step(T0 + 5_000, fire=False)
    trail.ask(T0 + 5_001, schedule_id="daily", kind="CRON", cron="0 9 * * *", calendar="de")
    trail.step(T0 + 5_100)
    trail.ask(T0 + 6_000, action="CALENDAR", schedule_id="de", days_off='{"weekend": ["SUN"]}')
    trail.step(T0 + 7_777, fire=False)
    trail.engine.advance_jobs(T0 + 8_000, MUCH)
    trail.end(T0 + 8_000)
    assert ended(trail, "daily")
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs


def test_a_rule_that_is_over_says_when_its_last_fire_was() -> None:
    """The step stops amid what is due, so its watermark is of long before."""
    trail = Leaving()
    for each in ("a", "b", "c"):
        trail.ask(T0, schedule_id=each, kind="EVERY", interval_ms=1_000, max_fires=2)
    trail.step(T0 + 5)
    assert trail.step(T0 + 5_000, at_most=2).ids == ["a", "a", "b", "b"]
    assert trail.engine.manifest.watermark_ms < T0 + 2_000
    assert ended(trail, "a")
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs


def test_a_job_that_is_stopped_says_when_the_step_took_its_end_in() -> None:
    """An owner that takes in what waited fires nothing, and its watermark is of long before."""
    trail = Leaving()
    trail.ask(T0, schedule_id="s", at=T0 + HOUR)
    trail.step(T0)
    trail.ask(T0 + 1, schedule_id="job", action="BULK", bulk=CANCEL)
    trail.ask(T0 + 2, schedule_id="job", action="BULK_STOP")
    trail.step(T0 + 500, fire=False)
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs


def waiting_for_group(trail: Leaving) -> str:
    """A member that fires and is to be acknowledged, and who waits for its group; the fire's id."""
    trail.ask(T0, schedule_id="part", at=T0 + 1_000, group="g", serial=True)
    trail.ask(T0 + 1, schedule_id="whole", kind="AFTER_GROUP", after_group="g")
    trail.step(T0 + 5)
    trail.engine.advance_jobs(T0 + 6, MUCH)
    trail.end(T0 + 6)
    trail.step(T0 + 1_001)
    return trail.events[-1][0].decode()


def test_a_group_ends_in_the_step_that_takes_the_last_acknowledgement_in() -> None:
    trail = Leaving()
    fire_id = waiting_for_group(trail)
    trail.ask(T0 + 2_000, action="ACK", schedule_id="part", fire_id=fire_id)
    trail.engine.fire_due(T0 + 2_010, 1_000)
    trail.engine.accept(trail.batch(), T0 + 2_010)
    trail.engine.advance_jobs(T0 + 2_017, MUCH)
    trail.end(T0 + 2_017)
    assert ended(trail, "whole")
    assert trail.run(T0 + 3_000) == ["whole"]
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs


def test_a_group_ends_whose_last_member_was_seen_by_a_sweep() -> None:
    """Its time-out is over, and the sweep before that one has begun the round."""
    trail = Leaving()
    waiting_for_group(trail)
    trail.step(T0 + HOUR)
    for later_ms in (10, 20):
        trail.sweep(T0 + HOUR + later_ms)
    trail.engine.advance_jobs(T0 + HOUR + 27, MUCH)
    trail.end(T0 + HOUR + 27)
    assert trail.run(T0 + HOUR + 3_000) == ["whole"]
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs


def test_who_waits_for_nobody_is_given_up_a_minute_later() -> None:
    trail = Leaving()
    trail.ask(T0, schedule_id="x", at=T0 + 1_000, group="g", serial=True)
    trail.ask(T0 + 1, schedule_id="y", kind="AFTER_ACK", after_ack="x")
    trail.step(T0 + 5)
    trail.step(T0 + 1_001)
    trail.step(T0 + HOUR)
    for later_ms in (10, 20, 30, GRACE_MS + 40, GRACE_MS + 50):
        trail.engine.sweep(T0 + HOUR + later_ms, 1_000)
        trail.end(T0 + HOUR + later_ms)
    assert ended(trail, "y")
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs


def test_a_tenant_is_held_in_a_step_that_walks_for_a_calendar() -> None:
    trail = Leaving()
    trail.ask(T0, tenant="other", schedule_id="o", at=T0 + 1_000)
    trail.ask(T0, schedule_id="d", at=T0 + 1_000)
    trail.step(T0 + 5)
    trail.ask(T0 + 10, action="CALENDAR", schedule_id="de", days_off='{"weekend": ["SUN"]}')
    trail.step(T0 + 12)
    trail.note("other", held="its topic is being made")
    assert trail.engine.fire_due(T0 + 1_001, 1_000).fired
    trail.engine.advance_jobs(T0 + 1_004, MUCH)
    trail.end(T0 + 1_001)
    trail.note("other", held="")
    assert trail.run(T0 + 1_100) == ["o"]
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs
