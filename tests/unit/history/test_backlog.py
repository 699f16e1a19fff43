"""A partition counts as followed once it has been read as far as it reached."""

from __future__ import annotations

from belfry.history.backlog import Backlog


def assigned(*partitions: int) -> Backlog:
    backlog = Backlog()
    backlog.assign(frozenset(partitions))
    return backlog


def test_nothing_is_passed_before_its_end_is_known() -> None:
    backlog = assigned(0, 1)
    backlog.reached(0, 1_000)
    assert backlog.passed == frozenset()
    assert backlog.unknown() == [0, 1]


def test_the_end_is_passed_by_a_position_there_or_behind() -> None:
    backlog = assigned(0, 1, 2)
    backlog.ends_at(0, 5, 5)
    backlog.ends_at(1, 5, 4)
    backlog.ends_at(2, 0, 0)
    assert backlog.passed == {0, 2}
    assert backlog.unknown() == []
    backlog.reached(1, 4)
    assert 1 not in backlog.passed
    backlog.reached(1, 6)
    assert backlog.passed == {0, 1, 2}


def test_an_end_without_a_record_is_passed_when_nothing_follows() -> None:
    backlog = assigned(0, 1)
    backlog.ends_at(0, 5, 4)
    backlog.ended(0)
    backlog.ended(1)
    backlog.ended(7)
    assert backlog.passed == {0, 1}
    assert backlog.unknown() == []


def test_a_position_of_another_topic_of_this_name_says_nothing() -> None:
    backlog = assigned(0)
    backlog.ends_at(0, 5, 900)
    assert backlog.passed == frozenset()
    assert backlog.unknown() == [0]


def test_what_goes_is_not_followed_and_begins_anew_when_it_comes_back() -> None:
    backlog = assigned(0, 1)
    backlog.ended(0)
    backlog.ends_at(1, 9, 3)
    backlog.assign(frozenset({0, 1, 2}))
    assert backlog.passed == {0}
    assert backlog.unknown() == [2]
    backlog.assign(frozenset({1}))
    backlog.reached(1, 9)
    assert backlog.passed == {1}
    backlog.assign(frozenset({0, 1}))
    assert backlog.passed == {1}
    assert backlog.unknown() == [0]
