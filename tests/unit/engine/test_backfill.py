"""A backfill fires each occurrence of a range of the past once, in however many steps.

T0 is when the job is asked for; the schedules fire every hour, and wait for T0 + 30 min.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from belfry.engine import backfill
from belfry.engine.job_counts import Budget
from belfry.schedules import backfill as past_range
from belfry.schedules.bulk import BulkSpec
from belfry.schedules.triggers.every import Every
from belfry.schedules.triggers.moving import MovingTrigger
from belfry.store import job_lookup
from belfry.store.job_lookup import wanted_by
from belfry.store.layout.jobs import DONE, RUNNING
from belfry.tenants.effective import Level
from belfry.wire.fired import rfc3339
from tests.unit.engine.driver import HOUR, T0, Driver
from tests.unit.engine.test_jobs import MUCH, advance, begin, finish, row

HALF: Final = HOUR // 2
HOURLY: Final[dict[str, Any]] = {
    "kind": "EVERY",
    "interval_ms": HOUR,
    "start_at": T0 - 1_000 * HOUR + HALF,
}


def with_hourly(*names: str, level: Level = Level.FAILURES, **fields: Any) -> Driver:
    driver = Driver(level=level)
    for name in names:
        driver.ask(schedule_id=name, **{**HOURLY, **fields})
    driver.step(T0)
    return driver


def spec(**said: Any) -> str:
    return BulkSpec(action="BACKFILL", per_second=10_000, **said).text()


def bulk(hours: int) -> str:
    return spec(range_from=T0 - hours * HOUR, range_until=T0)


def fill(driver: Driver, hours: int, **said: Any) -> list[str]:
    """Ask for the last so many hours."""
    span = {"range_from": T0 - hours * HOUR, "range_until": T0}
    return begin(driver, "BACKFILL", **{**span, **said})


def fired_by(driver: Driver, budget: Budget = MUCH, now_ms: int = T0 + 1_000) -> list[int]:
    """The scheduled instants of what one step fires, in hours before T0 + 30 min."""
    effects = driver.engine.advance_jobs(now_ms, budget)
    found = hours(effects.fired)
    if not effects.empty:
        driver.end(now_ms)
    return found


def hours(fired: Any) -> list[int]:
    hour = {rfc3339(T0 + HALF - each * HOUR): each for each in range(1_001)}
    return [hour[dict(headers)["belfry-scheduled-at"] or b""] for *_, headers in fired]


def test_each_occurrence_of_the_range_fires_once() -> None:
    driver = with_hourly("a")
    driver.ask(action="BULK", schedule_id="job", request_id="r", bulk=bulk(3))
    assert driver.step(T0, fire=False).outcomes == ["ACCEPTED"]
    effects = driver.engine.advance_jobs(T0 + 1_000, MUCH)
    instants = [dict(headers)["belfry-scheduled-at"] for *_, headers in effects.fired]
    assert instants == [rfc3339(T0 + HALF - each * HOUR) for each in (3, 2, 1)]
    for *_, headers in effects.fired:
        said = dict(headers)
        assert (said["belfry-backfill"], said["belfry-occurrence"]) == (b"job", b"-1")
    assert len(set(effects.fire_ids)) == 3
    assert effects.lateness["demo"] == [0, 0, 0]
    (told,) = effects.lifecycle
    assert (str(told.outcome), told.schedule_id, told.version) == ("TRIGGERED", "a", 1)
    assert told.reason is not None
    assert told.reason.startswith("bulk job job. 3 occurrences were fired, the last that of ")
    driver.end(T0 + 1_000)
    done = row(driver)
    assert (done.state, done.fired, done.done, done.amid) == (DONE, 3, 1, "")
    # Its own instants and their numbers stay.
    own = driver.step(T0 + HALF).effects.fired
    assert [dict(headers)["belfry-occurrence"] for *_, headers in own] == [b"0"]


def test_each_step_fires_what_its_budget_allows_and_the_next_goes_on_behind() -> None:
    driver = with_hourly("a", "b")
    fill(driver, 5)
    assert fired_by(driver, Budget(100, 3)) == [5, 4, 3]
    amid = row(driver)
    assert (amid.state, amid.cursor, amid.amid, amid.amid_fired) == (RUNNING, "", "demo/a", 3)
    assert fired_by(driver, Budget(100, 4)) == [2, 1, 5, 4]
    assert row(driver).cursor == "demo/a"
    assert fired_by(driver) == [3, 2, 1]
    done = row(driver)
    assert (done.state, done.fired, done.done, done.examined) == (DONE, 10, 2, 2)


@pytest.mark.parametrize("none", [Budget(0, 10), Budget(10, 0)])
def test_a_step_without_a_budget_leaves_a_job_where_it_is_amid_a_schedule(none: Budget) -> None:
    driver = with_hourly("a")
    fill(driver, 5)
    assert fired_by(driver, Budget(10, 2)) == [5, 4]
    assert fired_by(driver, none) == []
    assert fired_by(driver) == [3, 2, 1]


def test_a_step_that_is_rolled_back_is_done_again_with_the_same_ids() -> None:
    driver = with_hourly("a")
    fill(driver, 4)
    fired_by(driver, Budget(10, 1))
    before = row(driver)
    first = driver.engine.advance_jobs(T0 + 2_000, Budget(10, 2)).fire_ids.copy()
    driver.end(T0 + 2_000, commit=False)
    assert row(driver) == before
    again = driver.engine.advance_jobs(T0 + 2_000, Budget(10, 2)).fire_ids.copy()
    driver.end(T0 + 2_000)
    assert first == again
    assert fired_by(driver, now_ms=T0 + 3_000) == [1]


def test_a_new_owner_goes_on_where_the_last_one_stood() -> None:
    driver = with_hourly("a", "b")
    fill(driver, 3)
    assert fired_by(driver, Budget(10, 2)) == [3, 2]
    driver.start(driver.rows)
    assert fired_by(driver) == [1, 3, 2, 1]


def test_another_job_fires_again_under_other_ids_and_none_is_that_of_the_fire_in_its_time() -> None:
    driver = with_hourly("a", level=Level.ALL)
    ids = set(driver.step(T0 + HALF).effects.fire_ids)
    for name in ("one", "two"):
        span = {"range_from": T0, "range_until": T0 + HOUR}
        driver.ask(T0 + HOUR, action="BULK", schedule_id=name, bulk=spec(**span))
        driver.step(T0 + HOUR, fire=False)
        ids |= set(driver.engine.advance_jobs(T0 + HOUR, MUCH).fire_ids)
        driver.end(T0 + HOUR)
    assert len(ids) == 3


def test_what_a_schedule_waits_for_is_no_part_of_the_range() -> None:
    driver = with_hourly("late")
    driver.ask(action="PAUSE", schedule_id="late")
    driver.step(T0)
    span = {"range_from": T0 - HOUR, "range_until": T0 + 9 * HOUR}
    driver.ask(T0 + 3 * HOUR, action="BULK", schedule_id="job", bulk=spec(**span))
    driver.step(T0 + 3 * HOUR, fire=False)
    # The three since T0 wait for its pause to end.
    assert fired_by(driver, now_ms=T0 + 3 * HOUR) == [1]


@pytest.mark.parametrize("steps", [1, 2])
def test_what_fires_by_itself_amid_the_range_does_not_fire_twice(steps: int) -> None:
    """The schedule waits for six occurrences that are late, and its pause ends amid the job."""
    driver = Driver(level=Level.FAILURES)
    late = {**HOURLY, "misfire": "FIRE_ALL", "max_lateness_ms": 1_000}
    driver.ask(T0 - 6 * HOUR, schedule_id="a", **late)
    driver.ask(T0 - 6 * HOUR, schedule_id="a", action="PAUSE")
    driver.step(T0 - 6 * HOUR, fire=False)
    fill(driver, 12)
    found = [each for _ in range(steps) for each in fired_by(driver, Budget(10, 2))]
    driver.ask(T0 + 1_000, schedule_id="a", action="RESUME")
    driver.step(T0 + 1_000, fire=False)
    for later in range(8):
        found += hours(driver.step(T0 + 2_000 + later * 100, take=0).effects.fired)
    while driver.engine.jobs.under_way:
        found += fired_by(driver, Budget(10, 2), T0 + 5_000)
    assert sorted(found) == [*range(1, 13)]
    assert row(driver).fired == 6


def test_nothing_before_the_start_and_nothing_that_is_left_out_fires() -> None:
    driver = with_hourly("a", start_at=T0 + HALF - 3 * HOUR)
    driver.ask(schedule_id="b", **HOURLY, except_cron="30 22 * * *", timezone="UTC")
    driver.step(T0)
    fill(driver, 24)
    found = fired_by(driver)
    assert found[:3] == [3, 2, 1]
    assert len(found) == 3 + 23


def test_an_interval_without_a_start_keeps_its_rhythm_backwards() -> None:
    driver = with_hourly("a", start_at=None)
    driver.ask(action="BULK", schedule_id="job", bulk=bulk(2))
    driver.step(T0, fire=False)
    effects = driver.engine.advance_jobs(T0 + 1_000, MUCH)
    instants = [dict(headers)["belfry-scheduled-at"] for *_, headers in effects.fired]
    assert instants == [rfc3339(T0 - 2 * HOUR), rfc3339(T0 - HOUR)]


def test_what_fires_once_is_refused_and_what_has_no_occurrence_is_unchanged() -> None:
    driver = with_hourly("every")
    driver.ask(schedule_id="once", at=T0 + HOUR)
    driver.step(T0)
    fill(driver, 1, range_until=T0 - HOUR + 1)
    none, refused = advance(driver)
    assert (none.schedule_id, str(none.outcome), none.reason) == (
        *("every", "UNCHANGED", "bulk job job. The range holds no occurrence that is over"),
    )
    assert (refused.schedule_id, str(refused.outcome), refused.version) == ("once", "REJECTED", 1)
    assert refused.reason == (
        "bulk job job. It fires once, and waits for that: a range of the past is for what recurs."
    )
    done = row(driver)
    assert (done.unchanged, done.refused, done.refusals) == (1, 1, {"not_recurring": 1})


@pytest.mark.parametrize("change", ["CANCEL", "UPSERT", "PAUSE"])
def test_a_schedule_that_ends_or_is_defined_anew_amid_its_range_is_left_there(change: str) -> None:
    driver = with_hourly("a", "b")
    fill(driver, 3)
    assert fired_by(driver, Budget(10, 2)) == [3, 2]
    fields: dict[str, Any] = {**HOURLY, "payload": b"new"} if change == "UPSERT" else {}
    driver.ask(action=change, schedule_id="a", **fields)
    driver.step(T0, fire=False)
    if change == "PAUSE":
        assert finish(driver) == ["TRIGGERED a", "TRIGGERED b"]
        return
    left, filled = advance(driver)
    assert (str(left.outcome), left.schedule_id, str(filled.outcome)) == (
        *("REJECTED", "a", "TRIGGERED"),
    )
    assert left.reason == (
        "bulk job job. It ended, or was defined anew, amid the job: 2 occurrences were fired, the"
        " last that of 2027-01-15T06:30:00.000Z."
    )
    done = row(driver)
    assert (done.refusals, done.fired) == ({"schedule_changed": 1}, 5)


def test_a_range_of_too_many_is_refused_before_any_fires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "MOST_OCCURRENCES", 5)
    driver = with_hourly("a", "b")
    fill(driver, 3)
    (first, second) = advance(driver)
    assert (str(first.outcome), second.code) == ("TRIGGERED", "too_many_occurrences")
    assert "The range holds 3 occurrences beside the 3 of schedules before it" in (
        second.reason or ""
    )
    assert row(driver).fired == 3


def test_what_moves_is_counted_no_further_than_a_job_may_fire(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(past_range, "MOST_MOVED", 50)
    asked, after = 0, MovingTrigger.after_ms

    def counted(self: MovingTrigger, nominal_ms: int) -> int | None:
        nonlocal asked
        asked += 1
        return after(self, nominal_ms)

    driver = Driver(level=Level.FAILURES)
    every_day = json.dumps({"days": [], "weekend": ["TUE", "THU", "SAT", "SUN"], "source": ""})
    driver.ask(action="CALENDAR", schedule_id="de", days_off=every_day)
    for name in "abc":
        driver.ask(schedule_id=name, kind="CRON", cron="* * * * *", calendar="de",
                   on_holiday="PREVIOUS_BUSINESS_DAY")  # fmt: skip
    driver.step(T0, fire=False)
    driver.engine.advance_jobs(T0, MUCH)
    driver.end(T0)
    monkeypatch.setattr(MovingTrigger, "after_ms", counted)
    span = (T0 - 700 * 24 * HOUR, T0)
    # A page of a preview ends behind as many.
    monkeypatch.setattr(job_lookup, "MOST_MOVED", 50)
    wanted = wanted_by(
        b"demo", BulkSpec(action="BACKFILL", range_from=span[0], range_until=span[1])
    )
    found = job_lookup.past_preview(driver.rows, wanted, span, None)
    assert (found.page.matched, found.page.sample, found.occurrences > 50) == (1, ["a"], True)
    assert found.page.after is not None
    after_it = job_lookup.past_preview(driver.rows, wanted, span, found.page.after)
    assert after_it.page.sample == ["b"]
    begin(driver, "BACKFILL", range_from=span[0], range_until=span[1])
    asked = 0
    # What is counted takes from the budget, so each of them has a step of its own.
    for name in "abc":
        (told,) = advance(driver, budget=Budget(100, 40))
        assert (told.schedule_id, told.code) == (name, "too_many_occurrences")
        assert "at least 51 occurrences, and a job fires at most 100000, and 50 of a" in (
            told.reason or ""
        )
    assert asked < 3 * 60


@pytest.mark.parametrize(
    "rule",
    [
        {"rrule": "FREQ=YEARLY;BYMONTH=1;BYDAY=MO;BYSETPOS=1"},
        {"rrule": "RRULE:FREQ=YEARLY;BYMONTH=1 EXDATE:20200101T000000"},
        {"rrule": "FREQ=YEARLY;BYMONTH=1", "except_cron": "* 0 * * SUN"},
    ],
)
def test_days_that_are_counted_take_from_the_budget(
    monkeypatch: pytest.MonkeyPatch, rule: dict[str, Any]
) -> None:
    """Decades of a rule whose days differ take as long to count as many fires."""
    span = (T0 - 700 * 24 * HOUR, T0)
    driver = Driver(level=Level.FAILURES)
    for name in "abc":
        driver.ask(schedule_id=name, kind="RRULE", start_at=span[0], **rule)
    driver.step(T0)
    monkeypatch.setattr(job_lookup, "MOST_MOVED", 50)
    wanted = wanted_by(
        b"demo", BulkSpec(action="BACKFILL", range_from=span[0], range_until=span[1])
    )
    found = job_lookup.past_preview(driver.rows, wanted, span, None)
    assert (found.page.sample, 0 < found.occurrences < 5) == (["a"], True)
    begin(driver, "BACKFILL", range_from=span[0], range_until=span[1])
    for name in "abc":
        (told,) = advance(driver, budget=Budget(100, 40))
        assert (told.schedule_id, str(told.outcome)) == (name, "TRIGGERED")


def test_a_range_that_takes_too_long_to_count_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other minute is left out, of an interval whose days are no two alike."""
    latest, asked = Every.latest_ms, 0

    def counted(self: Every, after_ms: int, until_ms: int) -> tuple[int, int]:
        nonlocal asked
        asked += 1
        return latest(self, after_ms, until_ms)

    monkeypatch.setattr(Every, "latest_ms", counted)
    rare: dict[str, Any] = {
        "interval_ms": 11 * 24 * HOUR + 7_777,
        "start_at": T0 - 5_000 * 24 * HOUR,
    }
    driver = with_hourly("a", **rare, except_cron="1-59/2 * * * *")
    span = (T0 - 4_900 * 24 * HOUR, T0)
    wanted = wanted_by(
        b"demo", BulkSpec(action="BACKFILL", range_from=span[0], range_until=span[1])
    )
    found = job_lookup.past_preview(driver.rows, wanted, span, None)
    assert (found.page.sample, found.occurrences > 100_000) == (["a"], True)
    begin(driver, "BACKFILL", range_from=span[0], range_until=span[1])
    (told,) = advance(driver)
    assert told.code == "too_many_occurrences"
    assert "ask for a shorter range" in (told.reason or "")
    assert asked < 100
    # A year is counted.
    fill(driver, 365 * 24, name="year")
    (told,) = advance(driver)
    assert str(told.outcome) == "TRIGGERED"


def test_it_keeps_to_its_rate_and_to_that_of_its_tenant() -> None:
    driver = with_hourly("a")
    driver.apply(max_fires_per_second=20)
    fill(driver, 900)
    fired = [len(fired_by(driver, now_ms=T0 + 1_000 + 100 * each)) for each in range(11)]
    assert fired[1:] == [2] * 10
    driver.apply(max_fires_per_second=None)
    fired = [len(fired_by(driver, Budget(100, 7), T0 + 60_000 + each)) for each in range(3)]
    assert fired == [7] * 3


def test_it_waits_while_nothing_of_its_tenant_fires() -> None:
    driver = with_hourly("a")
    fill(driver, 2)
    driver.apply(paused=True)
    assert fired_by(driver) == []
    driver.apply(paused=False)
    assert fired_by(driver) == [2, 1]


def test_one_schedule_may_be_named() -> None:
    driver = with_hourly("a", "a/1", "b")
    fill(driver, 1, schedule_id="a")
    assert finish(driver) == ["TRIGGERED a"]


def test_each_fire_is_told_of_where_the_tenant_wants_it() -> None:
    driver = with_hourly("a", level=Level.ALL)
    fill(driver, 2)
    told = advance(driver)
    assert [(str(each.outcome), each.code) for each in told] == [
        *[("FIRED", "backfill")] * 2,
        ("TRIGGERED", None),
    ]
    last = "2027-01-15T07:30:00.000Z"
    assert told[1].reason == f"bulk job job: the occurrence of {last}"
    assert told[2].reason == f"bulk job job. 2 occurrences were fired, the last that of {last}"
    fill(driver, 1, name="one")
    assert advance(driver)[-1].reason == (
        f"bulk job one. 1 occurrence was fired, the last that of {last}"
    )
