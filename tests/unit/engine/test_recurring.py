"""EVERY and CRON: each occurrence once, numbered without gaps, the next kept with the fire."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.store.layout.pending import Pending, decode_pending
from belfry.store.layout.records import ENDED_COMPLETED, MARKER, PENDING, decode_marker
from belfry.tenants.effective import Delivery
from belfry.wire.fired import decode_fired
from tests.unit.engine.driver import HOUR, T0, Driver, Shot

NAME = b"demo/a"
SECOND = 1_000
MINUTE = 60_000


def every(interval_ms: int, **fields: Any) -> Driver:
    """A partition with a schedule `a` of this interval, accepted at T0."""
    driver = Driver()
    driver.ask(kind="EVERY", interval_ms=interval_ms, **fields)
    assert driver.step(T0).outcomes == ["ACCEPTED"]
    return driver


def kept(driver: Driver) -> Pending:
    row = dict(driver.changelog)[NAME]
    assert row is not None
    assert row[1] == PENDING
    return decode_pending(row)


def shots_until(driver: Driver, until_ms: int) -> list[tuple[int, Shot]]:
    """Step at each due instant up to an instant; when each record left, and it."""
    shots: list[tuple[int, Shot]] = []
    while (due_ms := driver.engine.next_due_ms()) is not None and due_ms <= until_ms:
        shots += [(due_ms, shot) for shot in driver.step(due_ms, take=0).shots]
    return shots


def test_an_interval_fires_at_each_of_its_instants() -> None:
    # T0   1 s  2 s  3 s
    # ·    0    1    2
    driver = every(SECOND)
    shots = shots_until(driver, T0 + 3 * SECOND)
    assert [at - T0 for at, _ in shots] == [1_000, 2_000, 3_000]
    assert [shot.header("belfry-occurrence") for _, shot in shots] == [b"0", b"1", b"2"]
    assert len({shot.header("belfry-fire-id") for _, shot in shots}) == 3
    assert driver.engine.pending == 1


def test_the_next_occurrence_is_kept_by_the_step_that_fires() -> None:
    driver = every(SECOND, payload=b"p", group="g", headers=[{"name": "h", "value": b"v"}])
    before = kept(driver)
    step = driver.step(T0 + SECOND, take=0)
    (shot,) = step.shots
    assert (shot.value, shot.group) == (b"p", b"g")
    after = kept(driver)
    assert after == before._replace(
        due_ms=T0 + 2 * SECOND, nominal_ms=T0 + 2 * SECOND, occurrence=1
    )
    assert list(step.effects.rows)[:-1] == [NAME], "one row, and the manifest"


def test_a_step_that_is_rolled_back_fires_the_same_again() -> None:
    driver = every(SECOND)
    first = driver.step(T0 + SECOND, commit=False).shots
    assert driver.step(T0 + SECOND).shots == first
    assert driver.step(T0 + SECOND).shots == []


def test_a_late_fire_does_not_move_the_next() -> None:
    driver = every(SECOND)
    driver.step(T0 + SECOND + 700, take=0)
    assert driver.engine.next_due_ms() == T0 + 2 * SECOND


def test_within_a_minute_each_late_one_fires() -> None:
    # due at 1 s … 60 s, the owner is back at 60 s
    driver = every(SECOND)
    late = driver.step(T0 + MINUTE, take=0).shots
    assert [shot.header("belfry-occurrence") for shot in late] == [b"%d" % n for n in range(60)]
    assert driver.engine.next_due_ms() == T0 + 61 * SECOND


def test_an_interval_shorter_than_a_step_keeps_pace() -> None:
    driver = every(1)
    assert len(driver.step(T0 + 40, take=0).shots) == 40
    driver.step(T0 + 1_040, take=0)
    fired = driver.run(T0 + 1_040)
    assert len(fired) == 1_000 - 100


def test_those_of_a_group_take_turns_by_due_instant() -> None:
    # a: 10 20 30     b: 15 25
    driver = Driver()
    driver.ask(schedule_id="a", kind="EVERY", interval_ms=10, group="g", max_fires=3)
    rule: dict[str, Any] = {"kind": "EVERY", "interval_ms": 10, "start_at": T0 + 15, "max_fires": 2}
    driver.ask(schedule_id="b", group="g", **rule)
    driver.step(T0)
    assert driver.run(T0 + 40, at_most=10) == ["a", "b", "a", "b", "a"]


def test_what_is_put_back_does_not_overtake_its_group_in_the_timeline() -> None:
    # a: 10 30     b: 10 30     each step has room for one
    driver = Driver()
    for name in "ab":
        rule: dict[str, Any] = {"kind": "EVERY", "interval_ms": 20, "max_fires": 2}
        driver.ask(schedule_id=name, group="g", start_at=T0 + 10, **rule)
    driver.step(T0)
    assert driver.run(T0 + 40, at_most=1) == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("fields", "dues"),
    [
        ({"start_at": T0 + 500}, [500, 1_500, 2_500]),
        ({"start_at": T0 - 1_300}, [700, 1_700, 2_700]),
        ({"end_at": T0 + 2_000}, [1_000, 2_000]),
        ({"end_at": T0 + 1_999}, [1_000]),
        ({"max_fires": 2}, [1_000, 2_000]),
        ({"max_fires": 1}, [1_000]),
    ],
)
def test_windows_and_counts(fields: dict[str, int], dues: list[int]) -> None:
    driver = every(SECOND, **fields)
    assert [at - T0 for at, _ in shots_until(driver, T0 + 3 * SECOND - 1 + 1)][:3] == dues
    ends = fields.keys() & {"end_at", "max_fires"}
    assert driver.engine.pending == (0 if ends else 1)


def test_what_is_finished_removes_itself_and_says_so() -> None:
    driver = every(SECOND, max_fires=1)
    step = driver.step(T0 + SECOND, take=0)
    assert [str(each.outcome) for each in step.effects.lifecycle] == ["FIRED", "COMPLETED"]
    row = step.effects.rows[NAME]
    assert row is not None
    assert row[1] == MARKER
    marker = decode_marker(row)
    assert (marker.how, marker.occurrence) == (ENDED_COMPLETED, 1)
    for action, outcome in (("CANCEL", "TOO_LATE"), ("PAUSE", "TOO_LATE")):
        driver.ask(action=action)
        assert driver.step(T0 + 2 * SECOND).outcomes == [outcome]
    driver.ask(kind="EVERY", interval_ms=SECOND)
    assert driver.step(T0 + 2 * SECOND).outcomes == ["ACCEPTED"]


def test_cron_in_a_zone() -> None:
    # T0 is Friday 2027-01-15, 9 o'clock in Paris.
    driver = Driver()
    driver.ask(kind="CRON", cron="30 9 * * MON-FRI", timezone="Europe/Paris")
    driver.step(T0)
    fired = shots_until(driver, T0 + 5 * 24 * HOUR)
    assert [(at - T0) / HOUR for at, _ in fired] == [0.5, 72.5, 96.5]


def test_jitter_belongs_to_the_occurrence() -> None:
    driver = every(HOUR, jitter_ms=MINUTE)
    for number in range(1, 6):
        row = kept(driver)
        assert row.nominal_ms == T0 + number * HOUR
        assert 0 <= row.due_ms - row.nominal_ms <= MINUTE
        (shot,) = driver.step(row.due_ms, take=0).shots
        assert shot.header("belfry-occurrence") == b"%d" % (number - 1)


def test_an_envelope_numbers_its_occurrences() -> None:
    driver = Driver(delivery=Delivery.ENVELOPE)
    driver.note(envelope_head=b"")
    driver.ask(kind="EVERY", interval_ms=SECOND)
    driver.step(T0)
    driver.step(T0 + SECOND, take=0)
    (shot,) = driver.step(T0 + 2 * SECOND, take=0).shots
    event = decode_fired(shot.value or b"")
    assert (event.occurrence, event.missed, event.scheduled_at) == (1, 0, T0 + 2 * SECOND)


def test_a_trigger_leaves_the_cadence_alone() -> None:
    driver = every(SECOND)
    driver.ask(action="TRIGGER")
    (extra,) = driver.step(T0 + 300).shots
    assert extra.header("belfry-occurrence") == b"-1"
    assert driver.engine.next_due_ms() == T0 + SECOND
    (shot,) = driver.step(T0 + SECOND).shots
    assert shot.header("belfry-occurrence") == b"0"


@pytest.mark.parametrize(
    ("change", "goes_on"),
    [
        ({"payload": b"new"}, True),
        ({"misfire": "SKIP"}, True),
        ({"max_fires": 100}, True),
        ({"end_at": T0 + HOUR}, True),
        ({"interval_ms": 2 * SECOND}, False),
        ({"start_at": T0 + HOUR}, False),
        ({"kind": "CRON", "interval_ms": None, "cron": "* * * * *"}, False),
    ],
)
@pytest.mark.parametrize("pausing", [False, True])
def test_an_update_that_leaves_the_trigger_alone_goes_on(
    change: dict[str, Any], goes_on: bool, pausing: bool
) -> None:
    driver = every(SECOND)
    shots_until(driver, T0 + 3 * SECOND)
    if pausing:
        driver.ask(action="PAUSE")
    driver.ask(**{"kind": "EVERY", "interval_ms": SECOND, **change})
    assert driver.step(T0 + 3_400).outcomes[-1] == "UPDATED"
    row = kept(driver)
    assert row.version == 2
    assert row.occurrence == (3 if goes_on else 0)
    assert (row.nominal_ms == T0 + 4 * SECOND) == goes_on
    assert (driver.engine.next_due_ms() is None) == (pausing and goes_on)


def test_the_same_definition_again_is_unchanged() -> None:
    driver = every(SECOND)
    shots_until(driver, T0 + 3 * SECOND)
    driver.ask(kind="EVERY", interval_ms=SECOND)
    assert driver.step(T0 + 3_400).outcomes == ["UNCHANGED"]
    assert driver.engine.next_due_ms() == T0 + 4 * SECOND


def test_a_count_that_is_used_up_already_is_refused() -> None:
    driver = every(SECOND)
    shots_until(driver, T0 + 3 * SECOND)
    driver.ask(kind="EVERY", interval_ms=SECOND, max_fires=3)
    step = driver.step(T0 + 3_400)
    assert (step.outcomes, step.codes) == (["REJECTED"], ["bad_max_fires"])
    assert step.effects.lifecycle[-1].reason == (
        "max_fires is 3, and the schedule has fired 3 times: give more, or cancel it."
    )


@pytest.mark.parametrize("pausing", [False, True])
def test_an_import_goes_on_where_the_export_stood(pausing: bool) -> None:
    standing = {"next_at": T0 + 300, "occurrence": 7, "version": 3, "paused": pausing}
    driver = every(SECOND, standing=standing, max_fires=9)
    if pausing:
        assert driver.engine.next_due_ms() is None
        driver.ask(action="RESUME")
        driver.step(T0)
    shots = shots_until(driver, T0 + HOUR)
    assert [at - T0 for at, _ in shots] == [300, 1_300]
    assert [shot.header("belfry-occurrence") for _, shot in shots] == [b"7", b"8"]
    assert driver.engine.pending == 0
    driver.ask(action="CANCEL")
    assert driver.step(T0 + HOUR).effects.lifecycle[0].version == 3


@pytest.mark.parametrize(
    "rule", [{"kind": "EVERY", "interval_ms": HOUR}, {"kind": "CRON", "cron": "@daily"}]
)
def test_an_import_may_have_nothing_but_its_last_one_overdue(rule: dict[str, Any]) -> None:
    driver = Driver()
    standing = {"next_at": T0 - MINUTE // 2, "occurrence": 4, "version": 1, "paused": False}
    driver.ask(**rule, end_at=T0 - 1, standing=standing)
    assert driver.step(T0).outcomes == ["ACCEPTED"]
    (shot,) = driver.step(T0 + 1, take=0).shots
    assert shot.header("belfry-occurrence") == b"4"
    assert driver.engine.pending == 0


def test_old_and_new_occurrences_have_other_fire_ids() -> None:
    driver = every(SECOND)
    ids = [shot.header("belfry-fire-id") for _, shot in shots_until(driver, T0 + 2 * SECOND)]
    driver.ask(kind="EVERY", interval_ms=2 * SECOND)
    driver.step(T0 + 2 * SECOND)
    ids += [shot.header("belfry-fire-id") for _, shot in shots_until(driver, T0 + 8 * SECOND)]
    assert len(ids) == len(set(ids)) == 5


def test_what_recurs_is_pending_once() -> None:
    driver = every(SECOND)
    for second in range(1, 50):
        driver.step(T0 + second * SECOND, take=0)
        assert driver.engine.pending == 1
    driver.ask(action="CANCEL")
    assert driver.step(T0 + 50 * SECOND, fire=False).outcomes == ["CANCELLED"]
    assert driver.engine.pending == 0
    assert driver.run(T0 + HOUR) == []
