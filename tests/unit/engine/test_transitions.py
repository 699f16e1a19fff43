"""Every state and every action: the outcome, the version, and what the step does."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.identity import expected_of
from belfry.schedules.transitions import State
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.records import MARKER, PENDING, decode_marker
from tests.unit.engine.driver import HOUR, T0, Driver, Step

NAME = b"demo/a"
# Code and sentence of the outcomes that have one.
WHY: dict[str, tuple[str | None, str | None]] = {
    "NOT_FOUND": ("not_found", "No schedule has this id."),
    "CONFLICT": ("exists", "A schedule with this id exists; UPSERT replaces it."),
    "TOO_LATE": ("fired", "The schedule has fired within the last 24 hours."),
}


def standing(state: State) -> Driver:
    """A partition where schedule `a` of tenant `demo` is in this state at T0 + 10."""
    driver = Driver()
    if state is not State.ABSENT:
        driver.ask(at=T0 + (5 if state is State.OVER else HOUR), payload=b"old")
        driver.step(T0)
        if state is State.PAUSED:
            driver.ask(action="PAUSE")
        driver.step(T0 + 10)
    return driver


def asked(state: State, action: str, **fields: Any) -> tuple[Driver, Step]:
    driver = standing(state)
    driver.ask(action=action, **{"at": T0 + 2 * HOUR, "payload": b"new", **fields})
    return driver, driver.step(T0 + 10)


@pytest.mark.parametrize(
    ("state", "action", "outcome", "version", "pending"),
    [
        (State.ABSENT, "UPSERT", "ACCEPTED", 1, 1),
        (State.ABSENT, "CREATE", "ACCEPTED", 1, 1),
        (State.ABSENT, "CANCEL", "NOT_FOUND", None, 0),
        (State.ABSENT, "PAUSE", "NOT_FOUND", None, 0),
        (State.ABSENT, "RESUME", "NOT_FOUND", None, 0),
        (State.ABSENT, "TRIGGER", "NOT_FOUND", None, 0),
        (State.PENDING, "UPSERT", "UPDATED", 2, 1),
        (State.PENDING, "CREATE", "CONFLICT", 1, 1),
        (State.PENDING, "CANCEL", "CANCELLED", 1, 0),
        (State.PENDING, "PAUSE", "PAUSED", 1, 1),
        (State.PENDING, "RESUME", "UNCHANGED", 1, 1),
        (State.PENDING, "TRIGGER", "TRIGGERED", 1, 1),
        (State.PAUSED, "UPSERT", "UPDATED", 2, 1),
        (State.PAUSED, "CREATE", "CONFLICT", 1, 1),
        (State.PAUSED, "CANCEL", "CANCELLED", 1, 0),
        (State.PAUSED, "PAUSE", "UNCHANGED", 1, 1),
        (State.PAUSED, "RESUME", "RESUMED", 1, 1),
        (State.PAUSED, "TRIGGER", "TRIGGERED", 1, 1),
        (State.OVER, "UPSERT", "ACCEPTED", 1, 1),
        (State.OVER, "CREATE", "ACCEPTED", 1, 1),
        (State.OVER, "CANCEL", "TOO_LATE", 1, 0),
        (State.OVER, "PAUSE", "TOO_LATE", 1, 0),
        (State.OVER, "RESUME", "TOO_LATE", 1, 0),
        (State.OVER, "TRIGGER", "TOO_LATE", 1, 0),
    ],
)
def test_outcome_version_and_what_waits(
    state: State, action: str, outcome: str, version: int | None, pending: int
) -> None:
    driver, step = asked(state, action)
    (told,) = step.effects.lifecycle
    assert (str(told.outcome), told.version) == (outcome, version)
    assert (told.source_topic, told.source_partition) == ("belfry.schedules", 0)
    assert told.source_offset == len(driver.source) - 1
    assert driver.engine.pending == pending
    assert len(step.shots) == (outcome == "TRIGGERED")
    assert (told.code, told.reason) == WHY.get(outcome, (None, None))
    due = {"ACCEPTED": 2 * HOUR, "UPDATED": 2 * HOUR, "TOO_LATE": 5}.get(outcome, HOUR)
    assert told.due_at == (None if outcome in ("NOT_FOUND", "CONFLICT") else T0 + due)
    assert (told.generation is None) == (outcome == "NOT_FOUND")


@pytest.mark.parametrize("state", State)
def test_what_is_kept_is_in_the_changelog(state: State) -> None:
    _, step = asked(state, "UPSERT")
    row = step.effects.rows[NAME]
    assert row is not None
    assert row[1] == PENDING
    kept = decode_pending(row)
    assert (kept.due_ms, kept.payload) == (T0 + 2 * HOUR, b"new")


def test_what_is_cancelled_leaves_a_tombstone_and_never_fires() -> None:
    driver, step = asked(State.PENDING, "CANCEL")
    assert step.effects.rows[NAME] is None
    assert driver.run(T0 + 3 * HOUR) == []
    driver.ask(action="CANCEL")
    assert driver.step(T0 + 3 * HOUR).outcomes == ["NOT_FOUND"]


def test_what_fires_leaves_a_marker() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5)
    driver.step(T0)
    row = driver.step(T0 + 7).effects.rows[NAME]
    assert row is not None
    assert row[1] == MARKER
    marker = decode_marker(row)
    assert (marker.ended_ms, marker.due_ms, marker.version, marker.occurrence) == (
        T0 + 7,
        T0 + 5,
        1,
        1,
    )


def test_what_is_created_twice_is_told_from_another_one_of_its_id() -> None:
    driver, step = asked(State.PENDING, "CREATE", at=T0 + HOUR, payload=b"old")
    (told,) = step.effects.lifecycle
    assert (str(told.outcome), told.version, told.due_at) == ("CONFLICT", 1, T0 + HOUR)
    assert (told.code, told.reason) == (
        *("same_definition", "A schedule with this id and this very definition exists."),
    )
    assert driver.engine.pending == 1


def test_a_replaced_instant_never_fires() -> None:
    # T0   5    10      20
    # a@20 ──► a@10 ──► fires once
    driver = Driver()
    driver.ask(at=T0 + 20)
    driver.step(T0)
    driver.ask(at=T0 + 10)
    driver.step(T0 + 5)
    assert driver.run(T0 + 10) == ["a"]
    assert driver.run(T0 + HOUR) == []


def test_a_new_life_after_a_fire_has_other_fire_ids() -> None:
    driver = Driver()
    ids = set()
    for _ in range(2):
        driver.ask(at=T0 + 5)
        driver.step(T0 + 4)
        (shot,) = driver.step(T0 + 5, take=0).shots
        ids.add(shot.header("belfry-fire-id"))
    assert len(ids) == 2


def test_the_same_definition_again_changes_nothing() -> None:
    driver, step = asked(State.PENDING, "UPSERT", at=T0 + HOUR, payload=b"old")
    assert step.outcomes == ["UNCHANGED"]
    assert NAME not in step.effects.rows
    assert step.effects.lifecycle[0].due_at == T0 + HOUR
    assert driver.engine.pending == 1


def test_the_same_delay_again_keeps_the_first_instant() -> None:
    driver = Driver()
    driver.ask(kind="AFTER", delay_ms=HOUR, timestamp_ms=T0)
    driver.step(T0)
    driver.ask(kind="AFTER", delay_ms=HOUR, timestamp_ms=T0 + 60_000)
    step = driver.step(T0 + 60_000)
    assert step.outcomes == ["UNCHANGED"]
    assert step.effects.lifecycle[0].due_at == T0 + HOUR


@pytest.mark.parametrize(
    "change",
    [
        {"at": T0 + HOUR + 1},
        {"payload": None},
        {"payload": b""},
        {"key": b""},
        {"group": "g"},
        {"event_type": "t"},
        {"jitter_ms": 1},
        {"headers": [{"name": "h", "value": None}]},
        {"kind": "AFTER", "delay_ms": HOUR},
    ],
)
def test_every_part_of_a_definition_counts(change: dict[str, Any]) -> None:
    _, step = asked(State.PENDING, "UPSERT", **{"at": T0 + HOUR, "payload": b"old", **change})
    assert step.outcomes == ["UPDATED"]


def test_versions_count_changes_of_one_life() -> None:
    driver = standing(State.PENDING)
    versions = []
    for payload in (b"1", b"2", b"2", b"3"):
        driver.ask(at=T0 + HOUR, payload=payload)
        versions.append(driver.step(T0 + 10).effects.lifecycle[0].version)
    assert versions == [2, 3, 3, 4]
    (shot,) = driver.step(T0 + HOUR).shots
    assert shot.value == b"3"


@pytest.mark.parametrize(
    ("state", "action", "expected", "outcome"),
    [
        (State.PENDING, "UPSERT", 1, "UPDATED"),
        (State.PENDING, "UPSERT", 2, "CONFLICT"),
        (State.PENDING, "UPSERT", 0, "CONFLICT"),
        (State.PENDING, "CANCEL", 1, "CANCELLED"),
        (State.PENDING, "CANCEL", 7, "CONFLICT"),
        (State.PENDING, "TRIGGER", 7, "CONFLICT"),
        (State.ABSENT, "UPSERT", 0, "ACCEPTED"),
        (State.ABSENT, "UPSERT", 1, "CONFLICT"),
        (State.ABSENT, "CANCEL", 1, "NOT_FOUND"),
        (State.OVER, "CANCEL", 1, "TOO_LATE"),
    ],
)
def test_expected_versions(state: State, action: str, expected: int, outcome: str) -> None:
    before = standing(state).engine.pending
    driver, step = asked(state, action, expected_version=expected)
    assert step.outcomes == [outcome]
    if outcome == "CONFLICT":
        assert step.effects.lifecycle[0].code == "wrong_version"
        assert driver.engine.pending == before
        assert NAME not in step.effects.rows


@pytest.mark.parametrize("generation", [0, 7])
def test_a_version_of_what_is_not_there_is_told_so(generation: int) -> None:
    driver = Driver()
    driver.ask(at=T0 + HOUR, expected_version=expected_of(generation, 3))
    (told,) = driver.step(T0).effects.lifecycle
    code = "wrong_generation" if generation else "wrong_version"
    assert (str(told.outcome), told.code) == ("CONFLICT", code)
    assert told.reason == (
        "expected_version is 3, but no schedule has this id: leave it out to make one."
    )


def etag(driver: Driver, **fields: Any) -> int:
    """What `expected_version` holds for the answer to a request that is sent now."""
    driver.ask(**fields)
    (told,) = driver.step(T0).effects.lifecycle
    assert told.generation is not None
    assert told.version is not None
    return expected_of(told.generation, told.version)


@pytest.mark.parametrize("action", ["UPSERT", "CREATE", "CANCEL", "PAUSE", "RESUME", "TRIGGER"])
def test_an_etag_of_a_schedule_that_is_over_never_meets_its_successor(action: str) -> None:
    driver = Driver()
    first = etag(driver, at=T0 + HOUR)
    driver.ask(action="CANCEL")
    driver.step(T0)
    second = etag(driver, at=T0 + HOUR)
    driver.ask(action=action, at=T0 + 2 * HOUR, expected_version=first)
    (told,) = driver.step(T0).effects.lifecycle
    assert (str(told.outcome), told.code) == ("CONFLICT", "wrong_generation")
    assert driver.engine.next_due_ms() == T0 + HOUR
    driver.ask(action="CANCEL", expected_version=second)
    assert driver.step(T0).outcomes == ["CANCELLED"]


def test_every_answer_about_a_schedule_names_its_generation() -> None:
    driver = Driver()
    first = etag(driver, at=T0 + HOUR, request_id="r")
    assert etag(driver, at=T0 + HOUR, request_id="r") == first
    assert etag(driver, at=T0 + HOUR) == first
    assert etag(driver, action="CREATE", at=T0 + HOUR) == first
    assert etag(driver, action="PAUSE") == etag(driver, action="RESUME") == first
    assert etag(driver, at=T0 + 2 * HOUR, expected_version=first) == first + 1
    driver.ask(action="CANCEL", expected_version=first)
    (told,) = driver.step(T0).effects.lifecycle
    assert (str(told.outcome), told.code) == ("CONFLICT", "wrong_version")
    driver.run(T0 + 2 * HOUR)
    driver.ask(action="CANCEL", expected_version=first + 1)
    assert driver.step(T0 + 2 * HOUR).outcomes == ["TOO_LATE"]


def test_a_trigger_fires_an_extra_one_and_leaves_the_pending_one_alone() -> None:
    #  T0      10             1h
    #  a@1h    trigger ► -1   ► 0
    driver, step = asked(State.PENDING, "TRIGGER")
    (extra,) = step.shots
    assert extra.header("belfry-occurrence") == b"-1"
    assert extra.header("belfry-scheduled-at") == b"2027-01-15T08:00:00.010Z"
    assert extra.value == b"old"
    identity = extra.header("belfry-fire-id")
    assert identity is not None
    assert step.effects.lifecycle[0].fire_id == identity.decode()
    assert NAME not in step.effects.rows
    assert driver.engine.next_due_ms() == T0 + HOUR
    (due,) = driver.step(T0 + HOUR).shots
    assert due.header("belfry-occurrence") == b"0"
    assert due.header("belfry-fire-id") != extra.header("belfry-fire-id")


def test_each_trigger_has_a_fire_id_of_its_own() -> None:
    driver = standing(State.PENDING)
    for _ in range(3):
        driver.ask(action="TRIGGER")
    shots = driver.step(T0 + 10).shots
    assert len({shot.header("belfry-fire-id") for shot in shots}) == 3


@pytest.mark.parametrize("action", ["UPSERT", "PAUSE", "TRIGGER", "CANCEL", "CREATE"])
def test_the_reason_of_who_asked_is_told_where_belfry_has_none(action: str) -> None:
    _, step = asked(State.PENDING, action, request_id="r-1", reason="customer paid")
    (told,) = [each for each in step.effects.lifecycle if each.request_id == "r-1"]
    assert (told.reason == "customer paid") is (told.outcome != "CONFLICT")
    assert told.reason


def test_a_null_value_cancels() -> None:
    driver = standing(State.PENDING)
    driver.send(None, key=NAME)
    assert driver.step(T0 + 10).outcomes == ["CANCELLED"]
    assert driver.engine.pending == 0


def test_after_a_day_a_fired_schedule_is_forgotten() -> None:
    #  fired       24 h - 1   24 h
    #  T0 + 10     TOO_LATE   NOT_FOUND
    driver = standing(State.OVER)
    for now_ms, outcome in ((T0 + 9 + 24 * HOUR, "TOO_LATE"), (T0 + 10 + 24 * HOUR, "NOT_FOUND")):
        driver.ask(action="CANCEL", timestamp_ms=now_ms)
        assert driver.step(now_ms).outcomes == [outcome]


def test_requests_of_one_batch_see_each_other() -> None:
    driver = Driver()
    for action in ("CREATE", "CREATE", "UPSERT", "TRIGGER", "CANCEL", "CANCEL", "CREATE"):
        driver.ask(action=action, at=T0 + 5)
    step = driver.step(T0)
    assert step.outcomes == [
        "ACCEPTED", "CONFLICT", "UNCHANGED", "TRIGGERED", "CANCELLED", "NOT_FOUND", "ACCEPTED",
    ]  # fmt: skip
    assert driver.engine.pending == 1
    assert driver.run(T0 + 5) == ["a"]


def test_a_cancel_that_arrives_with_the_fire_comes_too_late() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5)
    driver.step(T0)
    driver.ask(action="CANCEL")
    step = driver.step(T0 + 5)
    assert step.ids == ["a"]
    assert step.outcomes == ["TOO_LATE"]


def test_a_schedule_can_begin_anew_in_the_step_that_fires_it() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5)
    driver.step(T0)
    driver.ask(at=T0 + 9)
    step = driver.step(T0 + 5)
    assert (step.ids, step.outcomes) == (["a"], ["ACCEPTED"])
    assert driver.run(T0 + 9) == ["a"]
