"""A batch says what it follows, whatever records it holds."""

from __future__ import annotations

from belfry.wire.batch import SourceBatch


def test_an_empty_batch_still_moves_on() -> None:
    # Compacted, aborted and control records take offsets and are not delivered.
    start, next_position, records = SourceBatch(7, 9, [])
    assert (start, next_position, records) == (7, 9, [])
