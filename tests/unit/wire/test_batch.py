"""A batch says what it follows, whatever records it holds."""

from __future__ import annotations

from belfry.wire.batch import SourceBatch


def test_an_empty_batch_still_moves_on() -> None:
    # Compacted, aborted and control records take offsets and are not delivered.
    start, next_position, *rest = SourceBatch(7, 9, [])
    assert (start, next_position, rest) == (7, 9, [[], 1, True])


def test_batches_that_follow_one_another_are_joined() -> None:
    first, second, third = (SourceBatch(start, start + 1, []) for start in (7, 8, 9))
    assert first.joined(second).joined(third) == SourceBatch(7, 10, [], parts=3)
