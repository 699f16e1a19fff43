"""Batches that aiokafka reads back, and requests that hold each partition once."""

from __future__ import annotations

import os
from io import BytesIO
from typing import Any

import pytest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatch

from belfry.schedules.identity import partition_of
from belfry.transactions import batches as batching
from belfry.transactions import packing
from belfry.transactions import produce as producing
from belfry.transactions.batches import ProducedBatch, StepBatches, Writer, after, requests_of
from belfry.transactions.packing import CODECS, codec_of, packed
from belfry.transactions.placing import partitioner
from belfry.transactions.produce import Produce, ProduceAnswer

NOW_MS = 1_700_000_000_000


def read(batch: ProducedBatch) -> Any:
    return DefaultRecordBatch(batch.data)


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_they_were(codec: str) -> None:
    step = StepBatches(CODECS[codec], {}, NOW_MS)
    given = [(None, b"v" * 500, []), (b"k", None, [("h", b"1"), ("none", None)]), (b"", b"", [])]
    for key, value, headers in given:
        step.add(("t", 1), key, value, headers)
    (batch,) = step.finish(Writer(7, 3), {("t", 1): 40})
    found = read(batch)
    assert found.validate_crc()
    head = found.is_transactional, found.producer_id, found.producer_epoch, found.base_sequence
    assert head == (True, 7, 3, 40)
    told = [(r.key, r.value, r.headers, r.timestamp) for r in found]
    assert told == [(*each, NOW_MS) for each in given]
    assert batch.records == 3
    # Of all that follows the field itself.
    assert int.from_bytes(batch.data[8:12], "big") == len(batch.data) - 12


def test_a_full_batch_is_followed_by_another_with_the_next_sequence() -> None:
    step = StepBatches(0, {"small": 1_000}, NOW_MS)
    for number in range(50):
        step.add(("small", 0), b"%d" % number, b"v" * 100, [])
        step.add(("large", 0), b"%d" % number, b"v" * 100, [])
    found = step.finish(Writer(7, 0), {})
    small = [batch for batch in found if batch.where[0] == "small"]
    assert len(small) > 5
    assert all(len(batch.data) <= 1_000 for batch in small)
    assert [read(batch).base_sequence for batch in small] == [
        sum(before.records for before in small[:n]) for n in range(len(small))
    ]
    assert [r.key for b in small for r in read(b)] == [b"%d" % n for n in range(50)]
    assert sum(batch.where[0] == "large" for batch in found) == 1


def test_what_lies_apart_is_a_batch_of_its_own() -> None:
    step, records = StepBatches(0, {"small": 1_000}, NOW_MS), [(b"k", b"v", list[Any]())] * 3
    step.add(("t", 0), b"before", b"v", [])
    step.add_apart(("t", 0), records)
    step.add_apart(("t", 0), [*records, (b"ended", None, [("h", b"1")])])
    found = step.finish(Writer(7, 0), {})
    records_of = [list(read(batch)) for batch in found]
    assert [[r.key for r in those] for those in records_of] == [
        [b"before"], [b"k"] * 3, [b"k", b"k", b"k", b"ended"],
    ]  # fmt: skip
    assert [read(batch).base_sequence for batch in found] == [0, 1, 4]
    assert {r.timestamp for those in records_of for r in those} == {NOW_MS}
    with pytest.raises(BufferError, match="one batch of small"):
        step.add_apart(("small", 0), [(b"k", b"v" * 400, [])] * 3)


def test_rows_lie_as_if_they_had_been_added_one_by_one() -> None:
    rows = [(b"%d" % n, None if n % 7 == 0 else b"v" * n) for n in range(90)]
    steps = [StepBatches(0, {"c": 500}, NOW_MS) for _ in range(2)]
    for step in steps:
        step.add(("c", 0), b"before", b"", [])
    steps[0].add_rows(("c", 0), rows)
    for row in rows:
        steps[1].add(("c", 0), *row, [])
    found, wanted = ([b.data for b in step.finish(Writer(7, 0), {})] for step in steps)
    assert found == wanted
    assert len(found) > 3


def test_a_record_that_is_larger_than_a_batch_has_one_to_itself() -> None:
    step = StepBatches(0, {}, NOW_MS)
    for size in (10, 3_000_000, 10):
        step.add(("t", 0), None, bytes(size), [])
    assert [batch.records for batch in step.finish(Writer(7, 0), {})] == [1, 1, 1]


def test_behind_the_largest_sequence_comes_nought() -> None:
    assert after(2**31 - 3, 2) == 2**31 - 1
    assert after(2**31 - 1, 1) == 0
    assert after(2**31 - 1, 5) == 4


def test_a_request_holds_a_partition_once_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "REQUEST_BYTES", 100)
    given = [ProducedBatch((topic, 0), 1, bytes(40)) for topic in "abcaab"]
    requests = requests_of(given)
    assert [batch for some in requests for batch in some] == given
    for some in requests:
        assert len({batch.where for batch in some}) == len(some)
        assert sum(len(batch.data) for batch in some) <= 100


def test_a_request_is_full_to_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "REQUEST_BYTES", 100)
    given = [ProducedBatch((topic, 0), 1, bytes(50)) for topic in "abcdef"]
    assert [len(some) for some in requests_of(given)] == [2, 2, 2]


def test_records_that_do_not_get_smaller_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = bytearray(61) + os.urandom(100)
    assert packed(batch, CODECS["gzip"]) is batch
    same: Any = {CODECS["gzip"]: lambda records: records}
    monkeypatch.setattr(packing, "_PACK", same)
    assert packed(batch, CODECS["gzip"]) is batch


def test_a_key_goes_where_kafkas_own_partitioner_puts_it() -> None:
    for size in (*range(40), 500):
        key = os.urandom(size)
        assert partitioner()(key, 97) == partition_of(key, 97)


def test_an_answer_is_read_with_and_without_what_is_rarely_in_it() -> None:
    def partition(number: int, code: int, rest: bytes) -> bytes:
        numbers = (number, 4), (code, 2), (100 + number, 8), (NOW_MS, 8), (0, 8)
        return b"".join(n.to_bytes(size, "big", signed=True) for n, size in numbers) + rest

    # One record's error with a text, the partition's text, and a tagged field.
    rare = b"\x02" + (0).to_bytes(4, "big") + b"\x03no\x00" + b"\x04bad" + b"\x01\x00\x02xy"
    answer = (
        b"\x03"
         b"\x02a\x03" + partition(0, 0, b"\x01\x00\x00") + partition(1, 87, rare) + b"\x00"
        + b"\x02b\x02" + partition(2, 0, b"\x01\x00\x00") + b"\x00"
        + (250).to_bytes(4, "big") + b"\x00"
    )  # fmt: skip
    found = ProduceAnswer.decode(BytesIO(answer))
    assert found.throttle_time_ms == 250
    assert found.answers == [
        ("a", 0, 0, 100, NOW_MS), ("a", 1, 87, 101, NOW_MS), ("b", 2, 0, 102, NOW_MS),
    ]  # fmt: skip


def test_numbers_alone_are_read_without_the_fields_that_are_rarely_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hundreds of partitions answer at once."""
    monkeypatch.setattr(producing, "_ERRORS", None)
    partition = bytes(30) + b"\x01\x00\x00"
    answer = b"\x02\x02a\x03" + partition * 2 + b"\x00" + bytes(5)
    assert ProduceAnswer.decode(BytesIO(answer)).answers == [("a", 0, 0, 0, 0)] * 2


def test_a_broker_that_does_not_speak_a_version_is_told_from_one_that_does() -> None:
    assert Produce("id", 1, []).prepare({0: (3, 11)}).API_VERSION == 9
    with pytest.raises(NotImplementedError):
        Produce("id", 1, []).prepare({0: (0, 8)})
    assert ProduceRequest.API_KEY == Produce.API_KEY


@pytest.mark.parametrize(
    ("given", "codec"),
    [({}, "none"), ({"compression.type": "LZ4"}, "lz4"), ({"compression.codec": "zstd"}, "zstd")],
)
def test_the_codec_is_librdkafkas_property(given: dict[str, str], codec: str) -> None:
    assert codec_of(given) == codec


def test_a_codec_that_there_is_not_says_which_there_are() -> None:
    with pytest.raises(ValueError, match="brotli: none, gzip, snappy, lz4, zstd are allowed"):
        codec_of({"compression.type": "brotli"})
