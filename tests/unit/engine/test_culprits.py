"""A step that fails amid a request or a schedule is done again without it; nobody else waits."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from belfry.engine.bulk_change import BulkChange
from belfry.engine.calendar_followers import CalendarFollowers
from belfry.engine.culprits import MOST_STEPS, Culprits
from belfry.engine.fires import Fires
from belfry.engine.job_counts import Budget
from belfry.engine.reports import Reports
from belfry.engine.transitions import Transitions
from belfry.engine.unforeseen import MOST_TOLD
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader
from tests.unit.engine.driver import HOUR, T0, Driver, Step

MUCH: Final = Budget(1_000, 1_000)
SECRET: Final = "4711 0815"
HELD: Final = "what fires it ended in ZeroDivisionError"


def faulty(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, meets: Callable[..., bool]
) -> None:
    """Let a function of a class raise where it is given what it `meets`."""
    sound = getattr(owner, name)

    def planted(*given: Any, **named: Any) -> Any:
        if meets(*given):
            raise ZeroDivisionError(SECRET)
        return sound(*given, **named)

    monkeypatch.setattr(owner, name, planted)


def is_fault(_fires: Fires, row: Any, *_: Any) -> bool:
    """Whether it is the schedule `fault` that fires."""
    found: bool = row[11] == b"fault"
    return found


def told(step: Step) -> list[tuple[str, str | None]]:
    """Outcomes of requests with their codes."""
    return [(str(each.outcome), each.code) for each in step.effects.lifecycle]


def ask_three(driver: Driver, **fields: Any) -> None:
    """Three schedules of one instant; the one in the middle is the fault."""
    for name in ("before", "fault", "behind"):
        driver.ask(schedule_id=name, **fields)


# -- requests ------------------------------------------------------------------------------------


def test_a_request_whose_reader_fails_is_refused_and_the_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def meets(_reader: RequestReader, record: SourceRecord) -> bool:
        return b"fault" in (record[3] or b"")

    for name in ("read", "read_whole"):
        faulty(monkeypatch, RequestReader, name, meets)
    driver = Driver()
    driver.ask(schedule_id="before", at=T0 + 5)
    for _ in range(MOST_TOLD + 4):
        driver.ask(schedule_id="fault", at=T0 + 5)
    driver.ask(schedule_id="behind", at=T0 + 5)
    step = driver.step(T0)
    assert step.codes == ["check_failed"] * (MOST_TOLD + 4)
    assert step.outcomes == ["ACCEPTED", "ACCEPTED"]
    assert len(step.effects.failed_checks) == MOST_TOLD
    assert all(SECRET not in where for where in step.effects.failed_checks)
    assert driver.step(T0 + 5).ids == ["before", "behind"]


def test_a_reader_without_memory_is_no_fault_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(RequestReader, "read", planted)
    driver = Driver()
    driver.ask(at=T0 + 5)
    with pytest.raises(MemoryError):
        driver.step(T0)


@pytest.mark.parametrize("fields", [{"at": T0 + HOUR}, {"kind": "EVERY", "interval_ms": HOUR}])
def test_a_request_amid_which_the_step_fails_is_refused(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    faulty(monkeypatch, Transitions, "begin", lambda _, asked, __: asked.name == b"demo/fault")
    if "at" in fields:
        faulty(monkeypatch, Transitions, "replace", lambda *_: False)
    driver = Driver()
    driver.ask(schedule_id="due", at=T0 + 1)
    driver.step(T0)
    ask_three(driver, request_id="r", **fields)
    driver.ask(schedule_id="fault", event_type="t", request_id="s", **fields)
    step = driver.step(T0 + 1)
    assert step.ids == ["due"]
    assert ("REJECTED", "check_failed") in told(step)
    assert driver.engine.position == len(driver.source)
    assert not driver.engine._parts.culprits.some


def test_each_of_many_is_found_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    faulty(monkeypatch, Transitions, "begin", lambda _, asked, __: b"fault" in asked.name)
    driver = Driver()
    for number in range(40):
        name = f"fault{number}" if number % 2 else f"good{number}"
        driver.ask(schedule_id=name, kind="AFTER", delay_ms=5, request_id=name)
    step = driver.step(T0)
    assert step.codes == ["check_failed"] * 20
    assert step.outcomes == ["ACCEPTED", "REJECTED"] * 20
    assert len(driver.step(T0 + 5).ids) == 20


def test_a_plain_request_amid_which_the_step_fails_goes_the_general_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def planted(request: Any, *_: Any) -> bytes:
        raise ZeroDivisionError(request)

    driver = Driver()
    driver.ask(schedule_id="first", at=T0 + 5)
    driver.step(T0)
    monkeypatch.setattr("belfry.engine.fast_path.encode_plain", planted)
    ask_three(driver, at=T0 + 5)
    assert driver.step(T0).outcomes == ["ACCEPTED"] * 3
    monkeypatch.undo()
    driver.ask(schedule_id="last", at=T0 + 5)
    driver.step(T0)
    assert not driver.engine._parts.culprits.some
    assert driver.step(T0 + 5).ids == ["first", "before", "fault", "behind", "last"]


def test_a_request_that_cannot_even_be_told_of_is_refused_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faulty(monkeypatch, Transitions, "begin", lambda _, asked, __: asked.name == b"demo/fault")
    faulty(monkeypatch, Reports, "refuse", lambda *_: True)
    driver = Driver()
    ask_three(driver, kind="AFTER", delay_ms=5)
    step = driver.step(T0)
    assert step.codes == ["check_failed"]
    assert step.outcomes == ["ACCEPTED", "ACCEPTED"]


def test_what_cannot_be_refused_either_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    faulty(monkeypatch, Reports, "origin", lambda *_: True)
    driver = Driver()
    driver.ask(kind="AFTER", delay_ms=5)
    with pytest.raises(ZeroDivisionError):
        driver.step(T0)


def test_a_disk_that_fails_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(*_: Any) -> Any:
        raise OSError("no space left")

    monkeypatch.setattr(Transitions, "begin", planted)
    driver = Driver()
    driver.ask(kind="AFTER", delay_ms=5)
    with pytest.raises(OSError, match="no space left"):
        driver.step(T0)


# -- what is due ---------------------------------------------------------------------------------

EVERY: Final = {"kind": "EVERY", "interval_ms": HOUR, "start_at": T0 + 5}


@pytest.mark.parametrize("fields", [{"at": T0 + 5}, EVERY, {**EVERY, "group": "g"}])
def test_a_schedule_whose_fire_fails_is_held_and_the_others_fire(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    driver = Driver()
    ask_three(driver, **fields)
    driver.step(T0)
    for name in ("fire", "fire_once"):
        faulty(monkeypatch, Fires, name, is_fault)
    step = driver.step(T0 + 5)
    assert step.ids == ["before", "behind"]
    assert step.effects.unreadable == [(b"demo/fault", HELD)]
    assert len(step.effects.failed_checks) == 1
    # This owner tries no more, also where others wait.
    assert driver.run(T0 + 6) == []
    assert driver.engine.pending == (1 if "at" in fields else 3)
    # The next one does, and finds it mended.
    monkeypatch.undo()
    driver.start(driver.rows)
    assert driver.run(T0 + 7) == ["fault"]


def test_the_next_owner_holds_it_again_where_it_is_not_mended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Driver()
    ask_three(driver, at=T0 + 5)
    driver.step(T0)
    faulty(monkeypatch, Fires, "fire_once", is_fault)
    driver.step(T0 + 5)
    driver.start(driver.rows)
    for now_ms in range(T0 + 6, T0 + 12):
        assert driver.run(now_ms) == []
    assert driver.engine.pending == 1


def test_one_that_is_held_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    ask_three(driver, at=T0 + 5)
    driver.step(T0)
    faulty(monkeypatch, Fires, "fire_once", is_fault)
    driver.step(T0 + 5)
    driver.ask(schedule_id="fault", action="CANCEL")
    assert driver.step(T0 + 6).outcomes == ["CANCELLED"]
    assert driver.engine.pending == 0


def test_a_fire_from_a_backlog_that_fails_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    ask_three(driver, at=T0 + 5)
    driver.step(T0)
    driver.note(held="its topic is missing")
    driver.step(T0 + 5)
    driver.note(held="")
    faulty(monkeypatch, Fires, "fire_once", is_fault)
    assert driver.run(T0 + 6) == ["before", "behind"]
    assert driver.engine.pending == 1


def test_a_fire_that_catches_up_and_fails_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    ask_three(driver, kind="EVERY", interval_ms=HOUR, misfire="FIRE_ALL")
    driver.step(T0)
    faulty(monkeypatch, Fires, "fire", is_fault)
    late_ms = T0 + 3 * HOUR + 120_000
    fired = [name for ms in range(0, 1_000, 100) for name in driver.run(late_ms + ms)]
    assert sorted(fired) == ["before"] * 3 + ["behind"] * 3
    assert driver.engine.pending == 3


def test_many_that_fail_in_one_step_are_all_held(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    for number in range(30):
        driver.ask(schedule_id="fault" if number == 7 else f"s{number}", at=T0 + 5)
    driver.step(T0)
    faulty(monkeypatch, Fires, "fire_once", lambda _, row, *__: int(row[3]) % 2 == 1)
    step = driver.step(T0 + 5)
    assert len(step.ids) == len(step.effects.unreadable) == 15
    assert len(step.effects.failed_checks) == MOST_TOLD


# -- what jobs and calendars are about -----------------------------------------------------------


def test_a_job_refuses_the_schedule_amid_which_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    ask_three(driver, at=T0 + HOUR)
    driver.step(T0)
    spec = json.dumps({"action": "MOVE", "move_ms": 1_000})
    driver.ask(schedule_id="job", action="BULK", bulk=spec)
    driver.step(T0 + 1)
    faulty(monkeypatch, BulkChange, "_move", lambda _, asked, *__: asked.name == b"demo/fault")
    effects = driver.engine.advance_jobs(T0 + 2, MUCH)
    found = [(each.schedule_id, str(each.outcome), each.code) for each in effects.lifecycle]
    assert found[:3] == [
        ("before", "UPDATED", None),
        ("behind", "UPDATED", None),
        ("fault", "REJECTED", "check_failed"),
    ]
    driver.end(T0 + 2)
    assert not driver.engine.jobs.under_way
    assert sorted(driver.run(T0 + HOUR + 1_000)) == ["before", "behind", "fault"]


def test_a_calendar_passes_over_the_schedule_amid_which_it_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Driver()
    driver.ask(action="CALENDAR", schedule_id="c", days_off=json.dumps({"weekend": ["SAT"]}))
    ask_three(driver, kind="CRON", cron="0 9 * * *", calendar="c")
    driver.step(T0)
    while driver.engine.jobs.under_way:
        driver.engine.advance_jobs(T0 + 1, MUCH)
        driver.end(T0 + 1)
    driver.ask(action="CALENDAR", schedule_id="c", days_off=json.dumps({"weekend": ["SUN"]}))
    driver.step(T0 + 2)
    faulty(monkeypatch, CalendarFollowers, "derived", lambda _, row, *__: row[11] == b"fault")
    effects = driver.engine.advance_jobs(T0 + 3, MUCH)
    assert effects.unreadable == [(b"demo/fault", "a look at it ended in ZeroDivisionError")]
    driver.end(T0 + 3)
    assert not driver.engine.jobs.under_way


# -- what is remembered --------------------------------------------------------------------------


def test_whom_no_step_meets_again_is_forgotten() -> None:
    culprits = Culprits()
    culprits.blame(ZeroDivisionError(), ("due", b"a"))
    assert culprits.take_new()
    assert not culprits.take_new()
    for _ in range(MOST_STEPS):
        assert culprits.some
        culprits.committed()
    assert not culprits.some
