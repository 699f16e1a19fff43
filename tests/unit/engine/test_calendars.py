"""Calendars in a partition: set, heeded, changed; and a change that moves what is pending, once."""

from __future__ import annotations

import json
from datetime import date
from typing import Any, Final

import pytest

from belfry.engine.job_counts import Budget
from belfry.schedules.instants import format_instant, parse_instant
from belfry.schedules.jitter import jitter_ms
from belfry.store.calendar_lookup import calendars, days_in
from belfry.store.layout import keys
from belfry.store.layout.calendars import calendar_key, decode_calendar
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.pending_bytes import last_fires
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Level
from tests.unit.engine.acknowledging import rebuilt
from tests.unit.engine.driver import Driver

# A Tuesday.
NOW: Final = parse_instant("2026-12-22T08:00:00Z")
HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR
MUCH: Final = Budget(10_000, 10_000)
NINE: Final = {"kind": "CRON", "cron": "0 9 * * *", "calendar": "de"}


def days(*dates: str, weekend: tuple[str, ...] = ("SAT", "SUN"), source: str = "") -> str:
    return json.dumps({"days": list(dates), "weekend": list(weekend), "source": source})


def set_calendar(driver: Driver, *dates: str, now_ms: int = NOW, name: str = "de") -> list[str]:
    driver.ask(now_ms, action="CALENDAR", schedule_id=name, days_off=days(*dates))
    return driver.step(now_ms, fire=False).outcomes


NEVER: Final = (
    "The schedule is never due: calendar 'de' leaves out each instant of its rule, or more than is"
    " looked through. Use another calendar, or on_holiday NEXT_BUSINESS_DAY."
)


def begun(*ids: str, level: Level = Level.ALL, **fields: Any) -> Driver:
    driver = Driver(level=level)
    assert set_calendar(driver, "2026-12-25") == ["ACCEPTED"] * (level is Level.ALL)
    for schedule_id in ids:
        driver.ask(NOW, schedule_id=schedule_id, **{**NINE, **fields})
    driver.step(NOW, fire=False)
    advance(driver, NOW)
    return driver


def advance(
    driver: Driver, now_ms: int, budget: Budget = MUCH, *, commit: bool = True
) -> list[str]:
    """What one step of the walk tells of."""
    effects = driver.engine.advance_jobs(now_ms, budget)
    told = [f"{each.outcome} {each.schedule_id} {each.reason}" for each in effects.lifecycle]
    if not effects.empty:
        driver.end(now_ms, commit=commit)
    return told


def finish(driver: Driver, now_ms: int, budget: Budget = MUCH) -> list[str]:
    told: list[str] = []
    for _ in range(1_000):
        if not driver.engine.jobs.under_way:
            return told
        told += advance(driver, now_ms, budget)
    raise AssertionError("the walk never ends")


def due(driver: Driver, schedule_id: str = "a") -> str:
    store = ScheduleStore(driver.rows)
    name = keys.schedule_key("demo", schedule_id)
    row = store.named(name)
    assert row is not None
    return format_instant(decode_pending(store.pending_at(name, row)).due_ms)[:13]


def at(text: str) -> int:
    return parse_instant(f"{text}:00:00Z")


def fires(driver: Driver, until: str) -> list[str]:
    """The instants of all fires up to one, looked at each hour."""
    found: list[str] = []
    now_ms = NOW
    while now_ms <= at(until):
        shots = driver.step(now_ms, take=0).shots
        found += [(shot.header("belfry-scheduled-at") or b"").decode()[5:13] for shot in shots]
        now_ms += HOUR
    return found


def test_a_schedule_skips_the_days_off_of_its_calendar() -> None:
    driver = begun("a")
    assert fires(driver, "2026-12-29T09") == ["12-22T09", "12-23T09", "12-24T09", "12-28T09",
                                              "12-29T09"]  # fmt: skip


def test_a_changed_calendar_leaves_the_last_fires_as_they_are() -> None:
    driver = begun("a")
    assert fires(driver, "2026-12-23T09") == ["12-22T09", "12-23T09"]
    driver.ask(action="CALENDAR", schedule_id="de", days_off='{"days": ["2026-12-24"]}')
    driver.step(at("2026-12-23T10"))
    finish(driver, at("2026-12-23T10"))
    assert due(driver) == "2026-12-25T09"
    row = dict(driver.changelog)[b"demo/a"] or b""
    kept = [format_instant(each.nominal_ms)[5:13] for each in last_fires(row)]
    assert kept == ["12-22T09", "12-23T09"]


@pytest.mark.parametrize(
    ("way", "wanted"),
    [
        ("NEXT_BUSINESS_DAY", ["12-22T09", "12-28T09"]),
        ("PREVIOUS_BUSINESS_DAY", ["12-22T09", "12-24T09"]),
    ],
)
def test_a_schedule_moves_to_business_days_and_fires_once_there(
    way: str, wanted: list[str]
) -> None:
    driver = begun("a", cron="0 9 22,25,26,27 12 *", on_holiday=way)
    assert fires(driver, "2026-12-30T00") == wanted


def test_an_unknown_calendar_is_refused_and_told_what_there_is() -> None:
    driver = begun()
    driver.ask(NOW, **{**NINE, "calendar": "fr"}, request_id="r")
    step = driver.step(NOW)
    assert step.codes == ["unknown_calendar"]
    reason = step.effects.lifecycle[0].reason or ""
    assert "'fr'" in reason
    assert "It has de." in reason
    assert "belfry calendar set demo fr" in reason
    # It depends on the moment: the same request counts once the calendar is there.
    set_calendar(driver, name="fr")
    driver.ask(NOW, **{**NINE, "calendar": "fr"}, request_id="r")
    assert driver.step(NOW).outcomes == ["ACCEPTED"]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"on_holiday": "SKIP", "calendar": None}, "names none"),
        ({"calendar": "a b"}, "1-100 of"),
        ({"kind": "AT", "cron": None, "at": NOW + DAY}, "fires once"),
        ({"kind": "EVERY", "cron": None, "interval_ms": HOUR, "on_holiday": "NEXT_BUSINESS_DAY"},
         "start_at"),
        ({"cron": "* * * * * *", "on_holiday": "PREVIOUS_BUSINESS_DAY"}, "a minute apart"),
        ({"cron": "0 9 * * SAT"}, NEVER),
        ({"timezone": "Nowhere/Atall", "kind": "EVERY", "cron": None, "interval_ms": HOUR},
         "no IANA"),
        ({"days_off": "{}"}, "is for CALENDAR"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(fields: dict[str, Any], says: str) -> None:
    driver = begun()
    driver.ask(NOW, **{**NINE, **fields})
    step = driver.step(NOW)
    assert step.outcomes == ["REJECTED"]
    assert says in (step.effects.lifecycle[0].reason or "")
    assert (step.codes == ["never_fires"]) is (says is NEVER)


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (None, "is missing"),
        ("{", "no JSON"),
        ('{"days": ["25.12.2026"]}', "2026-12-25"),
        ('{"day": []}', "none of days"),
        (days(weekend=("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")), "no business day"),
        ('{"weekend": ["Saturday"]}', "MON, TUE"),
        (json.dumps({"days": [f"20{year}-{month:02}-{day:02}" for year in (26, 27) for month in
                     range(1, 13) for day in range(1, 29)], "weekend": ["MON"]}), ""),
        (json.dumps({"days": [date.fromordinal(740_000 + n).isoformat() for n in range(400)]}),
         "in a row"),
    ],
)  # fmt: skip
def test_days_that_cannot_be_are_refused(said: str | None, says: str) -> None:
    driver = Driver()
    driver.ask(NOW, action="CALENDAR", schedule_id="de", days_off=said)
    step = driver.step(NOW)
    assert step.outcomes == ["REJECTED" if says else "ACCEPTED"]
    assert says in (step.effects.lifecycle[0].reason or "")


def test_a_calendar_is_set_changed_and_removed() -> None:
    driver = begun()
    assert set_calendar(driver, "2026-12-25") == ["UNCHANGED"]
    assert set_calendar(driver, "2026-12-24") == ["UPDATED"]
    driver.ask(NOW, action="CALENDAR_REMOVE", schedule_id="de")
    driver.ask(NOW, action="CALENDAR_REMOVE", schedule_id="de")
    assert driver.step(NOW).outcomes == ["CANCELLED", "NOT_FOUND"]
    finish(driver, NOW)
    assert not driver.engine.jobs.under_way
    assert driver.engine._store.named(calendar_key(b"demo", "de")) is None


def test_a_calendar_that_is_not_there_is_not_removed_and_told_what_there_is() -> None:
    driver = begun()
    driver.ask(NOW, action="CALENDAR_REMOVE", schedule_id="fr", request_id="r")
    (told,) = driver.step(NOW).effects.lifecycle
    assert str(told.outcome) == "NOT_FOUND"
    assert told.reason == "The tenant has no calendar of this name. It has de."


def test_a_change_moves_what_is_pending_and_tells_of_it_at_any_level() -> None:
    driver = begun("a", "b", level=Level.FAILURES)
    driver.ask(NOW, schedule_id="plain", kind="CRON", cron="0 9 * * *")
    driver.ask(NOW, schedule_id="paused", **NINE)
    driver.ask(NOW, schedule_id="paused", action="PAUSE")
    driver.step(NOW, fire=False)
    set_calendar(driver, "2026-12-22", "2026-12-23")
    told = finish(driver, NOW)
    was = "calendar de was changed; it was due at 2026-12-22T09:00:00.000Z"
    assert told == [f"UPDATED {name} {was}" for name in ("a", "b", "paused")]
    assert {due(driver, name) for name in ("a", "b", "paused")} == {"2026-12-24T09"}
    assert due(driver, "plain") == "2026-12-22T09"
    assert (
        decode_calendar(driver.engine._store.named(calendar_key(b"demo", "de")) or b"").moved == 3
    )


def test_what_a_change_moves_keeps_its_jitter() -> None:
    driver = begun("a", jitter_ms=HOUR)
    set_calendar(driver, "2026-12-22", "2026-12-23")
    finish(driver, NOW)
    nominal_ms = at("2026-12-24T09")
    found = driver.engine._store.pending_at(b"demo/a", driver.engine._store.named(b"demo/a") or b"")
    row = decode_pending(found)
    assert (row.nominal_ms, row.due_ms) == (
        *(nominal_ms, nominal_ms + jitter_ms(b"demo/a", nominal_ms, HOUR)),
    )
    assert row.due_ms > nominal_ms


def test_a_change_back_brings_an_earlier_instant() -> None:
    driver = begun("a")
    set_calendar(driver, "2026-12-22", "2026-12-23")
    finish(driver, NOW)
    assert due(driver) == "2026-12-24T09"
    set_calendar(driver, "2026-12-22", now_ms=at("2026-12-23T07"))
    finish(driver, at("2026-12-23T07"))
    assert due(driver) == "2026-12-23T09"


def test_what_was_over_when_a_day_was_freed_is_not_made_up_for() -> None:
    driver = begun("a")
    set_calendar(driver, "2026-12-22", "2026-12-23")
    finish(driver, NOW)
    set_calendar(driver, now_ms=at("2026-12-23T10"))
    finish(driver, at("2026-12-23T10"))
    assert due(driver) == "2026-12-24T09"


def test_what_the_step_of_the_change_itself_has_accepted_follows_too() -> None:
    driver = begun()
    driver.ask(NOW, schedule_id="a", **NINE)
    driver.ask(NOW, action="CALENDAR", schedule_id="de", days_off=days("2026-12-22"))
    driver.engine.accept(driver.batch(), NOW)
    driver.engine.advance_jobs(NOW, MUCH)
    driver.end(NOW)
    finish(driver, NOW)
    assert due(driver) == "2026-12-23T09"


def test_what_comes_due_before_its_turn_follows_the_change_first() -> None:
    driver = begun("a")
    set_calendar(driver, "2026-12-22")
    assert driver.engine.jobs.under_way
    assert driver.step(at("2026-12-22T09"), take=0).ids == []
    assert due(driver) == "2026-12-23T09"
    assert finish(driver, at("2026-12-22T10")) == []


def test_what_was_due_when_the_change_came_fires_as_it_was_to() -> None:
    driver = begun("a")
    driver.ask(at("2026-12-22T10"), action="CALENDAR", schedule_id="de",
               days_off=days("2026-12-22", "2026-12-23"))  # fmt: skip
    driver.step(at("2026-12-22T10"), fire=False)
    finish(driver, at("2026-12-22T10"))
    assert driver.run(at("2026-12-22T10")) == ["a"]
    assert due(driver) == "2026-12-24T09"


def test_a_schedule_that_is_asked_for_before_its_turn_follows_first() -> None:
    driver = begun("a", max_fires=5)
    driver.step(at("2026-12-22T09"), take=0)
    set_calendar(driver, "2026-12-23", now_ms=at("2026-12-22T10"))
    driver.ask(at("2026-12-22T10"), **NINE, max_fires=5, payload=b"new")
    assert driver.step(at("2026-12-22T10"), fire=False).outcomes == ["UPDATED", "UPDATED"]
    assert due(driver) == "2026-12-24T09"
    store = ScheduleStore(driver.rows)
    name = keys.schedule_key("demo", "a")
    row = decode_pending(store.pending_at(name, store.named(name) or b""))
    assert row.occurrence == 1, "an update with the same rule keeps its count"


def test_a_change_that_leaves_nothing_ends_a_schedule() -> None:
    driver = begun("a", "b", end_at=at("2026-12-24T12"))
    set_calendar(driver, "2026-12-22", "2026-12-23", "2026-12-24")
    effects = driver.engine.advance_jobs(NOW, Budget(100, 100))
    assert effects.outcomes == {"COMPLETED": 2}
    for told in effects.lifecycle:
        assert (told.reason, told.code) == (
            *("calendar de was changed, and leaves out all that follows", "calendar"),
        )
    driver.end(NOW)
    assert driver.engine.pending == 0


@pytest.mark.parametrize("budget", [Budget(1, 1), Budget(2, 1), Budget(10, 2)])
def test_a_walk_that_is_rolled_back_and_handed_on_moves_each_once(budget: Budget) -> None:
    names = [f"s{number}" for number in range(7)]
    driver = begun(*names)
    set_calendar(driver, "2026-12-22")
    told: list[str] = []
    for turn in range(100):
        if not driver.engine.jobs.under_way:
            break
        advance(driver, NOW, budget, commit=False)
        if turn % 2:
            rebuilt(driver, NOW)
        told += advance(driver, NOW, budget)
    assert sorted(each.split()[1] for each in told) == names
    assert {due(driver, name) for name in names} == {"2026-12-23T09"}
    assert fires(driver, "2026-12-23T12") == ["12-23T09"] * 7


def test_it_matters_not_when_a_schedule_follows() -> None:
    """Walked at once, or met when it comes due hours later: the same instants."""
    found = []
    for late in (False, True):
        driver = begun("a", cron="0 */3 * * *")
        driver.step(at("2026-12-22T09"), take=0)
        set_calendar(driver, "2026-12-22", now_ms=at("2026-12-22T10"))
        if not late:
            finish(driver, at("2026-12-22T10"))
        now = at("2026-12-23T00")
        found.append((driver.run(now), due(driver)))
    assert found[0] == found[1] == (["a"], "2026-12-23T03")


@pytest.mark.parametrize("again", [False, True])
def test_a_calendar_that_is_removed_amid_a_change_is_followed_to_the_end(again: bool) -> None:
    driver = begun("a", "b", "c", "e")
    set_calendar(driver, "2026-12-22")
    advance(driver, NOW, Budget(2, 2))
    driver.ask(NOW, action="CALENDAR_REMOVE", schedule_id="de")
    driver.ask(NOW, **NINE, payload=b"new")
    step = driver.step(NOW, fire=False)
    assert step.outcomes == ["CANCELLED", "REJECTED"]
    assert step.codes == ["unknown_calendar"]
    assert calendars(driver.rows, b"demo") == []
    assert days_in(driver.rows, b"demo", "de") is None
    if again:
        assert set_calendar(driver, "2026-12-22") == ["ACCEPTED"]
    rebuilt(driver, NOW)
    finish(driver, NOW)
    assert {due(driver, name) for name in "abce"} == {"2026-12-23T09"}
    assert [name for name, _ in calendars(driver.rows, b"demo")] == ["de"] * again
    assert bool(driver.engine._store.named(calendar_key(b"demo", "de"))) == again


def test_the_calendars_of_a_removed_tenant_are_forgotten() -> None:
    driver = begun("a")
    driver.apply(removed=True)
    for second in range(4):
        driver.sweep(NOW + second * 1_000)
    assert driver.engine._store.named(calendar_key(b"demo", "de")) is None
    assert calendars(driver.rows, b"demo") == []


@pytest.mark.parametrize(
    ("next_at", "arrives", "wanted"),
    [
        ("2026-12-23T09", "2026-12-22T08", "2026-12-24T09"),
        ("2026-12-22T09", "2026-12-22T08", "2026-12-22T09"),
        ("2026-12-23T09", "2026-12-23T10", "2026-12-23T09"),
    ],
)
def test_what_is_imported_heeds_the_days_of_the_calendar_here(
    next_at: str, arrives: str, wanted: str
) -> None:
    driver = begun()
    set_calendar(driver, "2026-12-23")
    standing = {"next_at": at(next_at), "occurrence": 3, "version": 2, "paused": False}
    driver.ask(at(arrives), schedule_id="a", standing=standing, **NINE)
    assert driver.step(at(arrives), fire=False).outcomes == ["ACCEPTED"]
    assert due(driver) == wanted
