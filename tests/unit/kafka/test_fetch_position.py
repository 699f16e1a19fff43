"""Where a fetcher stands in a partition, with instants that are given."""

from __future__ import annotations

import pytest

from belfry.kafka.fetch_position import (
    HANGS_S,
    LATE_S,
    LONGEST_PAUSE_S,
    PAUSE_S,
    SIP_BYTES,
    SOON_S,
    UNKNOWN_S,
    FetchPosition,
    backoff_s,
)


def test_a_reader_that_falls_behind_is_not_fetched_ahead_for() -> None:
    place = FetchPosition(5)
    goes_on = [place.may_go_on]
    place.put(3.0)
    goes_on.append(place.may_go_on)
    looks = [place.look_again_s(now_s) for now_s in (3.0, 3.005, 9.0)]
    assert looks == pytest.approx([SOON_S, 0.005, LATE_S])
    place.took(behind=9)
    assert place.taken == 9
    goes_on.append(place.may_go_on)
    place.stopped = True
    goes_on.append(place.may_go_on)
    assert goes_on == [True, False, True, False]


def test_only_a_small_answer_puts_a_partition_off() -> None:
    place = FetchPosition(5)
    place.sipped(SIP_BYTES, 3.0, 0.5)
    assert place.not_before == 0.0
    place.sipped(SIP_BYTES - 1, 3.0, 0.5)
    assert place.not_before == pytest.approx(3.5)


def test_what_waits_counts_until_it_is_taken_or_its_reader_may_hang() -> None:
    place = FetchPosition(5)
    place.put(3.0, 700)
    place.put(3.0, 300)
    found = [place.waiting_bytes(now_s) for now_s in (3.0, 3.0 + HANGS_S)]
    place.took(behind=7)
    found.append(place.waiting_bytes(3.0))
    place.took(behind=9)
    found.append(place.waiting_bytes(3.0))
    assert found == [1_000, 0, 1_000, 0]


def test_sips_of_all_partitions_begin_at_the_same_instants() -> None:
    """So one request asks for all, wherever in a sip the answer of each has come."""
    begins = set()
    for came_s in (3.01, 3.2, 3.49):
        place = FetchPosition(5)
        place.sipped(1, came_s, 0.5)
        begins.add(place.not_before)
    assert begins == {3.5}


def test_who_takes_no_sips_is_never_put_off() -> None:
    place = FetchPosition(5)
    place.sipped(1, 3.0, 0.0)
    assert place.not_before == 0.0


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
