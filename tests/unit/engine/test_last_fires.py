"""The last ten fires of what recurs: kept in its row, whatever its tenant has told of."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.options import EngineOptions
from belfry.schedules.outcomes import Outcome
from belfry.store.last_fires import LastFire, fires_of_marker, fires_of_record
from belfry.store.layout.kept_fires import MOST_KEPT, packed_fire
from belfry.store.layout.pending import decode_pending, encode_pending
from belfry.store.layout.pending_bytes import (
    FLAGS,
    KEPT_FIRES,
    last_fires,
    next_record,
    paused,
    same_definition,
    with_flags,
)
from belfry.store.layout.records import decode_marker
from belfry.store.readable import why_unreadable
from belfry.tenants.effective import Level
from tests.compatibility.rows import PENDING
from tests.unit.engine.acknowledging import rebuilt
from tests.unit.engine.driver import HOUR, T0, Driver, Shot

NAME = b"demo/a"
SECOND = 1_000


def row_of(driver: Driver) -> bytes:
    return dict(driver.changelog)[NAME] or b""


def fired(driver: Driver) -> list[LastFire]:
    return fires_of_record(row_of(driver))


def id_of(shot: Shot) -> str:
    return (shot.header("belfry-fire-id") or b"").decode()


def hourly(**fields: Any) -> Driver:
    driver = Driver(level=Level.FAILURES)
    driver.ask(kind="EVERY", interval_ms=HOUR, **fields)
    driver.step(T0)
    return driver


def fire_at(driver: Driver, number: int, late_ms: int = 0) -> list[Shot]:
    return driver.step(T0 + number * HOUR + late_ms).shots


def test_ten_fires_are_kept_with_their_ids_and_how_late_they_were() -> None:
    driver = hourly(payload=b"p" * 300)
    assert fired(driver) == []
    shots = [shot for number in range(1, 14) for shot in fire_at(driver, number, number)]
    assert len(shots) == 13
    found = fired(driver)
    assert [each.fire_id for each in found] == [id_of(shot) for shot in shots[3:]]
    assert [each.scheduled_ms for each in found] == [T0 + n * HOUR for n in range(4, 14)]
    assert [each.late_ms for each in found] == list(range(4, 14))
    assert all(each.fired_ms == each.due_ms + each.late_ms for each in found)
    assert decode_pending(row_of(driver)).payload == b"p" * 300
    assert shots[-1].value == b"p" * 300


def test_a_step_that_is_rolled_back_keeps_no_fire() -> None:
    driver = hourly()
    driver.step(T0 + HOUR, commit=False)
    assert fired(driver) == []
    fire_at(driver, 1)
    assert len(fired(driver)) == 1


def test_a_fire_tells_how_many_it_stood_for() -> None:
    driver = hourly()
    fire_at(driver, 5, late_ms=70_000)
    assert [(each.missed, each.scheduled_ms) for each in fired(driver)] == [(4, T0 + 5 * HOUR)]


@pytest.mark.parametrize("action", ["PAUSE", "RESUME", "TRIGGER"])
def test_a_pause_and_an_extra_fire_leave_them_as_they_are(action: str) -> None:
    driver = hourly()
    fire_at(driver, 1)
    before = fired(driver)
    driver.ask(action="PAUSE")
    driver.step(T0 + HOUR)
    assert paused(row_of(driver))
    driver.ask(action=action)
    driver.step(T0 + HOUR)
    assert fired(driver) == before
    assert why_unreadable(row_of(driver)) == ""


def test_an_update_keeps_them_with_the_ids_that_they_had() -> None:
    driver = hourly(payload=b"1")
    shots = fire_at(driver, 1)
    driver.ask(kind="EVERY", interval_ms=HOUR, payload=b"2")
    driver.step(T0 + HOUR)
    shots += fire_at(driver, 2)
    assert [each.fire_id for each in fired(driver)] == [id_of(shot) for shot in shots]
    driver.ask(kind="EVERY", interval_ms=HOUR, payload=b"2")
    step = driver.step(T0 + 2 * HOUR)
    assert step.effects.outcomes[Outcome.UNCHANGED] == 1, "fires are no part of what was asked for"
    driver.ask(kind="EVERY", interval_ms=HOUR, payload=b"2", jitter_ms=5)
    driver.step(T0 + 2 * HOUR)
    assert fired(driver) == [], "when they were due followed from another jitter"


def test_jitter_is_no_lateness() -> None:
    driver = hourly(jitter_ms=60_000)
    due_ms = driver.engine.next_due_ms() or 0
    driver.step(due_ms + 3)
    (found,) = fired(driver)
    assert (found.scheduled_ms, found.due_ms, found.late_ms) == (T0 + HOUR, due_ms, 3)


def test_what_becomes_a_one_shot_has_none() -> None:
    driver = hourly()
    fire_at(driver, 1)
    driver.ask(kind="AT", at=T0 + 9 * HOUR)
    driver.step(T0 + HOUR)
    assert fired(driver) == []
    assert [shot.id for shot in fire_at(driver, 9)] == ["a"]
    (found,) = fires_of_marker(decode_marker(row_of(driver)))
    assert (found.fire_id, found.due_ms, found.late_ms) == (None, T0 + 9 * HOUR, 0)


def test_what_has_no_room_at_rest_is_told_as_the_most_that_has() -> None:
    row, _ = PENDING["every"]
    record = encode_pending(row._replace(version=70_000))
    for missed in (0, 1 << 20):
        fire = packed_fire(T0, 69_999, 1 << 40, missed)
        record = next_record(record, T0 + 2, T0 + 1, 7, fire)
    found = last_fires(record)
    assert [(each.late_ms, each.missed) for each in found] == [(2**32 - 1, 0), (2**32 - 1, 65_535)]
    assert [each.version for each in found] == [69_999, 69_999]


@pytest.mark.parametrize("name", ["every", "cron, paused"])
def test_a_record_is_the_same_but_for_its_fires(name: str) -> None:
    row, flags = PENDING[name]
    record = plain = encode_pending(row._replace(payload=None), flags)
    for number in range(MOST_KEPT + 3):
        record = next_record(record, 2, 1, number + 1, packed_fire(number, row.version, 0, 0))
        assert len(last_fires(record)) == min(number + 1, MOST_KEPT)
        assert (record[3], paused(record)) == (flags | KEPT_FIRES, bool(flags))
        assert same_definition(plain, record)
        assert same_definition(record, plain)
        assert decode_pending(record) == decode_pending(plain).following(2, 1, number + 1)
        moved = next_record(record, 3, 2, number + 1)
        assert last_fires(moved) == last_fires(record)
    assert [each.nominal_ms for each in last_fires(record)] == list(range(3, 13))


def test_none_are_kept_where_a_release_before_may_own_the_schedule() -> None:
    driver = hourly()
    driver.options = EngineOptions(last_fires=False)
    driver.start(driver.rows)
    assert fire_at(driver, 1)
    assert (fired(driver), row_of(driver)[3] & KEPT_FIRES) == ([], 0)
    driver.options = EngineOptions()
    driver.start(driver.rows)
    assert fire_at(driver, 2)
    assert len(fired(driver)) == 1


def test_those_that_are_kept_go_with_the_next_fire_once_none_are_to_be_kept() -> None:
    driver = hourly()
    assert fire_at(driver, 1)
    assert len(fired(driver)) == 1
    driver.options = EngineOptions(last_fires=False)
    driver.start(driver.rows)
    assert fire_at(driver, 2)
    assert (fired(driver), row_of(driver)[3] & KEPT_FIRES) == ([], 0)
    assert same_definition(row_of(driver), row_of(hourly()))


def test_what_a_later_release_keeps_behind_a_row_is_not_taken_over() -> None:
    driver = hourly()
    assert fire_at(driver, 1)
    later = with_flags(row_of(driver), row_of(driver)[3] | FLAGS + 1) + b"\xff"
    kept = [(name, later if name == NAME else row) for name, row in driver.changelog]
    driver.changelog[:] = kept
    rebuilt(driver, T0 + HOUR)
    driver.ask(kind="EVERY", interval_ms=HOUR, payload=b"new")
    driver.step(T0 + HOUR + 1, fire=False)
    assert (decode_pending(row_of(driver)).version, fired(driver)) == (2, [])
    shots = fire_at(driver, 2)
    assert [each.fire_id for each in fired(driver)] == [id_of(shot) for shot in shots]
