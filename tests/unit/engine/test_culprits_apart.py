"""Whoever is blamed is blamed alone: what failed for one is done as ever for others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

from belfry.engine.bulk_change import BulkChange
from belfry.engine.calendar_followers import CalendarFollowers
from belfry.engine.culprits import MOST_DEALT
from belfry.engine.fires import Fires
from belfry.engine.firing import AT_A_TIME
from belfry.engine.job_counts import Budget
from belfry.engine.kept_jobs import KeptJobs
from belfry.engine.occurrences import Occurrences
from belfry.engine.rerouting import Rerouting
from belfry.engine.transitions import Transitions
from belfry.engine.zone_change import ZoneChange
from belfry.schedules.identity import Homes
from belfry.schedules.outcomes import Outcome
from belfry.schedules.triggers import zones
from belfry.tenants.effective import Level
from belfry.wire.record import Origin, SourceRecord, origin_headers
from belfry.wire.requests import RequestReader
from tests.unit.engine.driver import HOUR, T0, TOPIC, Driver, request

MUCH: Final = Budget(1_000, 1_000)
FAULTY: Final = b"demo/fault"


def faulty(
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    meets: Callable[..., bool],
    error: type[Exception] = KeyError,
) -> None:
    """Let a function of a class raise where it is given what it `meets`."""
    sound = getattr(owner, name)

    def planted(*given: Any, **named: Any) -> Any:
        if meets(*given):
            raise error("planted")
        return sound(*given, **named)

    monkeypatch.setattr(owner, name, planted)


def work(driver: Driver, now_ms: int) -> None:
    """Let jobs and calendars go on to their end."""
    while driver.engine.jobs.under_way:
        driver.engine.advance_jobs(now_ms, MUCH)
        driver.end(now_ms)


# -- requests ------------------------------------------------------------------------------------


def test_one_that_fails_sends_no_plain_one_the_general_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faulty(monkeypatch, Transitions, "begin", lambda *_: True)
    # A tenant that is told of each of its requests has none that is plain.
    driver = Driver(Level.FAILURES)
    driver.note(held="")
    for name in ("a", "b"):
        driver.ask(schedule_id=name, at=T0 + 5)
    driver.ask(schedule_id="fault", kind="EVERY", interval_ms=HOUR)
    driver.ask(schedule_id="c", at=T0 + 5)
    step = driver.step(T0)
    assert step.codes == ["check_failed"]
    assert driver.run(T0 + 5) == ["a", "b", "c"]


def test_a_request_that_cannot_be_sent_on_unread_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faulty(monkeypatch, Rerouting, "send", lambda _, record, *__: record[2] == b"fault/a")
    driver = Driver(partition=1, partitions=1)
    unread = b"\0\0\0\0\x4d" + b"nobody knows its schema"
    for key in (b"good/a", b"fault/a", b"good/b"):
        driver.send(unread, key)
    engine = driver.engine
    effects = engine.accept(driver.batch(), T0, {})
    assert [each.key for each in effects.rerouted] == [b"good/a", b"good/b"]
    assert [each.key for each in effects.rejected] == [b"fault/a"]
    assert engine.position == 3


def test_a_home_that_follows_and_fails_gives_no_second_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faulty(monkeypatch, KeptJobs, "follow", lambda *_: True)
    spread = 8
    first, second, third = Homes(8).all_of("demo", (spread,))[:3]
    driver = Driver(partition=second, partitions=8)
    driver.apply(spread=spread)
    asked = request(action="BULK", schedule_id="job", request_id="r", bulk='{"action": "PAUSE"}')
    origin = Origin(TOPIC, first, 7, T0, rerouted=True)
    driver.send(asked, headers=origin_headers(origin, 1))
    step = driver.step(T0)
    assert (step.codes, step.outcomes) == (["check_failed"], [])
    assert [each.partition for each in step.effects.rerouted] == [third]
    assert not driver.engine._parts.culprits.some


def test_a_disk_that_fails_as_a_request_is_read_is_no_fault_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("read", "read_whole"):
        faulty(monkeypatch, RequestReader, name, lambda *_: True, OSError)
    driver = Driver()
    driver.ask(at=T0 + 5)
    with pytest.raises(OSError, match="planted"):
        driver.step(T0)


def test_a_trace_that_fails_is_not_told_and_its_request_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def planted(*_: Any) -> Any:
        raise KeyError

    monkeypatch.setattr("belfry.engine.traces.sampled_in", planted)
    driver = Driver(traces=True)
    driver.ask(kind="EVERY", interval_ms=HOUR)
    step = driver.step(T0)
    assert (step.codes, step.outcomes) == ([], ["ACCEPTED"])
    assert (len(step.effects.failed_checks), step.effects.traced) == (1, [])


# -- what is due ---------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyError, UnboundLocalError])
def test_a_row_is_held_whatever_is_asked_of_it_before_it_fires(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    driver = Driver()
    for name in ("before", "fault", "behind"):
        driver.ask(
            schedule_id=name,
            kind="EVERY",
            interval_ms=HOUR,
            misfire="FIRE_ALL",
            group="g",
            end_at=T0 + HOUR,
        )
    driver.step(T0)
    driver.note(held="its topic is missing")
    driver.step(T0 + 2 * HOUR)
    driver.note(held="")
    faulty(monkeypatch, Occurrences, "has_to_slow", lambda _, row, *__: row.name == FAULTY, error)
    assert driver.run(T0 + 2 * HOUR + 1) == ["before", "behind"]
    assert driver.engine.pending == 1


# -- jobs, calendars and zones -------------------------------------------------------------------


def test_a_job_leaves_alone_what_it_fails_to_match(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    for name in ("before", "fault", "behind"):
        driver.ask(schedule_id=name, at=T0 + HOUR)
    driver.step(T0)
    driver.ask(schedule_id="job", action="BULK", bulk='{"action": "MOVE", "move_ms": 1000}')
    driver.step(T0 + 1)
    faulty(monkeypatch, BulkChange, "matched", lambda _, name, *__: name == FAULTY)
    work(driver, T0 + 2)
    assert driver.run(T0 + HOUR) == ["fault"]
    assert driver.run(T0 + HOUR + 1_000) == ["before", "behind"]


def days(*weekend: str) -> dict[str, Any]:
    """A request for the calendar `c`."""
    return {"action": "CALENDAR", "schedule_id": "c", "days_off": json.dumps({"weekend": weekend})}


def test_what_a_job_fails_at_follows_its_calendar_and_its_zone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Driver()
    driver.ask(**days("SAT"))
    driver.ask(schedule_id="fault", kind="CRON", cron="0 9 * * *", calendar="c")
    driver.step(T0)
    work(driver, T0 + 1)
    driver.ask(**days("SUN"))
    driver.ask(schedule_id="job", action="BULK", bulk='{"action": "MOVE", "move_ms": 1000}')
    driver.step(T0 + 2)
    faulty(monkeypatch, BulkChange, "_move", lambda *_: True)
    # The next owner has other zone data, and looks at all schedules as well.
    monkeypatch.setattr(zones, "VERSION", "2099z")
    driver.start(driver.rows)
    driver.engine.claim(None)
    driver.end(T0 + 2)
    driver.engine.sweep(T0 + 3, 100)
    effects = driver.engine.advance_jobs(T0 + 3, MUCH)
    assert dict(effects.bulk) == {("MOVE", Outcome.REJECTED): 1}
    assert effects.unreadable == []
    driver.end(T0 + 3)
    assert not driver.engine.jobs.under_way


# -- many of them --------------------------------------------------------------------------------


def in_time() -> bool:
    """A step has time for all that is to be done."""
    return False


def test_a_step_ends_behind_so_many_requests_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    faulty(monkeypatch, Transitions, "begin", lambda _, asked, __: b"fault" in asked.name)
    driver = Driver()
    for number in range(3 * MOST_DEALT):
        for name in (f"fault{number}", f"good{number}"):
            driver.ask(schedule_id=name, kind="AFTER", delay_ms=5)
    for steps in (1, 2, 3):
        driver.engine.accept(driver.batch(), T0, None, in_time)
        driver.end(T0)
        assert driver.engine.position in (2 * MOST_DEALT * steps - 1, 2 * MOST_DEALT * steps)
    driver.engine.accept(driver.batch(), T0, None, in_time)
    driver.end(T0)
    assert driver.engine.position == len(driver.source)
    assert len(driver.run(T0 + 5)) == 3 * MOST_DEALT


def test_what_lies_far_behind_one_that_fails_is_read_once_more_and_no_oftener(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faulty(monkeypatch, Transitions, "begin", lambda _, asked, __: b"fault" in asked.name)
    read = Counter[int]()
    sound = RequestReader.read

    def planted(reader: RequestReader, record: SourceRecord) -> Any:
        read[record[0]] += 1
        return sound(reader, record)

    monkeypatch.setattr(RequestReader, "read", planted)
    driver = Driver()
    for number in range(2_000):
        name = f"fault{number}" if number < MOST_DEALT else f"good{number}"
        driver.ask(schedule_id=name, kind="AFTER", delay_ms=5)
    while driver.engine.position < len(driver.source):
        driver.engine.accept(driver.batch(), T0, None, in_time)
        driver.end(T0)
    assert read[0] == MOST_DEALT + 1
    assert read[1_999] == 2


def test_a_step_ends_behind_so_many_rows_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    for number in range(4 * AT_A_TIME):
        driver.ask(schedule_id=f"s{number}", at=T0 + 5)
    driver.step(T0)
    faulty(monkeypatch, Fires, "fire_once", lambda *_: True)
    step = driver.step(T0 + 5)
    assert len(step.effects.unreadable) == AT_A_TIME
    assert driver.run(T0 + 5) == []
    monkeypatch.undo()
    driver.start(driver.rows)
    assert len(driver.run(T0 + 6)) == 4 * AT_A_TIME


def test_walks_end_behind_so_many_that_fail_and_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    driver.ask(**days("SAT"))
    for number in range(2 * MOST_DEALT):
        driver.ask(schedule_id=f"s{number:02}", kind="CRON", cron="0 9 * * *", calendar="c")
    driver.step(T0)
    work(driver, T0 + 1)
    driver.ask(**days("SUN"))
    driver.ask(schedule_id="job", action="BULK", bulk='{"action": "MOVE", "move_ms": 1000}')
    driver.step(T0 + 2)
    faulty(monkeypatch, BulkChange, "_move", lambda *_: True)
    faulty(monkeypatch, CalendarFollowers, "look", lambda *_: True)
    faulty(monkeypatch, ZoneChange, "_look", lambda *_: True)
    monkeypatch.setattr(zones, "VERSION", "2099z")
    driver.start(driver.rows)
    driver.engine.claim(None)
    driver.end(T0 + 2)
    passed_over = refused = 0
    while driver.engine.jobs.under_way or driver.engine._parts.zones.under_way:
        driver.engine.sweep(T0 + 3, 100)
        effects = driver.engine.advance_jobs(T0 + 3, MUCH)
        found = len(effects.unreadable), effects.bulk.total()
        assert sum(found) <= MOST_DEALT
        passed_over, refused = passed_over + found[0], refused + found[1]
        driver.end(T0 + 3)
    # By the calendar and by the zones, and by the job.
    assert (passed_over, refused) == (4 * MOST_DEALT, 2 * MOST_DEALT)
