"""Words on leaders that have moved: the newest epoch counts, for a while."""

from __future__ import annotations

from belfry.kafka.moved_leaders import COUNTS_S, MovedLeaders

WHERE = ("fired", 0)


def test_the_newest_epoch_counts_and_is_news_once() -> None:
    moved = MovedLeaders()
    assert not moved.told
    assert moved.tell(WHERE, 3, 8, 100.0)
    assert not moved.tell(WHERE, 3, 8, 100.1)
    assert not moved.tell(WHERE, 2, 7, 100.2)
    assert moved.leader_of(WHERE, 100.3) == 3
    assert moved.tell(WHERE, 1, 9, 100.4)
    assert moved.leader_of(WHERE, 100.5) == 1
    assert moved.leader_of(("fired", 1), 100.5) is None


def test_what_is_no_news_does_not_count_for_longer() -> None:
    moved = MovedLeaders()
    moved.tell(WHERE, 3, 8, 100.0)
    moved.tell(WHERE, 3, 8, 100.0 + COUNTS_S / 2)
    assert moved.leader_of(WHERE, 99.9 + COUNTS_S) == 3
    assert moved.leader_of(WHERE, 100.0 + COUNTS_S) is None
    assert not moved.told


def test_a_topic_that_is_made_anew_is_believed_once_the_time_is_up() -> None:
    moved = MovedLeaders()
    moved.tell(WHERE, 3, 8, 100.0)
    assert moved.tell(WHERE, 1, 0, 100.0 + COUNTS_S)
    assert moved.leader_of(WHERE, 100.1 + COUNTS_S) == 1


def test_what_is_doubted_counts_no_more() -> None:
    moved = MovedLeaders()
    moved.tell(WHERE, 3, 8, 100.0)
    moved.doubt(WHERE, 2)
    assert moved.leader_of(WHERE, 100.1) == 3
    moved.doubt(WHERE, 3)
    assert moved.leader_of(WHERE, 100.1) is None
    moved.doubt(WHERE, 3)


def test_what_a_later_epoch_has_ended_counts_no_more() -> None:
    moved = MovedLeaders()
    moved.tell(WHERE, 3, 8, 100.0)
    moved.outdate(WHERE, 8)
    assert moved.leader_of(WHERE, 100.1) == 3
    moved.outdate(WHERE, 9)
    assert moved.leader_of(WHERE, 100.1) is None
    moved.outdate(WHERE, 9)
