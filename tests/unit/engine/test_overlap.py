"""Recurring schedules that are acknowledged: what becomes of what is due meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.outcomes import Outcome
from tests.unit.engine.acknowledging import WAIT, ack, fires, ids, rebuilt, serial
from tests.unit.engine.driver import T0, Driver, Shot


def every(driver: Driver, overlap: str | None, **fields: Any) -> None:
    given: dict[str, Any] = {"interval_ms": 1_000, "ack_timeout_ms": WAIT, **fields}
    driver.ask(kind="EVERY", overlap=overlap, **given)
    driver.step(T0)


def occurrences(shots: list[Shot]) -> list[tuple[str, bytes | None]]:
    """Seconds of the nominal instants, and the numbers of the fires."""
    seconds = [(shot.header("belfry-scheduled-at") or b"")[17:19].decode() for shot in shots]
    numbers = [shot.header("belfry-occurrence") for shot in shots]
    return list(zip(seconds, numbers, strict=True))


@pytest.mark.parametrize("overlap", [None, "ALLOW"])
def test_allow_waits_for_nothing(overlap: str | None) -> None:
    driver = Driver()
    every(driver, overlap)
    shots = [shot for second in range(1, 4) for shot in fires(driver, T0 + second * 1_000)]
    assert occurrences(shots) == [("01", b"0"), ("02", b"1"), ("03", b"2")]
    assert ack(driver, shots[0], T0 + 3_000).outcomes == ["UNCHANGED"]


def test_skip_gives_up_what_is_due_meanwhile() -> None:
    driver = Driver()
    every(driver, "SKIP")
    (first,) = fires(driver, T0 + 1_000)
    for second in (2, 3):
        step = driver.step(T0 + second * 1_000, take=0)
        (missed,) = step.effects.lifecycle
        assert (step.shots, str(missed.outcome), missed.code) == ([], "MISSED", "overlap")
    ack(driver, first, T0 + 3_500)
    assert occurrences(fires(driver, T0 + 4_000)) == [("04", b"1")]


def test_queue_one_fires_the_latest_when_the_acknowledgement_comes() -> None:
    driver = Driver()
    every(driver, "QUEUE_ONE")
    (first,) = fires(driver, T0 + 1_000)
    for second in (2, 3, 4):
        assert fires(driver, T0 + second * 1_000) == []
    ack(driver, first, T0 + 4_500)
    step = driver.step(T0 + 4_500, take=0)
    assert occurrences(step.shots) == [("04", b"1")]
    assert step.shots[0].header("belfry-missed") == b"2"
    assert step.effects.outcomes[Outcome.MISSED] == 2
    assert fires(driver, T0 + 5_000) == []
    ack(driver, step.shots[0], T0 + 5_500)
    assert occurrences(fires(driver, T0 + 5_500)) == [("05", b"2")]


@pytest.mark.parametrize("overlap", ["SKIP", "QUEUE_ONE"])
def test_the_time_out_lets_the_next_one_fire(overlap: str) -> None:
    driver = Driver()
    every(driver, overlap, ack_timeout_ms=2_500)
    shots = [
        (half, shot) for half in range(2, 9) for shot in fires(driver, T0 + half * 500)
    ]  # fmt: skip
    fired = [(half, *occurrences([shot])[0]) for half, shot in shots]
    expected = {"SKIP": (8, "04", b"1"), "QUEUE_ONE": (7, "03", b"1")}
    assert fired == [(2, "01", b"0"), expected[overlap]]


@pytest.mark.parametrize(
    ("misfire", "expected"),
    [("FIRE_ONCE", [("04", b"1")]), ("FIRE_ALL", [("04", b"1")]), ("SKIP", [])],
)
def test_what_was_queued_for_too_long_is_for_the_misfire_policy(
    misfire: str, expected: list[tuple[str, bytes]]
) -> None:
    driver = Driver()
    every(driver, "QUEUE_ONE", misfire=misfire, max_lateness_ms=100)
    (first,) = fires(driver, T0 + 1_000)
    assert fires(driver, T0 + 2_000) == []
    ack(driver, first, T0 + 4_500)
    assert occurrences(fires(driver, T0 + 4_500)) == expected


def test_an_owner_that_begins_anew_keeps_the_queue() -> None:
    driver = Driver()
    every(driver, "QUEUE_ONE")
    (first,) = fires(driver, T0 + 1_000)
    assert fires(driver, T0 + 2_000) == []
    rebuilt(driver, T0 + 2_000)
    assert fires(driver, T0 + 2_000) == []
    ack(driver, first, T0 + 2_500)
    assert occurrences(fires(driver, T0 + 2_500)) == [("02", b"1")]


def test_a_late_run_behind_a_gate_waits_for_its_place_in_the_group() -> None:
    driver = Driver()
    serial(driver, "first", T0 + 500, ack_timeout_ms=10**7)
    every(driver, None, interval_ms=60_000, group="g", serial=True)
    for second in (90, 150, 595, 601):
        serial(driver, f"b{second}", T0 + second * 1_000)
    driver.step(T0)
    (shot,) = fires(driver, T0 + 1_000)
    now_ms = T0 + 640_000
    left = []
    for _ in range(6):
        assert fires(driver, now_ms - 1) == []
        ack(driver, shot, now_ms)
        (shot,) = fires(driver, now_ms)
        left.append(shot.id)
    assert left == ["b90", "b150", "a", "b595", "a", "b601"]


def test_a_schedule_in_a_serial_group_may_skip_as_well() -> None:
    driver = Driver()
    every(driver, "SKIP", group="g", serial=True)
    serial(driver, "b", T0 + 1_001)
    driver.step(T0)
    (first,) = fires(driver, T0 + 2_000)
    ack(driver, first, T0 + 2_100)
    assert ids(fires(driver, T0 + 2_100)) == ["b"]


def test_queue_all_fires_each_when_the_acknowledgements_come() -> None:
    driver = Driver()
    every(driver, "QUEUE_ALL", max_lateness_ms=0)
    (shot,) = fires(driver, T0 + 1_000)
    for second in (2, 3, 4):
        assert fires(driver, T0 + second * 1_000) == []
    rebuilt(driver, T0 + 4_100)
    for at, number in (("02", b"1"), ("03", b"2"), ("04", b"3")):
        assert fires(driver, T0 + 4_500) == [], "one at once"
        ack(driver, shot, T0 + 4_500)
        (shot,) = fires(driver, T0 + 4_500)
        assert occurrences([shot]) == [(at, number)]
    assert fires(driver, T0 + 5_000) == []


def test_queue_all_gives_up_what_its_tenant_does_not_look_back_to() -> None:
    driver = Driver()
    every(driver, "QUEUE_ALL")
    driver.apply(look_back_ms=60_000)
    (shot,) = fires(driver, T0 + 1_000)
    assert fires(driver, T0 + 2_000) == []
    ack(driver, shot, T0 + 200_000)
    step = driver.step(T0 + 200_000, take=0)
    assert step.effects.outcomes[Outcome.MISSED] > 100
    assert len(step.shots) == 1


def told(driver: Driver, now_ms: int) -> tuple[list[Shot], list[tuple[str, str | None, str]]]:
    """Fires of a step, and what it tells of other fires."""
    step = driver.step(now_ms, take=0)
    others = [each for each in step.effects.lifecycle if each.outcome in ("FAILED", "UPDATED")]
    return step.shots, [(str(e.outcome), e.code, e.fire_id or "") for e in others]


def fire_id(shot: Shot) -> str:
    return (shot.header("belfry-fire-id") or b"").decode()


def test_terminate_other_fires_and_awaits_the_last_one_no_more() -> None:
    driver = Driver()
    every(driver, "TERMINATE_OTHER")
    (first,) = fires(driver, T0 + 1_000)
    assert driver.step(T0 + 2_000, commit=False).shots, "rolled back"
    shots, others = told(driver, T0 + 2_000)
    assert occurrences(shots) == [("02", b"1")]
    assert others == [("FAILED", "terminated", fire_id(first))]
    assert ack(driver, first, T0 + 2_100).effects.lifecycle[-1].code == "not_awaited"
    assert ack(driver, shots[0], T0 + 2_200).outcomes == ["UPDATED"]
    shots, others = told(driver, T0 + 3_000)
    assert (occurrences(shots), others) == ([("03", b"2")], [])


def test_terminate_other_ends_nothing_for_what_is_given_up() -> None:
    driver = Driver()
    every(driver, "TERMINATE_OTHER", misfire="SKIP", max_lateness_ms=100)
    (first,) = fires(driver, T0 + 1_000)
    shots, others = told(driver, T0 + 2_900)
    assert (shots, others) == ([], [])
    assert ack(driver, first, T0 + 2_950).outcomes == ["UPDATED"]


def test_cancel_other_asks_once_and_waits_for_the_acknowledgement() -> None:
    driver = Driver()
    every(driver, "CANCEL_OTHER")
    (first,) = fires(driver, T0 + 1_000)
    assert told(driver, T0 + 2_000) == ([], [("UPDATED", "cancel_other", fire_id(first))])
    rebuilt(driver, T0 + 2_500)
    for now_ms in (T0 + 2_500, T0 + 3_000, T0 + 4_000):
        assert told(driver, now_ms) == ([], []), "it was asked before"
    ack(driver, first, T0 + 4_500)
    (second,), others = told(driver, T0 + 4_500)
    assert occurrences([second]) == [("04", b"1")]
    assert others == []
    assert told(driver, T0 + 5_000) == ([], [("UPDATED", "cancel_other", fire_id(second))])


@pytest.mark.parametrize(
    "fields",
    [
        {"overlap": "QUEUE_ALL", "misfire": "SKIP"},
        {"overlap": "QUEUE_ALL", "misfire": "FIRE_ONCE"},
        {"overlap": "CANCEL_OTHER", "group": "g", "serial": True},
        {"overlap": "TERMINATE_OTHER", "group": "g", "concurrency": 2},
    ],
)
def test_what_contradicts_a_policy_is_refused(fields: dict[str, Any]) -> None:
    driver = Driver()
    driver.ask(kind="EVERY", interval_ms=1_000, **fields)
    assert driver.step(T0).codes == ["bad_overlap"]


@pytest.mark.parametrize("isolated", [False, True])
def test_what_a_terminated_fire_held_of_a_group_keeps_its_order(isolated: bool) -> None:
    """The fire locked its group, and the schedule has left that before it ends its last fire."""
    driver = Driver()
    if isolated:
        driver.engine._parts.waiting.isolate(b"demo")
    every(driver, "SKIP", group="g", serial=True, ack_timeout_ms=10_000_000)
    assert ids(fires(driver, T0 + 1_000)) == ["a"]
    driver.ask(kind="EVERY", interval_ms=1_000, overlap="TERMINATE_OTHER", ack_timeout_ms=WAIT)
    driver.ask(schedule_id="b", at=T0 + 1_500, group="g")
    driver.ask(schedule_id="c", at=T0 + 2_001, group="g")
    driver.step(T0 + 1_100, fire=False)
    assert ids(fires(driver, T0 + 1_600)) == []
    found = [each for _ in range(4) for each in ids(fires(driver, T0 + 2_005))]
    assert found == ["a", "b", "c"]


def test_what_ends_others_keeps_to_the_rate_when_it_catches_up() -> None:
    """Nothing holds it back but the rate, as with ALLOW: it fires whatever is awaited."""
    counts = []
    for overlap in ("ALLOW", "TERMINATE_OTHER"):
        driver = Driver()
        for number in range(20):
            every(driver, overlap, schedule_id=f"s{number}", misfire="FIRE_ALL",
                  max_lateness_ms=100)  # fmt: skip
        now_ms = T0 + 3_600_000
        counts.append(sum(len(driver.step(now_ms, 1_000).shots) for _ in range(10)))
    assert counts[1] <= counts[0] + 2_000
