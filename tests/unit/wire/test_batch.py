"""A batch says what it follows, whatever records it holds."""

from __future__ import annotations

from belfry.wire.batch import SourceBatch


def test_an_empty_batch_still_moves_on() -> None:
    # Compacted, aborted and control records take offsets and are not delivered.
    start, next_position, *rest = SourceBatch(7, 9, [])
    assert (start, next_position, rest) == (7, 9, [[], 1, True, 0])


def test_batches_that_follow_one_another_are_joined() -> None:
    first, second, third = (SourceBatch(start, start + 1, []) for start in (7, 8, 9))
    assert first.joined(second).joined(third) == SourceBatch(7, 10, [], parts=3)


def test_what_is_left_of_a_batch_begins_where_taking_in_ended() -> None:
    records = [(n, 0, None, b"v", None) for n in (7, 8, 11)]
    batch = SourceBatch(7, 14, records, parts=2)
    assert batch.behind(7) == batch
    assert batch.behind(9) == SourceBatch(9, 14, records[2:], parts=2)
    assert batch.behind(12) == SourceBatch(12, 14, [], parts=2)
    assert batch.behind(14) is None
