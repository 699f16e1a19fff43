"""The due scan takes bounded chunks and never passes over anything."""

from __future__ import annotations

import pytest

from belfry.firing.due import Most, ScanPosition, due_chunk
from belfry.store.layout.keys import timeline_key

T0 = 1_800_000_000_000


def rows(*places: tuple[int, int]) -> list[tuple[bytes, bytes]]:
    """Rows due at T0 + n with a sequence."""
    return [(timeline_key(T0 + due, seq), b"row") for due, seq in places]


def test_when_all_is_taken_the_watermark_reaches_now() -> None:
    #  0   1   2   3
    #  W   a   b   now
    chunk = due_chunk(rows((1, 1), (2, 2)), ScanPosition.at(T0), T0 + 3, Most(5, 100))
    assert len(chunk.rows) == 2
    assert chunk.position == ScanPosition.at(T0 + 3)


def test_a_full_chunk_ends_amid_its_last_instant() -> None:
    #  0   1   2       3
    #  W   a   b c | d now
    chunk = due_chunk(
        rows((1, 1), (2, 2), (2, 3), (2, 4)), ScanPosition.at(T0), T0 + 3, Most(3, 100)
    )
    assert [key for key, _ in chunk.rows] == [key for key, _ in rows((1, 1), (2, 2), (2, 3))]
    assert chunk.position.watermark_ms == T0 + 1
    assert (T0 + 2, 3) < chunk.position.next <= (T0 + 2, 4)


def test_a_chunk_that_is_just_full_does_not_claim_to_have_reached_now() -> None:
    chunk = due_chunk(rows((1, 1), (2, 2)), ScanPosition.at(T0), T0 + 3, Most(2, 100))
    assert chunk.position.watermark_ms == T0 + 1


def test_a_clock_that_goes_back_does_not_take_the_watermark_along() -> None:
    #  0   1   2
    #     now  W
    assert due_chunk([], ScanPosition.at(T0 + 2), T0 + 1, Most(5, 100)).position == ScanPosition.at(
        T0 + 2
    )
    amid = due_chunk(rows((3, 1)), ScanPosition.at(T0 + 2), T0 + 1, Most(1, 100)).position
    assert amid.watermark_ms == T0 + 2


def test_a_fresh_reach_begins_behind_its_watermark() -> None:
    fresh = ScanPosition.at(T0)
    assert fresh.has_passed((T0, 2**64 - 1))
    assert not fresh.has_passed((T0 + 1, 0))


def test_a_chunk_has_so_many_bytes_or_one_row_more() -> None:
    due = rows(*((n, n) for n in range(1, 100)))
    chunk = due_chunk(due, ScanPosition.at(T0), T0 + 200, Most(1_000, 100 * len(b"row") // 2))
    assert len(chunk.rows) == 50
    assert chunk.position.watermark_ms == T0 + 49
    assert len(due_chunk(due, ScanPosition.at(T0), T0 + 200, Most(1_000, 0)).rows) == 1
    all_of_them = due_chunk(due, ScanPosition.at(T0), T0 + 200, Most(1_000, 1_000))
    assert len(all_of_them.rows) == 99
    assert all_of_them.position == ScanPosition.at(T0 + 200)
    assert due_chunk([], ScanPosition.at(T0), T0 + 2, Most(5, 0)).rows == []


@pytest.mark.parametrize("at_most", [1, 31, 32, 33, 40, 63, 64, 65, 99])
def test_a_chunk_has_no_more_rows_than_it_may(at_most: int) -> None:
    """A step fires so many at most; the others are the next one's."""
    due = rows(*((n, n) for n in range(1, 101)))
    chunk = due_chunk(due, ScanPosition.at(T0), T0 + 200, Most(at_most, 10_000))
    assert chunk.rows == due[:at_most]
    assert chunk.position == ScanPosition(T0 + at_most - 1, (T0 + at_most, at_most + 1))


@pytest.mark.parametrize("number", [1, 31, 32, 33, 64])
def test_a_chunk_that_is_full_to_the_byte_ends_there(number: int) -> None:
    due = rows(*((n, n) for n in range(1, 101)))
    for more, taken in ((0, number), (1, number + 1)):
        size = len(b"row") * number + more
        chunk = due_chunk(due, ScanPosition.at(T0), T0 + 200, Most(1_000, size))
        assert len(chunk.rows) == taken
