"""Heads of record batches, as a broker sends them: where batches end, and which of them count."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from belfry.wire.record_batches import CommittedBatches, RecordBatch, batches_in, end_of

HEAD = 61
CONTROL, TRANSACTIONAL, APPEND_TIME, ZSTD = 0x20, 0x10, 0x08, 4


def batch(
    base: int,
    records: bytes = b"records",
    *,
    attributes: int = 0,
    delta: int = 0,
    producer: int = -1,
    count: int = 1,
    epoch: int = 9,
    magic: int = 2,
) -> bytes:
    """A batch whose records are these bytes."""
    head = struct.pack(
        ">ibIhiqqqhii",
        epoch, magic, 77, attributes, delta, 1_000, 2_000, producer, 3, 5, count,
    )  # fmt: skip
    return struct.pack(">qi", base, len(head) + len(records)) + head + records


def only(data: bytes) -> RecordBatch:
    (found,) = batches_in(data)
    return found


def end(*, aborted: bool, producer: int, base: int) -> RecordBatch:
    """The control batch that ends a transaction."""
    record = b"\x20\0\0\0\x08" + b"\0\0" + (b"\0\0" if aborted else b"\0\1") + b"\0" * 8
    attributes = CONTROL | TRANSACTIONAL
    return only(batch(base, record, attributes=attributes, producer=producer))


def test_a_head_says_what_the_batch_is() -> None:
    data = batch(10, attributes=APPEND_TIME | ZSTD, delta=4, producer=7, count=5)
    assert len(data) == HEAD + 7
    found = only(data)
    assert found == (10, 15, 2, APPEND_TIME | ZSTD, 1_000, 2_000, 7, 5, data)
    assert (found.codec, found.appended, found.transactional, found.control) == (
        4,
        True,
        False,
        False,
    )
    assert bytes(found.packed) == b"records"
    inner = only(batch(3, attributes=TRANSACTIONAL))
    assert (inner.codec, inner.appended, inner.transactional, inner.control) == (
        0,
        False,
        True,
        False,
    )


def test_batches_follow_one_another_and_one_that_is_cut_is_left() -> None:
    first, second = batch(10, delta=2), batch(13, b"")
    assert [each.base_offset for each in batches_in(first + second)] == [10, 13]
    assert [each.next_offset for each in batches_in(first + second)] == [13, 14]
    for gone in (1, 30, len(second) - 17, len(second) - 12, len(second) - 1):
        assert [each.base_offset for each in batches_in(first + second[:-gone])] == [10]
        assert end_of(first + second[:-gone]) == (13, 9)
    assert list(batches_in(b"")) == []


@pytest.mark.parametrize("length", [-12, -1, 0, 4])
def test_a_length_that_does_not_reach_the_magic_ends_the_fetch(length: int) -> None:
    damaged = struct.pack(">qi", 13, length) + bytes(60)
    assert [each.base_offset for each in batches_in(batch(10) + damaged)] == [10]
    assert end_of(batch(10) + damaged) == (11, 9)
    assert list(batches_in(damaged)) == []


def test_the_shortest_batch_reaches_its_magic_and_no_further() -> None:
    old = struct.pack(">qiiB", 13, 5, 0, 1)
    assert only(old) == (13, 14, 1, 0, -1, -1, -1, 1, old)
    assert end_of(old) == (14, -1)


@pytest.mark.parametrize(("size", "magic"), [(HEAD - 1, -1), (HEAD, 2)])
def test_a_batch_that_is_shorter_than_its_head_is_damaged(size: int, magic: int) -> None:
    data = struct.pack(">qi", 10, size - 12) + batch(10, b"", delta=3)[12:size]
    assert only(data).magic == magic
    assert only(data).next_offset == (11 if magic < 0 else 14)
    assert end_of(data) == ((11, -1) if magic < 0 else (14, 9))


def test_the_end_of_a_fetch_is_that_of_its_last_whole_batch() -> None:
    assert end_of(batch(10, epoch=1) + batch(20, delta=5, epoch=2)) == (26, 2)
    assert end_of(batch(10, delta=-4, epoch=0)) == (11, 0)
    assert only(batch(10, delta=-4)).next_offset == 11
    assert end_of(b"") == (-1, -1)
    assert end_of(bytes(16)) == (-1, -1)


def test_a_fetch_may_end_with_a_batch_that_is_shorter_than_its_head() -> None:
    damaged = struct.pack(">qi", 20, HEAD - 13) + batch(20, b"", delta=3)[12 : HEAD - 1]
    assert end_of(batch(10) + damaged) == (21, -1)
    assert end_of(damaged + batch(30, delta=1)) == (32, 9)


def test_an_unpacked_batch_says_its_own_length_and_no_codec() -> None:
    data = batch(10, b"packed", attributes=APPEND_TIME | ZSTD, producer=7)
    found = only(data).unpacked(b"longer than before")
    wanted = batch(10, b"longer than before", attributes=APPEND_TIME, producer=7)
    assert found == wanted
    assert only(found).codec == 0


def test_an_end_tells_a_commit_from_a_roll_back() -> None:
    assert end(aborted=True, producer=7, base=30).aborts
    assert not end(aborted=False, producer=7, base=30).aborts
    assert not only(batch(30, bytes(16))).aborts


def judged(aborted: list[tuple[int, int]], *batches: Any) -> list[int]:
    """Offsets of batches that hold records for readers."""
    committed = CommittedBatches(aborted)
    found = [each if isinstance(each, RecordBatch) else only(each) for each in batches]
    return [each.base_offset for each in found if committed.holds(each)]


def test_the_timeline_of_the_page() -> None:
    """A transaction counts for nothing from its first offset to its end, the producer's next one
    counts again."""

    def by(producer: int, base: int, delta: int) -> bytes:
        return batch(base, attributes=TRANSACTIONAL, producer=producer, delta=delta)

    ended = end(aborted=True, producer=7, base=26)
    timeline = by(5, 10, 4), by(7, 20, 2), by(5, 23, 2), ended, by(7, 27, 2)
    assert judged([(7, 20)], *timeline) == [10, 23, 27]
    assert judged([], *timeline) == [10, 20, 23, 27]
    assert judged([(7, 22)], *timeline) == [10, 23, 27]
    assert judged([(7, 23)], *timeline) == [10, 20, 23, 27]
    assert judged([(5, 23), (7, 20)], *timeline) == [10, 27]
    assert judged([(7, 20), (5, 10)], *timeline) == [27]


def test_what_is_in_no_transaction_counts_whoever_wrote_it() -> None:
    assert judged([(7, 10)], batch(10, producer=7)) == [10]


def test_a_commit_ends_no_roll_back() -> None:
    kept = end(aborted=False, producer=7, base=15)
    later = batch(16, attributes=TRANSACTIONAL, producer=7)
    assert judged([(7, 10)], batch(10, attributes=TRANSACTIONAL, producer=7), kept, later) == []
