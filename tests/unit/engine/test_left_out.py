"""Schedules that leave minutes out: what fires, what is missed, how they change, how they end."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine import compiled_rule
from belfry.schedules import triggers
from belfry.schedules.triggers import excepting, zones
from belfry.schedules.triggers.zones import zone
from tests.unit.engine.acknowledging import rebuilt
from tests.unit.engine.driver import HOUR, T0, Driver, Step

# T0 is 08:00 in UTC.
MINUTE = 60_000
NINE = "* 9 * * *"


def begun(**fields: Any) -> Driver:
    driver = Driver()
    driver.engine.claim(b"settings")
    driver.end(T0)
    driver.ask(kind="EVERY", **{"interval_ms": 30 * MINUTE, "except_cron": NINE, **fields})
    assert driver.step(T0).outcomes == ["ACCEPTED"]
    return driver


def next_due(driver: Driver) -> list[int]:
    """Minutes after 08:00 of what fires, one after another."""
    found = []
    while (due_ms := driver.engine.next_due_ms()) is not None:
        assert driver.run(due_ms) == ["a"]
        found.append((due_ms - T0) // MINUTE)
    return found


def told(step: Step) -> list[tuple[str, str | None]]:
    return [(str(each.outcome), each.reason) for each in step.effects.lifecycle]


def test_it_fires_but_not_in_the_minutes_that_are_left_out() -> None:
    assert next_due(begun(max_fires=4)) == [30, 120, 150, 180]


def test_the_zone_of_an_interval_is_kept_with_it() -> None:
    driver = begun(timezone="Europe/Paris", except_cron="* 10 * * *", max_fires=2)
    rebuilt(driver, T0)
    assert next_due(driver) == [30, 120]


def test_what_is_left_out_is_not_missed() -> None:
    driver = begun(max_lateness_ms=0)
    step = driver.step(T0 + 3 * HOUR + 1, take=0)
    # 08:30, 10:00, 10:30 and 11:00 were due; the last of them fires for all.
    assert step.ids == ["a"]
    assert step.shots[0].header("belfry-missed") == b"3"
    assert driver.engine.next_due_ms() == T0 + 210 * MINUTE


def test_another_exception_is_another_trigger() -> None:
    driver = begun()
    assert driver.run(T0 + 30 * MINUTE) == ["a"]
    assert driver.engine.next_due_ms() == T0 + 2 * HOUR
    at_ms = T0 + 40 * MINUTE
    driver.ask(at_ms, kind="EVERY", interval_ms=30 * MINUTE, except_cron=NINE, payload=b"new")
    assert driver.step(at_ms).outcomes == ["UPDATED"]
    assert driver.engine.next_due_ms() == T0 + 2 * HOUR
    driver.ask(at_ms, kind="EVERY", interval_ms=30 * MINUTE, payload=b"new")
    assert driver.step(at_ms).outcomes == ["UPDATED"]
    assert driver.engine.next_due_ms() == at_ms + 30 * MINUTE


def test_a_schedule_that_finds_nothing_more_ends_and_says_why() -> None:
    # The odd minutes, a little later each time; then more even ones than are looked through.
    start_ms = T0 + 2 * MINUTE - 14
    driver = begun(interval_ms=2 * MINUTE + 14, start_at=start_ms, except_cron="*/2 * * * *")
    step = driver.step(start_ms, take=0)
    assert step.ids == ["a"]
    ((outcome, reason),) = [each for each in told(step) if each[0] == "COMPLETED"]
    assert outcome == "COMPLETED"
    assert "except_cron '*/2 * * * *' leaves out all that follows" in (reason or "")
    assert driver.engine.next_due_ms() is None


def test_it_says_so_where_its_last_ones_are_given_up() -> None:
    start_ms = T0 + 2 * MINUTE - 14
    driver = begun(
        interval_ms=2 * MINUTE + 14, start_at=start_ms, except_cron="*/2 * * * *",
        misfire="SKIP", max_lateness_ms=0,
    )  # fmt: skip
    found = dict(told(driver.step(start_ms + 5, take=0)))
    assert "leaves out all that follows" in (found["COMPLETED"] or "")


@pytest.mark.parametrize(
    "fields", [{"max_fires": 1}, {"end_at": T0 + 40 * MINUTE}], ids=["its count", "its end"]
)
def test_a_schedule_that_ends_by_its_bounds_gives_no_reason(fields: dict[str, Any]) -> None:
    step = begun(**fields).step(T0 + 30 * MINUTE, take=0)
    assert ("COMPLETED", None) in told(step)


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"except_cron": "* * * * *"}, "never_fires", "leaves out each instant of its rule"),
        ({"end_at": T0 - 1}, "never_fires", "up to end_at"),
        ({"except_cron": "* 0-24 * * *"}, "bad_cron", "except_cron '* 0-24 * * *' cannot be read"),
        ({"except_cron": "0 * 0-5 * * *"}, "bad_cron", "give five fields"),
        ({"except_cron": "H 0 * * *"}, "bad_cron", "without H"),
        ({"except_cron": "@daily"}, "bad_cron", "give five fields"),
        ({"timezone": "Paris"}, "bad_timezone", "'Paris' is no IANA time zone"),
        ({"kind": "AFTER", "delay_ms": 5}, "bad_window", "except_cron is set, and kind AFTER"),
    ],
)
def test_what_is_refused(fields: dict[str, Any], code: str, words: str) -> None:
    driver = Driver()
    given = {"kind": "EVERY", "interval_ms": MINUTE, "except_cron": NINE, **fields}
    driver.ask(**given)
    (found,) = driver.step(T0).effects.lifecycle
    assert (str(found.outcome), found.code) == ("REJECTED", code)
    assert words in (found.reason or "")


def test_new_zone_data_moves_an_interval_out_of_what_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = begun(timezone="Europe/Paris", except_cron="* 10 * * *", interval_ms=90 * MINUTE)
    # 09:30 in UTC is 10:30 there, which is left out.
    assert driver.engine.next_due_ms() == T0 + 3 * HOUR
    for place, rederived, minutes in (("America/Noronha", 0, 180), ("Atlantic/Azores", 1, 270)):
        # 11:00 in UTC: 09:00 in the first one, and 10:00 in the other.
        with monkeypatch.context() as patched:
            patched.setattr(zones, "VERSION", f"made up of {place}")
            patched.setattr(excepting, "zone", lambda _, name=place: zone(name))
            _forget()
            rebuilt(driver, T0 + 1)
            assert driver.sweep(T0 + 1).rederived == rederived
        _forget()
        assert driver.engine.next_due_ms() == T0 + minutes * MINUTE


def _forget() -> None:
    triggers._trigger_of.cache_clear()
    compiled_rule.compiled_bare.cache_clear()
