"""A batch says what it follows, whatever records it holds."""

from __future__ import annotations

from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord


def test_an_empty_batch_still_moves_on() -> None:
    # Compacted, aborted and control records take offsets and are not delivered.
    start, next_position, *rest = SourceBatch(7, 9, [])
    assert (start, next_position, rest) == (7, 9, [[], 1, True, 0])


def test_batches_that_follow_one_another_are_joined() -> None:
    first, second, third = (SourceBatch(start, start + 1, []) for start in (7, 8, 9))
    assert first.joined(second).joined(third) == SourceBatch(7, 10, [], parts=3)
    own = second._replace(appended=False, size=20)
    for one, other in ((first._replace(size=3), own), (own, third._replace(size=3))):
        joined = one.joined(other)
        # One producer's own time among them, and not all are the broker's.
        assert (joined.appended, joined.size) == (False, 23)


def test_what_is_left_of_a_batch_begins_where_taking_in_ended() -> None:
    records = [(n, 0, None, b"v", None) for n in (7, 8, 11)]
    batch = SourceBatch(7, 14, records, parts=2, size=3)
    assert batch.behind(7) == batch
    assert batch.behind(9) == SourceBatch(9, 14, records[2:], parts=2, size=1)
    assert batch.behind(12) == SourceBatch(12, 14, [], parts=2)
    assert batch.behind(14) is None


def test_each_part_of_a_batch_has_its_own_size() -> None:
    """What a step may write follows from it: the parts of a batch may not write as much each."""
    records: list[SourceRecord] = [(n, 0, b"k", b"v" * n, [("h", b"12")]) for n in (1, 2, 3)]
    first, rest = SourceBatch(1, 4, records, size=27).divided(1)
    assert (first.size, rest.size) == (8, 19)
    assert (first.next_position, rest.start, first.parts, rest.parts) == (2, 2, 0, 1)
    assert (first.records, rest.records) == (records[:1], records[1:])
