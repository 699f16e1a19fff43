"""How the fires of what recurs went: told at every lifecycle level, by the row of the schedule."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.options import EngineOptions
from belfry.schedules.outcomes import Outcome
from belfry.store.last_fires import FireCounts, counts_of_record
from belfry.store.layout.kept_fires import MOST_KEPT, packed_fire
from belfry.store.layout.pending import decode_pending, encode_pending
from belfry.store.layout.pending_bytes import (
    FLAGS,
    KEPT_FIRES,
    TALLY,
    has_rule,
    held,
    last_fires,
    next_record,
    same_definition,
    tallied,
    with_flags,
    without_fires,
)
from belfry.tenants.effective import Level
from tests.compatibility.rows import PENDING
from tests.unit.engine.acknowledging import rebuilt
from tests.unit.engine.driver import HOUR, T0, Driver

NAME = b"demo/a"


def row_of(driver: Driver) -> bytes:
    return dict(driver.changelog)[NAME] or b""


def counts(driver: Driver) -> FireCounts | None:
    return counts_of_record(row_of(driver))


def hourly(**fields: Any) -> Driver:
    driver = Driver(level=Level.FAILURES)
    driver.ask(kind="EVERY", interval_ms=HOUR, **fields)
    driver.step(T0)
    return driver


def fire_at(driver: Driver, number: int, late_ms: int = 0) -> int:
    return len(driver.step(T0 + number * HOUR + late_ms).shots)


def test_what_is_on_time_is_counted_without_a_byte_more() -> None:
    driver = hourly()
    assert counts(driver) == FireCounts(0, 0, 0, 0)
    for number in range(1, 13):
        fire_at(driver, number, 1_000)
    found = counts(driver)
    assert found == FireCounts(12, 0, 0, 0)
    assert (found.success_rate, found.share_within_1s) == (1.0, 1.0)
    assert not row_of(driver)[3] & TALLY
    late = hourly()
    for number in range(1, 13):
        fire_at(late, number, 1_001 if number == 12 else 0)
    assert len(row_of(late)) == len(row_of(driver)) + 16


def test_late_fires_and_occurrences_that_did_not_fire_are_counted() -> None:
    driver = hourly()
    fire_at(driver, 1)
    fire_at(driver, 2, late_ms=4_200)
    fire_at(driver, 3, late_ms=1_001)
    # One fires for the four before it.
    fire_at(driver, 8, late_ms=70_000)
    fire_at(driver, 9)
    found = counts(driver)
    assert found == FireCounts(fired=5, over_1s=3, missed=4, latest_ms=70_000)
    assert (found.success_rate, found.share_within_1s) == (0.555556, 0.4)
    assert [each.late_ms for each in last_fires(row_of(driver))] == [0, 4_200, 1_001, 70_000, 0]
    before = row_of(driver)
    rebuilt(driver, T0 + 9 * HOUR)
    fire_at(driver, 10)
    assert counts(driver) == FireCounts(6, 3, 4, 70_000)
    assert decode_pending(before).following(0, 0, 0) == decode_pending(row_of(driver)).following(
        0, 0, 0
    )


def test_a_fire_in_time_that_stands_for_others_counts_them() -> None:
    driver = Driver(level=Level.FAILURES)
    driver.ask(kind="EVERY", interval_ms=1_000, misfire="FIRE_ONCE", max_lateness_ms=0)
    driver.step(T0)
    assert len(driver.step(T0 + 3_005).shots) == 1
    assert counts(driver) == FireCounts(fired=1, over_1s=0, missed=2, latest_ms=0)


def test_occurrences_that_are_given_up_are_counted_before_any_fires() -> None:
    driver = hourly(misfire="SKIP", max_lateness_ms=0)
    assert fire_at(driver, 3, late_ms=5) == 0
    assert counts(driver) == FireCounts(0, 0, 3, 0)
    assert last_fires(row_of(driver)) == []
    assert fire_at(driver, 4) == 1
    assert (counts(driver), len(last_fires(row_of(driver)))) == (FireCounts(1, 0, 3, 0), 1)


def test_a_step_that_is_rolled_back_counts_nothing() -> None:
    driver = hourly()
    driver.step(T0 + HOUR + 5_000, commit=False)
    assert counts(driver) == FireCounts(0, 0, 0, 0)


def test_the_last_ten_fires_stay_ten_beside_a_tally() -> None:
    row, flags = PENDING["every"]
    record = plain = encode_pending(row._replace(occurrence=0), flags)
    for number in range(MOST_KEPT + 5):
        if number in (3, 12):
            record = tallied(record, 2_000 + number, 1)
        fire = packed_fire(number, row.version, number, 0)
        record = next_record(record, 2, 1, number + 1, fire)
        kept = [each.nominal_ms for each in last_fires(record)]
        assert kept == list(range(max(0, number + 1 - MOST_KEPT), number + 1))
        assert has_rule(record)
        assert same_definition(plain, record)
        assert same_definition(record, plain)
        assert last_fires(next_record(record, 3, 2, number + 1)) == last_fires(record)
    assert counts_of_record(record) == FireCounts(15, 2, 2, 2_012)
    assert len(record) == len(plain) + 11 * 16 + 1
    assert counts_of_record(held(record)) == FireCounts(15, 2, 2, 2_012)
    assert without_fires(record) == next_record(plain, 2, 1, 15, None)


def test_an_update_goes_on_counting_and_another_rule_begins_anew() -> None:
    driver = hourly(payload=b"1")
    fire_at(driver, 1, late_ms=2_000)
    driver.ask(kind="EVERY", interval_ms=HOUR, payload=b"2")
    driver.step(T0 + HOUR + 2_000)
    assert counts(driver) == FireCounts(1, 1, 0, 2_000)
    driver.ask(kind="EVERY", interval_ms=HOUR, payload=b"2")
    step = driver.step(T0 + HOUR + 2_000)
    assert step.effects.outcomes[Outcome.UNCHANGED] == 1, "a tally is no part of what was asked for"
    driver.ask(kind="EVERY", interval_ms=2 * HOUR, payload=b"2")
    driver.step(T0 + HOUR + 2_000)
    assert counts(driver) == FireCounts(0, 0, 0, 0)
    assert len(last_fires(row_of(driver))) == 1


def test_another_rule_drops_a_tally_that_nothing_lies_behind() -> None:
    driver = hourly(misfire="SKIP", max_lateness_ms=0)
    fire_at(driver, 3, late_ms=5)
    driver.ask(kind="EVERY", interval_ms=2 * HOUR)
    driver.step(T0 + 3 * HOUR + 5)
    assert not row_of(driver)[3] & (TALLY | KEPT_FIRES)
    assert counts(driver) == FireCounts(0, 0, 0, 0)


@pytest.mark.parametrize("late_ms", [0, 5_000])
def test_what_fired_while_no_fires_were_kept_is_not_counted(late_ms: int) -> None:
    driver = hourly()
    driver.options = EngineOptions(last_fires=False)
    driver.start(driver.rows)
    fire_at(driver, 1, late_ms=5_000)
    fire_at(driver, 2, late_ms=5_000)
    assert counts(driver) is None
    driver.options = EngineOptions()
    driver.start(driver.rows)
    fire_at(driver, 3, late_ms)
    assert counts(driver) == FireCounts(1, late_ms // 5_000, 0, late_ms)
    fire_at(driver, 4)
    assert counts(driver) == FireCounts(2, late_ms // 5_000, 0, late_ms)


def uncounted(lateness: list[int], missed: int = 0) -> bytes:
    """A row of a release that kept fires and counted nothing."""
    row, flags = PENDING["every"]
    record = encode_pending(row._replace(occurrence=0), flags)
    for number, late_ms in enumerate(lateness, 1):
        fire = packed_fire(number, row.version, late_ms, missed)
        record = next_record(record, number + 1, number + 1, number, fire)
    return record


def test_last_fires_that_were_late_uncounted_are_counted_and_those_before_them_are_not() -> None:
    record = uncounted([9_000] * 5 + [0] * 8 + [5_000, 7_000])
    assert counts_of_record(record) == FireCounts(fired=10, over_1s=2, missed=0, latest_ms=7_000)
    assert counts_of_record(tallied(record, 3_000, 1)) == FireCounts(10, 3, 1, 7_000)
    late = next_record(tallied(record, 3_000, 1), 17, 17, 16, packed_fire(16, 2, 3_000, 1))
    assert counts_of_record(late) == FireCounts(11, 3, 1, 7_000)
    assert counts_of_record(uncounted([5, 5_000])) == FireCounts(2, 1, 0, 5_000)
    assert counts_of_record(uncounted([5, 5], missed=2)) == FireCounts(2, 0, 4, 0)
    # Nothing tells such a row from one whose fires were counted.
    assert counts_of_record(uncounted([5_000] + [0] * 10)) == FireCounts(11, 0, 0, 0)


def test_late_fires_of_the_rule_before_are_none_of_this_one() -> None:
    driver = hourly()
    for number in range(1, 4):
        fire_at(driver, number, late_ms=5_000)
    driver.ask(kind="EVERY", interval_ms=2 * HOUR)
    driver.step(T0 + 3 * HOUR + 5_000)
    assert counts(driver) == FireCounts(0, 0, 0, 0)
    fire_at(driver, 5)
    found = counts(driver)
    assert found is not None
    assert (found.fired, found.over_1s) == (1, 0)
    assert [each.late_ms for each in last_fires(row_of(driver))][:3] == [5_000] * 3


def test_a_tally_goes_with_the_next_fire_once_none_are_to_be_kept() -> None:
    driver = hourly()
    fire_at(driver, 1, late_ms=5_000)
    driver.options = EngineOptions(last_fires=False)
    driver.start(driver.rows)
    fire_at(driver, 2)
    assert not row_of(driver)[3] & (TALLY | KEPT_FIRES)


def test_numbers_that_have_no_room_are_told_as_the_most_that_has() -> None:
    row, _ = PENDING["every"]
    record = tallied(encode_pending(row._replace(occurrence=0)), 1 << 40, 1 << 40)
    most = (1 << 32) - 1
    assert counts_of_record(record) == FireCounts(0, 1, most, most)
    assert counts_of_record(tallied(record, 2_000, 1)) == FireCounts(0, 2, most, most)


def test_a_release_that_knows_no_tally_holds_the_schedule_back() -> None:
    """It reads the flags that it knows, and this one is none of them."""
    driver = hourly()
    fire_at(driver, 1, late_ms=5_000)
    assert row_of(driver)[3] & ~(FLAGS & ~TALLY)
    assert not with_flags(row_of(driver), KEPT_FIRES)[3] & ~(FLAGS & ~TALLY)
