"""Which rows differ whoever had a turn: of attempts at a step, against its log."""

from __future__ import annotations

import pytest

from belfry.playback.comparing import StepDifference, difference_at
from belfry.playback.tried import Standing, Tried, certain
from belfry.store.layout.locations import (
    BEHIND_LOCK,
    IN_BACKLOG,
    IN_CATCH_UP,
    IN_PAUSED,
    IN_TIMELINE,
    Location,
    encode_location,
)
from belfry.store.layout.pending_bytes import DEPENDS
from belfry.store.layout.records import ENDED_CANCELLED, ENDED_COMPLETED
from tests.unit.playback.rows import KEY, WRITTEN, fired, over, schedule, step

DUE, LATER = 10_000, 90_000
Row = bytes | None


def differs(
    before: Row,
    logged: Row,
    *given: Row,
    where: int | None = IN_TIMELINE,
    local: Row = None,
    bounded: bool = False,
    asked: bool = False,
) -> bool:
    """Whether a row of the log is another one than it can be; attempts gave the others."""
    of_log, tried = step({KEY: logged}), Tried()
    for each in given:
        tried.note(of_log, 1, {KEY: each}, lambda _: before)
    place = local if where is None else encode_location(Location(where, DUE, 5, b"lock"))
    standing = Standing(before, place, bounded)
    found = certain(of_log, [(tried, lambda _: standing)], lambda _: asked)
    assert found is None or found == difference_at(of_log, KEY, given[0])
    return found is not None


@pytest.mark.parametrize(
    ("where", "certainly"),
    [
        (IN_TIMELINE, True),
        (IN_PAUSED, True),
        (IN_BACKLOG, False),
        (IN_CATCH_UP, False),
        (BEHIND_LOCK, False),
    ],
)
def test_what_is_asked_for_differs_unless_it_is_held_back(where: int, certainly: bool) -> None:
    before, logged, given = schedule(LATER), schedule(LATER, 2), schedule(LATER, 3)
    assert differs(before, logged, given, given, where=where, asked=True) is certainly
    assert not differs(before, logged, given, where=where)


def test_where_nothing_waits_what_is_asked_for_differs() -> None:
    logged, given = schedule(LATER, 2), schedule(LATER, 3)
    assert differs(None, logged, given, where=None, asked=True)
    for how in (ENDED_CANCELLED, ENDED_COMPLETED):
        ended = over(5_000, how)
        assert differs(ended, logged, given, where=None, local=ended, asked=True)


def test_attempts_that_are_not_of_one_mind_leave_a_doubt() -> None:
    before, logged = schedule(LATER), schedule(LATER, 2)
    assert not differs(before, logged, schedule(LATER, 3), schedule(LATER, 4), asked=True)
    # One that gives the row of the log leaves none at all.
    assert not differs(before, logged, schedule(LATER, 3), logged, asked=True)


def test_what_fired_makes_room_for_a_bounded_tenant_and_for_who_waits() -> None:
    before, logged, given = schedule(LATER), schedule(LATER, 2), schedule(LATER, 3)
    assert not differs(before, logged, given, asked=True, bounded=True)
    waits = schedule(LATER, kind="AFTER_ACK", flags=DEPENDS)
    assert not differs(waits, logged, given, asked=True)
    assert not differs(before, waits, given, asked=True)
    assert not differs(before, logged, waits, asked=True)


def test_a_one_shot_that_was_due_and_ended_at_the_same_instant_has_the_same_marker() -> None:
    due = schedule(DUE, kind="AT")
    logged, given = over(12_000), over(12_000, ENDED_COMPLETED)
    assert differs(due, logged, given)
    # In a backlog as well: its end tells its instant.
    assert differs(due, logged, given, where=IN_BACKLOG)
    assert not differs(due, logged, over(12_001))
    assert not differs(due, logged, None)
    assert not differs(due, None, given)
    assert not differs(due, logged, given, asked=True)
    assert not differs(schedule(DUE), logged, given)
    # It is due up to the millisecond at which the step was written.
    assert differs(schedule(WRITTEN, kind="AT"), logged, given)
    assert not differs(schedule(WRITTEN + 1, kind="AT"), logged, given)


def test_what_recurs_and_has_come_to_the_same_occurrence_by_the_same_fires_has_one_row() -> None:
    due, logged = schedule(DUE), fired(DUE, 7, 70_000)
    assert differs(due, logged, fired(DUE, 7, 80_000))
    assert not differs(due, logged, fired(DUE, 8, 80_000))
    assert not differs(due, logged, schedule(80_000, 1))
    assert not differs(due, logged, fired(DUE, 7, 80_000), where=IN_BACKLOG)


@pytest.mark.parametrize(("next_ms", "certainly"), [(30_001, True), (30_000, False)])
def test_without_fires_it_differs_where_it_was_no_later_than_half_way_to_the_next(
    next_ms: int, certainly: bool
) -> None:
    """It was due at 10 000, and the step was written at 20 000."""
    due, logged = schedule(DUE), schedule(70_000, 1)
    assert differs(due, logged, schedule(next_ms, 1)) is certainly
    assert not differs(due, logged, schedule(next_ms, 2))
    assert not differs(due, logged, schedule(next_ms, 1), schedule(next_ms + 1, 1))


@pytest.mark.parametrize(
    ("given", "asked", "whole", "told"),
    [
        ([schedule(LATER)], True, True, True),
        ([schedule(LATER), schedule(LATER, 2)], True, True, True),
        ([schedule(LATER), None], False, True, False),
        # What fired may have let it go.
        ([schedule(LATER, kind="AFTER_ACK", flags=DEPENDS)], True, True, False),
        # Compaction may have removed it.
        ([schedule(LATER)], True, False, False),
    ],
)
def test_a_row_that_all_attempts_gave_is_missing_in_the_log(
    given: list[Row], asked: bool, whole: bool, told: bool
) -> None:
    of_log, tried = step({}, whole=whole), Tried()
    for each in given:
        tried.note(of_log, 1, {KEY: each}, lambda _: None)
    found = certain(of_log, [(tried, lambda _: Standing(None, None))], lambda _: asked)
    expected = difference_at(of_log, KEY, given[0]) if told else None
    assert found == expected
    tried.note(of_log, 1, {}, lambda _: None)
    assert certain(of_log, [(tried, lambda _: Standing(None, None))], lambda _: asked) is None


def test_it_has_to_differ_in_every_branch() -> None:
    before, logged, given = schedule(LATER), schedule(LATER, 2), schedule(LATER, 3)
    of_log, tried = step({KEY: logged}), Tried()
    tried.note(of_log, 1, {KEY: given}, lambda _: before)

    def found(*branches: Standing) -> StepDifference | None:
        sides = [(tried, lambda _, each=each: each) for each in branches]
        return certain(of_log, sides, lambda _: True)

    free = Standing(before, encode_location(Location(IN_TIMELINE, LATER, 5)))
    locked = Standing(before, encode_location(Location(BEHIND_LOCK, LATER, 5, b"lock")))
    assert found(free, free) == difference_at(of_log, KEY, given)
    assert found(free, locked) is None
