"""Late occurrences: which fire, which are given up, and that all of them are counted."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.firing.rates import PER_SECOND
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.records import ENDED_COMPLETED, ENDED_MISSED, decode_marker
from belfry.tenants.effective import Delivery, Level
from belfry.wire.accepted import whole
from belfry.wire.fired import decode_fired
from belfry.wire.lifecycle import LifecycleEvent
from tests.unit.engine.driver import HOUR, T0, Driver, Shot, Step

NAME = b"demo/a"
SECOND = 1_000
MINUTE = 60_000


def minutely(**fields: Any) -> Driver:
    """A partition with a schedule `a`, due at T0 + 1 min, + 2 min …"""
    driver = Driver()
    driver.ask(kind="EVERY", interval_ms=MINUTE, **fields)
    driver.step(T0)
    return driver


def all_shots(driver: Driver, now_ms: int) -> list[Shot]:
    """Step until nothing more is due at this instant."""
    shots: list[Shot] = []
    while (due_ms := driver.engine.next_due_ms()) is not None and due_ms <= now_ms:
        shots += driver.step(now_ms, take=0).shots
    return shots


def minutes(shots: list[Shot]) -> list[int]:
    """Nominal instants, in minutes after T0 (a full hour)."""
    return [int((shot.header("belfry-scheduled-at") or b"")[14:16]) for shot in shots]


def fired(step: Step) -> list[LifecycleEvent]:
    """What is told of its fires."""
    return [whole(each) for each in step.effects.lifecycle if each.outcome is Outcome.FIRED]


def missed(driver: Driver, now_ms: int) -> int:
    """Occurrences given up by a step at this instant."""
    return driver.step(now_ms, take=0).effects.outcomes[Outcome.MISSED]


@pytest.mark.parametrize(
    ("policy", "fired", "given_up"),
    [
        # due at     1 2 3 4 5 6 7 8 9 10 min; back at 10 min 30 s, a minute late is in time
        (None, [9, 10], 8),
        ("FIRE_ONCE", [9, 10], 8),
        ("SKIP", [10], 9),
    ],
)
def test_after_an_outage(policy: str | None, fired: list[int], given_up: int) -> None:
    driver = minutely(misfire=policy)
    now_ms = T0 + 10 * MINUTE + 30 * SECOND
    step = driver.step(now_ms, take=0)
    assert minutes(step.shots) == fired
    assert step.effects.outcomes[Outcome.MISSED] == given_up
    assert driver.engine.next_due_ms() == T0 + 11 * MINUTE
    assert driver.engine.pending == 1


def test_fire_once_says_for_how_many_it_stands() -> None:
    driver = Driver(delivery=Delivery.ENVELOPE)
    driver.ask(kind="EVERY", interval_ms=MINUTE)
    driver.step(T0)
    first, second = driver.step(T0 + 10 * MINUTE + 30 * SECOND, take=0).shots
    events = [decode_fired(shot.value or b"") for shot in (first, second)]
    assert [(each.occurrence, each.missed) for each in events] == [(0, 8), (1, 0)]
    assert first.header("belfry-missed") == b"8"
    assert "belfry-missed" not in dict(second.headers)


def test_fire_all_fires_each_of_them_in_order() -> None:
    driver = minutely(misfire="FIRE_ALL")
    now_ms = T0 + 10 * MINUTE + 30 * SECOND
    shots = all_shots(driver, now_ms) + all_shots(driver, now_ms + 50)
    assert minutes(shots) == list(range(1, 11))
    assert [shot.header("belfry-occurrence") for shot in shots] == [b"%d" % n for n in range(10)]
    assert driver.engine.next_due_ms() == T0 + 11 * MINUTE
    assert driver.engine.pending == 1


def test_catching_up_has_a_rate_and_goes_on_with_it() -> None:
    driver = Driver()
    driver.ask(kind="EVERY", interval_ms=SECOND, misfire="FIRE_ALL")
    driver.step(T0)
    now_ms, fired = T0 + 2 * HOUR, 0
    driver.step(now_ms, take=0)
    for tick in range(1, 101):
        fired += len(driver.step(now_ms + 10 * tick, take=0).shots)
    assert fired == pytest.approx(PER_SECOND, rel=0.2)
    for tick in range(101, 401):
        fired += len(driver.step(now_ms + 10 * tick, take=0).shots)
    assert fired == 7_204


def test_catching_up_yields_to_what_is_live() -> None:
    driver = Driver()
    driver.ask(schedule_id="late", kind="EVERY", interval_ms=SECOND, misfire="FIRE_ALL")
    for number in range(300):
        driver.ask(schedule_id=f"live{number}", at=T0 + 2 * HOUR + 500)
    driver.step(T0)
    driver.step(T0 + 2 * HOUR, take=0)
    assert driver.engine.pending == 301
    ids = driver.step(T0 + 2 * HOUR + 500, at_most=320, take=0).ids
    assert ids[:300] == [f"live{number}" for number in range(300)]
    assert 0 < ids.count("late") <= 20


def test_fire_all_of_a_group_keeps_the_order_of_the_group() -> None:
    driver = Driver()
    driver.ask(kind="EVERY", interval_ms=MINUTE, misfire="FIRE_ALL", group="g", max_fires=5)
    driver.ask(schedule_id="b", at=T0 + 150 * SECOND, group="g")
    driver.step(T0)
    assert driver.run(T0 + HOUR) == ["a", "a", "b", "a", "a", "a"]


def test_a_plain_one_of_the_group_lets_the_late_ones_pass() -> None:
    # The plain one lies in the same chunk, and its tenant has fired a plain one before.
    driver = Driver(Level.FAILURES)
    driver.ask(schedule_id="first", at=T0 + 1)
    driver.ask(kind="EVERY", interval_ms=10, group="g", start_at=T0 + 10, max_fires=3)
    driver.ask(schedule_id="b", at=T0 + 25, group="g")
    driver.step(T0)
    assert driver.run(T0 + 50) == ["first", "a", "a", "b", "a"]


@pytest.mark.parametrize("jitter_ms", [0, 45 * SECOND])
@pytest.mark.parametrize("at_most", [1, 2, 100])
def test_one_record_for_a_late_run_keeps_its_place_in_the_group(
    at_most: int, jitter_ms: int
) -> None:
    """What the group has pending before the last of the run comes out before it."""
    driver = minutely(group="g", jitter_ms=jitter_ms)
    for second in range(30, 600, 30):
        driver.ask(schedule_id=f"b{second:03}", at=T0 + second * SECOND, group="g")
    driver.step(T0)
    now_ms = T0 + 10 * MINUTE
    told: list[LifecycleEvent] = []
    missed_of: list[str] = []
    while (due_ms := driver.engine.next_due_ms()) is not None and due_ms <= now_ms:
        step = driver.step(now_ms, at_most, take=0)
        told += fired(step)
        missed_of += [s.id for s in step.shots if "belfry-missed" in dict(s.headers)]
        now_ms += 5
    dues = [each.due_at or 0 for each in told]
    assert dues == sorted(dues)
    assert missed_of == ["a"]
    assert [each.schedule_id for each in told].count("a") >= 2


def test_a_late_run_that_grows_while_it_waits_leaves_at_the_place_it_had() -> None:
    driver = Driver()
    driver.ask(kind="EVERY", interval_ms=2, max_lateness_ms=0, group="g")
    for number in range(40):
        driver.ask(schedule_id=f"b{number:02}", at=T0 + 2 * number + 1, group="g")
    driver.step(T0)
    now_ms = T0 + 100
    told: list[LifecycleEvent] = []
    while "b39" not in {each.schedule_id for each in told}:
        assert now_ms < T0 + 2_000
        step = driver.step(now_ms, at_most=2, take=0)
        told += fired(step)
        now_ms += 3
    for _ in range(20):
        step = driver.step(now_ms, at_most=2, take=0)
        told += fired(step)
        now_ms += 3
    dues = [each.due_at or 0 for each in told]
    assert dues == sorted(dues)
    assert [each.schedule_id for each in told].count("a") > 2


def test_fire_all_looks_back_so_far_and_no_further() -> None:
    driver = minutely(misfire="FIRE_ALL")
    driver.apply(look_back_ms=5 * MINUTE)
    now_ms = T0 + 10 * MINUTE + 30 * SECOND
    assert missed(driver, now_ms) == 5
    assert minutes(all_shots(driver, now_ms + 50)) == [6, 7, 8, 9, 10]


@pytest.mark.parametrize(("policy", "fires"), [("FIRE_ONCE", 1), ("FIRE_ALL", 5), ("SKIP", 0)])
def test_a_pause_counts_as_late(policy: str, fires: int) -> None:
    driver = minutely(misfire=policy)
    driver.ask(action="PAUSE")
    driver.step(T0 + SECOND)
    driver.ask(action="RESUME")
    now_ms = T0 + 5 * MINUTE + 59 * SECOND
    driver.apply(misfire="FIRE_ONCE")
    assert driver.step(now_ms).outcomes == ["RESUMED"]
    shots = all_shots(driver, now_ms) + all_shots(driver, now_ms + 50)
    assert minutes(shots)[-1] == 5
    assert len(shots) == fires + (policy != "FIRE_ALL")


def test_a_stopped_tenant_goes_on_by_each_schedules_policy() -> None:
    driver = Driver()
    for policy in ("FIRE_ONCE", "FIRE_ALL", "SKIP"):
        driver.ask(schedule_id=policy, kind="EVERY", interval_ms=MINUTE, misfire=policy)
    driver.ask(schedule_id="single", at=T0 + MINUTE)
    driver.step(T0)
    driver.apply(paused=True)
    assert all_shots(driver, T0 + 5 * MINUTE) == []
    driver.apply(paused=False)
    now_ms = T0 + 10 * MINUTE + 30 * SECOND
    ids = [shot.id for shot in all_shots(driver, now_ms) + all_shots(driver, now_ms + 50)]
    assert {each: ids.count(each) for each in set(ids)} == {
        "FIRE_ONCE": 2, "FIRE_ALL": 10, "SKIP": 1, "single": 1,
    }  # fmt: skip
    assert driver.engine.pending == 3


@pytest.mark.parametrize(
    ("fields", "tenants", "fires"),
    [
        ({}, None, True),
        ({"max_lateness_ms": 600_000}, None, True),
        ({"max_lateness_ms": 599_999}, None, False),
        ({"max_lateness_ms": 1, "misfire": "FIRE_ONCE"}, None, True),
        ({"max_lateness_ms": 1, "misfire": "FIRE_ALL"}, None, True),
        ({"max_lateness_ms": 1, "misfire": "SKIP"}, "FIRE_ONCE", False),
        ({"max_lateness_ms": 1}, "FIRE_ONCE", True),
        ({"misfire": "SKIP"}, None, True),
    ],
)
@pytest.mark.parametrize("request_late", [False, True])
def test_one_shots_that_are_late(
    fields: dict[str, Any], tenants: str | None, fires: bool, request_late: bool
) -> None:
    driver = Driver()
    driver.apply(misfire=tenants)
    now_ms = T0 + 10 * MINUTE
    if request_late:
        driver.engine.fire_due(now_ms, 1)
    driver.ask(at=T0, **fields)
    driver.step(now_ms)
    step = driver.step(now_ms, take=0)
    assert bool(step.shots) == fires
    assert step.effects.outcomes[Outcome.MISSED] == (not fires)
    assert driver.engine.pending == 0
    if not fires:
        marker = decode_marker(step.effects.rows[NAME] or b"")
        assert marker.how == ENDED_MISSED
        driver.ask(action="CANCEL")
        (told,) = driver.step(now_ms).effects.lifecycle
        assert (str(told.outcome), told.code) == ("TOO_LATE", "missed")


def test_what_skips_its_last_is_over() -> None:
    driver = minutely(misfire="SKIP", end_at=T0 + 3 * MINUTE)
    step = driver.step(T0 + HOUR, take=0)
    assert step.shots == []
    assert step.effects.outcomes[Outcome.MISSED] == 3
    assert step.effects.outcomes[Outcome.COMPLETED] == 1
    assert decode_marker(step.effects.rows[NAME] or b"").how == ENDED_COMPLETED


def test_what_several_schedules_missed_is_added_up() -> None:
    driver = minutely(misfire="SKIP", end_at=T0 + 3 * MINUTE)
    driver.ask(schedule_id="b", kind="EVERY", interval_ms=MINUTE, misfire="SKIP",
               end_at=T0 + 2 * MINUTE)  # fmt: skip
    driver.step(T0, fire=False)
    outcomes = driver.step(T0 + HOUR, take=0).effects.outcomes
    assert (outcomes[Outcome.MISSED], outcomes[Outcome.COMPLETED]) == (3 + 2, 2)


def test_what_is_given_up_is_no_fire_of_max_fires() -> None:
    driver = minutely(max_fires=3)
    shots = driver.step(T0 + 10 * MINUTE + 30 * SECOND, take=0).shots
    assert [shot.header("belfry-occurrence") for shot in shots] == [b"0", b"1"]
    assert driver.run(T0 + 11 * MINUTE) == ["a"]
    assert driver.engine.pending == 0


@pytest.mark.parametrize("level", Level)
def test_the_missed_are_told_of_by_level(level: Level) -> None:
    driver = Driver(level)
    driver.ask(kind="EVERY", interval_ms=MINUTE, misfire="SKIP")
    driver.step(T0)
    (told,) = [
        each
        for each in driver.step(T0 + 10 * MINUTE + 30 * SECOND, take=0).effects.lifecycle
        if each.outcome is Outcome.MISSED
    ]
    assert told.code == "late"
    assert told.reason == (
        "9 occurrences did not fire, from 2027-01-15T08:01:00.000Z to 2027-01-15T08:09:00.000Z"
    )


def test_a_year_of_missed_seconds_takes_no_longer_than_one() -> None:
    driver = Driver()
    driver.ask(kind="EVERY", interval_ms=SECOND)
    driver.step(T0)
    year_s = 366 * 86_400
    step = driver.step(T0 + year_s * SECOND, take=0)
    assert step.effects.outcomes[Outcome.MISSED] == year_s - 62
    assert driver.engine.next_due_ms() == T0 + (year_s + 1) * SECOND


def test_jitter_near_the_limit_is_judged_by_each_due_instant() -> None:
    driver = Driver()
    driver.ask(kind="EVERY", interval_ms=SECOND, jitter_ms=5 * SECOND, misfire="SKIP")
    driver.step(T0)
    now_ms = T0 + 10 * MINUTE
    fired = all_shots(driver, now_ms)
    assert fired
    while (due_ms := driver.engine.next_due_ms()) is not None and due_ms <= now_ms + 20 * SECOND:
        fired += driver.step(due_ms, take=0).shots
    nominal = [shot.header("belfry-scheduled-at") for shot in fired]
    assert len(set(nominal)) == len(nominal)
    assert nominal == sorted(nominal, key=lambda each: each or b"")
