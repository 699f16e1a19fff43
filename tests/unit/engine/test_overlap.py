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
