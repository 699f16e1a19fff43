"""Positions of work that ends out of order, and what a successor makes of them."""

from __future__ import annotations

import random

from belfry.delivery.progress import MOST_METADATA, SPAN, DeliveryPosition


def test_the_position_waits_for_the_slowest() -> None:
    progress = DeliveryPosition(10)
    for offset in (10, 11, 13, 14):  # 12 is a marker of a transaction.
        assert progress.fresh(offset)
    progress.ended(11)
    progress.ended(14)
    assert progress.position == 10
    progress.ended(10)
    assert progress.position == 13, "the marker is passed over"
    progress.ended(13)
    assert progress.position == 15
    assert progress.metadata() == ""


def test_a_successor_leaves_out_what_has_ended() -> None:
    progress = DeliveryPosition(10)
    for offset in range(10, 20):
        progress.fresh(offset)
    for offset in (10, 12, 15, 19):
        progress.ended(offset)
    after = DeliveryPosition(progress.position, progress.metadata())
    assert after.position == 11
    assert [o for o in range(11, 21) if after.fresh(o)] == [11, 13, 14, 16, 17, 18, 20]


def test_a_successor_that_has_read_little_remembers_the_rest() -> None:
    progress = DeliveryPosition(0)
    for offset in range(10):
        progress.fresh(offset)
    progress.ended(8)
    second = DeliveryPosition(progress.position, progress.metadata())
    assert second.fresh(0)
    second.ended(0)
    third = DeliveryPosition(second.position, second.metadata())
    assert [offset for offset in range(1, 10) if third.fresh(offset)] == [1, 2, 3, 4, 5, 6, 7, 9]


def test_reading_stops_before_the_metadata_grows_too_large() -> None:
    chance = random.Random(1)
    progress = DeliveryPosition(0)
    offset = 0
    while not progress.full:
        progress.fresh(offset)
        if offset and chance.random() < 0.5:
            progress.ended(offset)
        offset += 1
    assert offset == SPAN + 1
    # A batch may be under way when the limit is met.
    for offset in range(SPAN + 1, SPAN + 501):
        progress.fresh(offset)
        if chance.random() < 0.5:
            progress.ended(offset)
    assert len(progress.metadata()) <= MOST_METADATA


def test_metadata_of_others_is_not_taken_for_ours() -> None:
    for foreign in ("", "hello", "AQ==", "/w==", "é"):
        assert DeliveryPosition(5, foreign).fresh(5)


def test_ends_of_transactions_behind_the_last_record_are_passed_over() -> None:
    # 10 and 11 are records, 12 their transaction's end, 13 that of one that was aborted.
    progress = DeliveryPosition(10)
    progress.fresh(10), progress.fresh(11)
    assert not progress.read_to(14), "records are under way before it"
    progress.ended(10)
    progress.ended(11)
    assert progress.position == 14
    progress.fresh(14)
    progress.ended(14)
    assert progress.position == 15
    assert progress.read_to(16)
    assert progress.position == 16
    assert not progress.read_to(16)


def test_what_retention_removed_is_counted_without_what_had_ended() -> None:
    before = DeliveryPosition(10)
    for offset in range(10, 20):
        before.fresh(offset)
    for offset in (12, 13, 17):
        before.ended(offset)
    after = DeliveryPosition(before.position, before.metadata())
    after.kept_from(15)
    assert (after.position, after.removed) == (15, 3)
    assert [offset for offset in range(15, 20) if after.fresh(offset)] == [15, 16, 18, 19]
    assert (after.told(), after.told()) == (3, 0)


def test_where_all_is_kept_nothing_is_removed() -> None:
    progress = DeliveryPosition(10)
    progress.kept_from(4)
    progress.kept_from(10)
    assert (progress.position, progress.removed) == (10, 0)
