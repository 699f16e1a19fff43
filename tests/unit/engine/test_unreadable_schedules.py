"""A schedule that this worker cannot read is held back by itself; all others fire."""

from __future__ import annotations

import re
from typing import Any

import pytest

from belfry.schedules.instants import parse_instant
from belfry.schedules.rule import Rule, encode_rule
from belfry.store.layout.pending import KIND_CODES
from belfry.store.layout.pending_bytes import due_and_seq
from tests.unit.engine.acknowledging import rebuilt
from tests.unit.engine.driver import T0, Driver
from tests.unit.engine.test_jobs import advance, job
from tests.unit.engine.unreadable import ZONES, newer_rule, pending, zone_known

__all__ = ["zone_known"]

NINE = parse_instant("2027-01-15T08:00:00Z")
DAY = 86_400_000
PAST = {"range_from": T0 - DAY, "range_until": T0}


def with_record(record: bytes, name: bytes = b"demo/new") -> Driver:
    """A partition whose changelog holds this record, taken over; `demo/a` and `other/b` wait."""
    driver = Driver()
    driver.ask(at=T0 + 5)
    driver.ask(tenant="other", schedule_id="b", at=T0 + 5)
    driver.step(T0, fire=False)
    engine = driver.engine
    engine._store.keep_in_timeline(name, record, *due_and_seq(record))
    driver.engine.claim(None)
    driver.end(T0)
    rebuilt(driver, T0)
    return driver


def test_a_rule_that_raises_another_error_is_held_back_alone() -> None:
    rule = encode_rule(Rule("RRULE", when="FREQ=DAILY", start_at=2**63 - 1))
    driver = with_record(pending(rule, "new", T0 + 1, kind=KIND_CODES["RRULE"]))
    step = driver.step(T0 + 5)
    assert sorted(step.ids) == ["a", "b"]
    assert [name for name, _ in step.effects.unreadable] == [b"demo/new"]


def test_a_rule_of_a_newer_release_is_held_back_alone() -> None:
    driver = with_record(pending(newer_rule(), "new", T0 + 1))
    assert sorted(driver.run(T0 + 10)) == ["a", "b"]
    assert driver.engine.pending == 1
    # Nothing is left to do: what is held back does not keep the loop busy.
    assert driver.engine.next_due_ms() is None


@pytest.mark.parametrize(
    ("kind", "flags"), [(7, 0), (KIND_CODES["AT"], 8), (KIND_CODES["EVERY"], 128)]
)
def test_kinds_and_flags_that_are_not_known_are_held_back(kind: int, flags: int) -> None:
    driver = with_record(pending(b"", "new", T0 + 1, kind=kind, flags=flags))
    assert sorted(driver.run(T0 + 10)) == ["a", "b"]
    assert driver.engine.pending == 1


def test_what_is_held_back_can_be_cancelled_paused_and_replaced() -> None:
    driver = with_record(pending(newer_rule(), "new", T0 + 1))
    driver.run(T0 + 10)
    driver.ask(action="PAUSE", schedule_id="new")
    driver.ask(action="RESUME", schedule_id="new")
    assert driver.step(T0 + 11).outcomes == ["PAUSED", "RESUMED"]
    assert driver.run(T0 + 12) == []
    driver.ask(action="TRIGGER", schedule_id="new")
    step = driver.step(T0 + 13)
    assert (step.shots, step.codes) == ([], ["unreadable_schedule"])
    driver.ask(schedule_id="new", at=T0 + 20)
    assert driver.step(T0 + 14).outcomes == ["UPDATED"]
    assert driver.run(T0 + 20) == ["new"]
    driver.ask(action="CANCEL", schedule_id="new")
    assert driver.step(T0 + 21).outcomes == ["TOO_LATE"]


@pytest.mark.parametrize(
    ("said", "verb"),
    [({"action": "MOVE", "move_ms": 5}, "read"), ({"action": "BACKFILL", **PAST}, "fired")],
    ids=["MOVE", "BACKFILL"],
)
def test_a_bulk_job_leaves_it_as_it_is_and_says_why(said: dict[str, Any], verb: str) -> None:
    driver = with_record(pending(newer_rule(), "new", T0 + 1))
    driver.ask(action="BULK", schedule_id="job", bulk=job(**said, prefix="new"))
    driver.step(T0, fire=False)
    before = driver.rows.get(b"kdemo/new")
    (told,) = advance(driver)
    assert (str(told.outcome), told.version, told.code) == ("REJECTED", 1, "unreadable_schedule")
    assert re.fullmatch(
        rf"bulk job job. The schedule cannot be {verb} by this worker: A rule starts with \w+: this"
        r" version reads format 1 with fields \w+. Run the version that wrote it, or a newer one.",
        told.reason or "",
    )
    assert driver.rows.get(b"kdemo/new") == before


def test_a_cancel_takes_what_is_held_back_away() -> None:
    driver = with_record(pending(newer_rule(), "new", T0 + 1))
    driver.run(T0 + 10)
    driver.ask(action="CANCEL", schedule_id="new")
    assert driver.step(T0 + 11).outcomes == ["CANCELLED"]
    assert driver.engine.pending == 0


@pytest.mark.parametrize("commit", [True, False])
def test_a_zone_that_is_not_known_is_held_back_until_it_is(zone_known: ZONES, commit: bool) -> None:
    driver = Driver()
    for tenant in ("demo", "other"):
        driver.ask(
            tenant=tenant,
            schedule_id="z",
            kind="CRON",
            cron="0 9 * * *",
            timezone="Europe/Paris",
            timestamp_ms=NINE - 1000,
        )
    driver.ask(at=NINE)
    driver.step(NINE - 1000, fire=False)
    zone_known(False)
    driver.start(driver.rows)
    driver.sweep(NINE - 500)
    step = driver.step(NINE, commit=commit)
    assert step.ids == ["a"]
    assert [name for name, _ in step.effects.unreadable] == [b"demo/z", b"other/z"]
    assert "Europe/Paris" in step.effects.unreadable[0][1]
    # The same process does not try again, nor does the next one that lacks the zone.
    driver.run(NINE + 5)
    assert driver.engine.next_due_ms() is None
    driver.start(driver.rows)
    assert driver.run(NINE + 10) == []
    zone_known(True)
    driver.start(driver.rows)
    assert sorted(driver.run(NINE + 20)) == ["z", "z"]
    assert driver.engine.next_due_ms() == NINE + DAY


def test_an_owner_that_can_read_it_fires_it_after_a_take_over(zone_known: ZONES) -> None:
    driver = Driver()
    driver.ask(
        schedule_id="z",
        kind="CRON",
        cron="0 9 * * *",
        timezone="Europe/Paris",
        timestamp_ms=NINE - 1000,
    )
    driver.step(NINE - 1000, fire=False)
    zone_known(False)
    driver.start(driver.rows)
    assert driver.run(NINE) == []
    zone_known(True)
    rebuilt(driver, NINE + 1)
    assert driver.run(NINE + 5) == ["z"]


def test_one_that_catches_up_is_held_back_too(zone_known: ZONES) -> None:
    driver = Driver()
    driver.ask(
        schedule_id="z", kind="CRON", cron="* * * * *", timezone="Europe/Paris", misfire="FIRE_ALL"
    )
    driver.step(T0, fire=False)
    late = T0 + 3_600_000
    driver.step(late)
    zone_known(False)
    driver.start(driver.rows)
    driver.ask(at=late + 1)
    assert driver.step(late + 5).ids == []
    assert driver.run(late + 50) == ["a"]
    zone_known(True)
    driver.start(driver.rows)
    found = [each for ms in range(500, 2_500, 20) for each in driver.run(late + ms)]
    assert found == ["z"] * 60
