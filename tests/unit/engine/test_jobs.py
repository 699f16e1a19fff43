"""Bulk jobs: each schedule that a filter matches has one outcome, in however many steps."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest

from belfry.engine.job_counts import Budget
from belfry.engine.kept_jobs import MOST_ENDED
from belfry.schedules.bulk import BulkSpec
from belfry.store.fold import fold
from belfry.store.layout.jobs import (
    DONE,
    KEPT_MS,
    RUNNING,
    STOPPED,
    JobRow,
    decode_job,
    encode_job,
    job_key,
)
from belfry.store.layout.manifests import StoredState
from belfry.store.net import net_of
from belfry.store.recovery import changelog_rows, manifest_after, of_earlier_input
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Level
from belfry.tenants.policy import TenantPolicy
from belfry.wire.accepted import whole
from belfry.wire.lifecycle import LifecycleEvent
from tests.unit.engine.driver import HOUR, T0, Driver
from tests.unit.engine.test_spread import PARTITIONS, Ring

MUCH: Final = Budget(10_000, 10_000)
FAST: Final = 10_000


def job(action: str, **said: Any) -> str:
    return BulkSpec(action=action, **{"per_second": FAST, **said}).text()


def begin(driver: Driver, action: str, name: str = "job", **said: Any) -> list[str]:
    driver.ask(action="BULK", schedule_id=name, bulk=job(action, **said))
    return driver.step(T0, fire=False).outcomes


def advance(
    driver: Driver, budget: Budget = MUCH, now_ms: int = T0 + 1_000, *, commit: bool = True
) -> list[LifecycleEvent]:
    """What one step of jobs tells of."""
    effects = driver.engine.advance_jobs(now_ms, budget)
    if not effects.empty:
        driver.end(now_ms, commit=commit)
    return [whole(each) for each in effects.lifecycle]


def finish(driver: Driver, budget: Budget = MUCH) -> list[str]:
    """All outcomes until no job is under way."""
    told: list[str] = []
    now_ms = T0 + 1_000
    while driver.engine.jobs.under_way:
        told += [f"{each.outcome} {each.schedule_id}" for each in advance(driver, budget, now_ms)]
        now_ms += 1_000
    return told


def row(driver: Driver, name: str = "job") -> JobRow:
    found = driver.engine._store.named(job_key("demo", name))
    assert found is not None
    return decode_job(found)


def with_schedules(*names: str, **fields: Any) -> Driver:
    driver = Driver(level=Level.FAILURES)
    for name in names:
        driver.ask(schedule_id=name, **{"at": T0 + HOUR, **fields})
    driver.step(T0)
    return driver


def test_a_job_cancels_what_its_filter_matches_and_nothing_else() -> None:
    driver = with_schedules("a/1", "a/2", "b/1")
    driver.ask(schedule_id="a/3", at=T0 + HOUR, tenant="other")
    driver.ask(action="BULK", schedule_id="job", request_id="r", bulk=job("CANCEL", prefix="a/"))
    assert driver.step(T0).outcomes == ["ACCEPTED"]
    assert finish(driver) == ["CANCELLED a/1", "CANCELLED a/2"]
    assert driver.run(T0 + HOUR) == ["b/1", "a/3"]
    done = row(driver)
    assert (done.state, done.examined, done.matched, done.done, done.refused) == (DONE, 2, 2, 2, 0)


def test_each_step_does_what_its_budget_allows_and_the_next_goes_on_behind() -> None:
    names = [f"s{number}" for number in range(7)]
    driver = with_schedules(*names)
    begin(driver, "CANCEL")
    assert [each.schedule_id for each in advance(driver, Budget(100, 3))] == names[:3]
    assert driver.engine.jobs.left_off
    assert [each.schedule_id for each in advance(driver, Budget(2, 100))] == names[3:5]
    assert (row(driver).cursor, row(driver).done, row(driver).state) == ("demo/s4", 5, RUNNING)
    assert [each.schedule_id for each in advance(driver)] == names[5:]
    assert row(driver).state == DONE


def test_a_step_that_is_rolled_back_is_done_again_and_once() -> None:
    driver = with_schedules("a", "b", "c")
    begin(driver, "CANCEL")
    advance(driver, Budget(10, 1))
    before = row(driver)
    assert [each.schedule_id for each in advance(driver, Budget(10, 1), commit=False)] == ["b"]
    assert row(driver) == before
    assert finish(driver, Budget(10, 1)) == ["CANCELLED b", "CANCELLED c"]


def test_the_next_owner_goes_on_where_the_last_one_stood() -> None:
    driver = with_schedules("a", "b", "c")
    begin(driver, "CANCEL")
    advance(driver, Budget(10, 1))
    driver.start(driver.rows)
    assert finish(driver) == ["CANCELLED b", "CANCELLED c"]


def test_what_was_asked_for_after_the_job_is_left_alone() -> None:
    driver = with_schedules("a", "changed", "replaced")
    begin(driver, "CANCEL")
    driver.ask(schedule_id="b", at=T0 + HOUR)
    driver.ask(schedule_id="changed", at=T0 + HOUR, payload=b"new")
    driver.ask(schedule_id="replaced", action="CANCEL")
    driver.ask(schedule_id="replaced", at=T0 + HOUR)
    driver.step(T0)
    assert finish(driver) == ["CANCELLED a"]
    assert sorted(driver.run(T0 + HOUR)) == ["b", "changed", "replaced"]


def test_a_job_sees_what_came_in_the_step_that_begins_it() -> None:
    driver = with_schedules("z")
    driver.ask(schedule_id="a", at=T0 + HOUR)
    driver.ask(action="BULK", schedule_id="job", bulk=job("CANCEL"))
    driver.engine.accept(driver.batch(), T0)
    assert not [each for each in advance(driver) if each.outcome == "CANCELLED"]
    assert finish(driver) == ["CANCELLED a", "CANCELLED z"]


def test_what_fires_before_its_turn_is_no_business_of_the_job() -> None:
    driver = with_schedules("a", "b", at=T0 + 5)
    begin(driver, "CANCEL")
    assert driver.step(T0 + 5).ids == ["a", "b"]
    assert finish(driver) == []
    assert (row(driver).state, row(driver).matched) == (DONE, 0)


def test_what_fires_in_the_same_step_is_not_cancelled() -> None:
    driver = with_schedules("a", at=T0 + 5)
    begin(driver, "CANCEL")
    driver.engine.fire_due(T0 + 5, 10)
    effects = driver.engine.advance_jobs(T0 + 5, MUCH)
    assert len(effects.fired) == 1
    assert not effects.lifecycle
    driver.end(T0 + 5)


def test_jobs_of_a_tenant_are_done_in_the_order_in_which_they_were_asked_for() -> None:
    driver = with_schedules("a", "b")
    begin(driver, "PAUSE", "z first")
    begin(driver, "RESUME", "a second")
    assert finish(driver, Budget(10, 1)) == ["PAUSED a", "PAUSED b", "RESUMED a", "RESUMED b"]


def test_jobs_of_several_tenants_take_turns() -> None:
    driver = with_schedules("a", "b")
    for name in ("a", "b"):
        driver.ask(schedule_id=name, tenant="other", at=T0 + HOUR)
    driver.ask(action="BULK", schedule_id="job", tenant="other", bulk=job("CANCEL"))
    begin(driver, "CANCEL")
    told = [advance(driver, Budget(10, 1))[0].tenant for _ in range(4)]
    assert told == ["demo", "other", "demo", "other"]


def test_a_step_that_is_rolled_back_takes_no_turn() -> None:
    driver = with_schedules("a", "b")
    driver.ask(schedule_id="a", tenant="other", at=T0 + HOUR)
    begin(driver, "PAUSE")
    driver.ask(action="BULK", schedule_id="job", tenant="other", bulk=job("PAUSE"))
    driver.step(T0, fire=False)
    jobs = driver.engine.jobs
    turns = []
    for commit in (False, True, False, True):
        effects = driver.engine.advance_jobs(T0 + 1_000, Budget(1, 1))
        assert jobs.left_off
        turns += [each.tenant for each in effects.lifecycle]
        driver.end(T0 + 1_000, commit=commit)
        assert jobs.left_off == (commit or len(turns) > 2)
    assert turns == ["demo", "demo", "other", "other"]


def test_a_job_keeps_to_its_rate() -> None:
    driver = with_schedules(*(f"s{number:03}" for number in range(100)))
    begin(driver, "CANCEL", per_second=10)
    counts = [len(advance(driver, MUCH, T0 + 1_000 + tenth * 100)) for tenth in range(50)]
    assert 48 <= sum(counts) <= 52
    assert max(counts[1:]) == 1


def test_a_job_is_stopped_and_what_it_did_stays() -> None:
    driver = with_schedules("a", "b")
    begin(driver, "CANCEL")
    advance(driver, Budget(10, 1))
    driver.ask(action="BULK_STOP", schedule_id="job", request_id="r1")
    assert driver.step(T0).outcomes == ["CANCELLED"]
    assert finish(driver) == []
    assert (row(driver).state, row(driver).done) == (STOPPED, 1)
    assert driver.run(T0 + HOUR) == ["b"]
    driver.ask(action="BULK_STOP", schedule_id="job", request_id="r2")
    driver.ask(action="BULK_STOP", schedule_id="none", request_id="r3")
    ended, none = driver.step(T0 + HOUR).effects.lifecycle
    assert (str(ended.outcome), ended.code, ended.reason) == ("UNCHANGED", "bulk_job", None)
    assert (str(none.outcome), none.code) == ("NOT_FOUND", "not_found")
    assert none.reason == "No job has this id, or it ended more than a week ago."


def test_an_id_belongs_to_one_job_and_a_repeat_begins_nothing() -> None:
    driver = with_schedules("a")
    for request_id in ("r", "r", "other"):
        spec = job("CANCEL")
        driver.ask(action="BULK", schedule_id="job", bulk=spec, request_id=request_id)
    driver.ask(action="BULK", schedule_id="job", bulk=job("PAUSE"), request_id="r")
    told = driver.step(T0).effects.lifecycle
    assert [str(each.outcome) for each in told] == [
        *("ACCEPTED", "DUPLICATE", "CONFLICT", "CONFLICT")
    ]
    assert told[-1].code == "request_id_reused"
    assert finish(driver) == ["CANCELLED a"]


def test_a_job_of_a_removed_tenant_stops() -> None:
    driver = with_schedules("a")
    begin(driver, "TRIGGER")
    driver.apply(removed=True)
    advance(driver)
    assert (row(driver).state, row(driver).examined) == (STOPPED, 0)


def test_an_ended_job_is_kept_for_a_week() -> None:
    driver = with_schedules("a")
    begin(driver, "CANCEL")
    finish(driver)
    ended_ms = row(driver).ended_ms
    assert ended_ms is not None
    driver.sweep(ended_ms + KEPT_MS - 1)
    assert row(driver).state == DONE
    driver.sweep(ended_ms + KEPT_MS)
    assert driver.engine._store.named(job_key("demo", "job")) is None


def test_no_more_than_some_ended_jobs_are_kept() -> None:
    driver = Driver(level=Level.FAILURES)
    for number in range(MOST_ENDED + 5):
        begin(driver, "CANCEL", f"j{number:04}")
        finish(driver)
    begin(driver, "CANCEL", "last")
    assert driver.engine._store.named(job_key("demo", "j0000")) is None
    assert row(driver, f"j{MOST_ENDED + 4:04}").state == DONE


@pytest.mark.parametrize("arrives", range(PARTITIONS))
def test_a_job_of_a_spread_tenant_works_in_each_of_its_homes(arrives: int) -> None:
    ring = Ring()
    spread = TenantPolicy("demo", lifecycle="FAILURES", spread=8)
    ring.follow(spread)
    names = [f"s{number}" for number in range(40)]
    for number, name in enumerate(names):
        ring.ask(number, schedule_id=name, at=T0 + HOUR)
    ring.settle()
    ring.ask(arrives, action="BULK", schedule_id="job", request_id="r", bulk=job("CANCEL"))
    assert ring.settle() == ["ACCEPTED job"]
    told = Counter(each for driver in ring.drivers for each in finish(driver))
    assert told == Counter(f"CANCELLED {name}" for name in names)
    ring.ask(arrives, action="BULK_STOP", schedule_id="job", request_id="s")
    assert ring.settle() == ["CANCELLED job"]


def test_owners_that_go_by_different_policies_begin_a_job_once() -> None:
    ring = Ring()
    ring.follow(TenantPolicy("demo", lifecycle="FAILURES", spread=8))
    for number in range(40):
        ring.ask(number, schedule_id=f"s{number}", at=T0 + HOUR)
    ring.settle()
    ring.follow(TenantPolicy("demo", lifecycle="FAILURES", spread=9, former_spreads=(8,)), 1)
    ring.ask(1, action="BULK", schedule_id="job", request_id="r", bulk=job("PAUSE"))
    assert ring.settle() == ["ACCEPTED job"]
    told = Counter(each for driver in ring.drivers for each in finish(driver))
    assert set(told.values()) == {1}
    assert len(told) == 40


def test_a_job_goes_on_after_its_input_was_made_anew() -> None:
    """Sequences begin at 0 again; what was there before them is older all the same."""
    driver = with_schedules("a", "b", "c")
    begin(driver, "CANCEL")
    advance(driver, Budget(10, 1))
    made_anew = Driver(level=Level.FAILURES)
    store = ScheduleStore(made_anew.rows)
    moved = [(name, of_earlier_input(row)) for name, row in changelog_rows(store_of(driver))]
    fold(store, net_of(moved))
    manifest = manifest_after(None, None, 0, 2)
    store.commit(StoredState(0, T0, manifest))
    made_anew.start(made_anew.rows)
    made_anew.ask(schedule_id="new", at=T0 + HOUR)
    made_anew.step(T0)
    assert finish(made_anew) == ["CANCELLED b", "CANCELLED c"]
    begin(made_anew, "CANCEL", "second")
    made_anew.ask(schedule_id="newer", at=T0 + HOUR)
    made_anew.step(T0)
    assert finish(made_anew) == ["CANCELLED new"]


def store_of(driver: Driver) -> ScheduleStore:
    return ScheduleStore(driver.rows)


def test_a_job_of_a_later_release_waits_and_can_be_stopped() -> None:
    driver = with_schedules("a")
    begin(driver, "CANCEL")
    key = job_key("demo", "job")
    store = driver.engine._store
    store.note(key, encode_job(row(driver)._replace(spec='{"action": "FREEZE"}')))
    driver.end(T0)
    driver.start(driver.rows)
    assert advance(driver) == []
    assert row(driver).state == RUNNING
    driver.ask(action="BULK_STOP", schedule_id="job", request_id="r")
    assert driver.step(T0).outcomes == ["CANCELLED"]
    assert not driver.engine.jobs.under_way


def test_what_a_job_fires_counts_for_the_rate_of_its_tenant() -> None:
    driver = with_schedules(*(f"s{number:03}" for number in range(60)))
    driver.apply(max_fires_per_second=20)
    begin(driver, "TRIGGER")
    told = [len(advance(driver, now_ms=T0 + 1_000 + 100 * each)) for each in range(11)]
    assert told[1:] == [2] * 10
    assert advance(driver, now_ms=T0 + 2_000) == [], "all of the rate was used at this instant"
