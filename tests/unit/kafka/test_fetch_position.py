"""Where a fetcher stands in a partition, with instants that are given."""

from __future__ import annotations

import pytest

from belfry.kafka.fetch_position import (
    LONGEST_PAUSE_S,
    PAUSE_S,
    UNKNOWN_S,
    FetchPosition,
    backoff_s,
)


def test_a_reader_that_falls_behind_is_not_fetched_ahead_for() -> None:
    place = FetchPosition(5)
    place.ahead_bytes = 100
    assert place.may_go_on(101)
    assert not place.may_go_on(100)
    place.took(60, behind=9)
    assert place.taken == 9
    assert place.may_go_on(41)
    place.stopped = True
    assert not place.may_go_on(41)


def test_an_end_is_news_once_and_below_the_last_stable_offset_never() -> None:
    place = FetchPosition(5)
    assert place.is_no_news(b"", last_stable=7)
    assert not place.is_no_news(b"", last_stable=5)
    assert place.went(b"")
    assert place.is_no_news(b"", last_stable=5)
    assert not place.is_no_news(b"batch", last_stable=5)


def test_what_was_refused_is_looked_at_again_after_a_moment() -> None:
    place = FetchPosition(0)
    place.refused(3.0)
    assert place.doubted
    assert place.not_before == pytest.approx(3.0 + PAUSE_S)


def test_a_topic_that_nobody_knows_is_told_of_once_each_time() -> None:
    place = FetchPosition(0)
    assert not place.unknown_too_long(1.0)
    assert not place.unknown_too_long(0.9 + UNKNOWN_S)
    assert place.unknown_too_long(1.0 + UNKNOWN_S)
    assert not place.unknown_too_long(1.1 + UNKNOWN_S)


def test_pauses_grow_up_to_a_bound() -> None:
    assert [backoff_s(failures) for failures in (1, 2, 3)] == pytest.approx([0.1, 0.2, 0.4])
    assert backoff_s(1_000) == LONGEST_PAUSE_S
