"""The bytes of a transaction's requests, read by what Kafka's protocol says of their fields.

https://kafka.apache.org/protocol: Produce v9 and v12, InitProducerId v4, AddPartitionsToTxn v3,
EndTxn v3 and v5.
"""

from __future__ import annotations

from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactBytes,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

from belfry.transactions.batches import ProducedBatch, Writer
from belfry.transactions.produce import Produce, ProduceAdding
from belfry.transactions.requests import (
    AddPartitionsToTxn,
    EndTxn,
    EndTxnWithEpoch,
    InitProducerId,
    added_codes,
)

TEXT = CompactString("utf-8")
TAGS = ("tags", TaggedFields)
PRODUCE = Schema(
    ("transactional_id", TEXT),
    ("acks", Int16),
    ("timeout_ms", Int32),
    (
        "topics",
        CompactArray(
            ("name", TEXT),
            ("partitions", CompactArray(("index", Int32), ("records", CompactBytes), TAGS)),
            TAGS,
        ),
    ),
    TAGS,
)
INIT = Schema(
    ("transactional_id", TEXT), ("timeout_ms", Int32), ("id", Int64), ("epoch", Int16), TAGS
)
ADD = Schema(
    ("transactional_id", TEXT),
    ("id", Int64),
    ("epoch", Int16),
    ("topics", CompactArray(("name", TEXT), ("partitions", CompactArray(Int32)), TAGS)),
    TAGS,
)
END = Schema(
    ("transactional_id", TEXT), ("id", Int64), ("epoch", Int16), ("committed", Boolean), TAGS
)
WRITER = Writer(2**40, 7)


def read(request: Any, version: int, schema: Schema) -> Any:
    """The fields of a request in this version; nothing is left behind them."""
    made = request.prepare({request.API_KEY: (0, 99)})
    assert version == made.API_VERSION
    data = BytesIO(made.encode())
    found = schema.decode(data)
    assert data.read() == b""
    return found


@pytest.mark.parametrize(("kind", "version"), [(Produce, 9), (ProduceAdding, 12)])
def test_batches_lie_under_their_topics_and_partitions(kind: Any, version: int) -> None:
    given = [
        ProducedBatch(("a", 0), 1, b"first"),
        ProducedBatch(("b", 70_000), 1, bytearray(b"x" * 300)),
        ProducedBatch(("a", 2), 1, b""),
    ]
    request = kind("belfry.3", 1_500, given)
    assert request.batches == given
    assert read(request, version, PRODUCE) == (
        "belfry.3",
        -1,
        1_500,
        [
            ("a", [(0, b"first", {}), (2, b"", {})], {}),
            ("b", [(70_000, b"x" * 300, {})], {}),
        ],
        {},
    )


def test_a_fence_replaces_anybody_and_a_later_epoch_only_the_one_that_it_names() -> None:
    request = InitProducerId("belfry.3", 60_000)
    assert read(request, 4, INIT) == ("belfry.3", 60_000, -1, -1, {})
    named = InitProducerId("belfry.3", 60_000, WRITER)
    assert read(named, 4, INIT) == ("belfry.3", 60_000, 2**40, 7, {})


def test_partitions_are_added_by_topic() -> None:
    places = {("b", 1), ("a", 3), ("a", 0)}
    assert read(AddPartitionsToTxn("belfry.3", WRITER, places), 3, ADD) == (
        "belfry.3",
        2**40,
        7,
        [("a", [0, 3], {}), ("b", [1], {})],
        {},
    )


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(("kind", "version"), [(EndTxn, 3), (EndTxnWithEpoch, 5)])
def test_an_end_says_whether_it_commits(kind: Any, version: int, commit: bool) -> None:
    request = kind("belfry.3", WRITER, commit=commit)
    assert read(request, version, END) == ("belfry.3", 2**40, 7, commit, {})


def test_what_was_left_out_because_of_another_partition_says_nothing_of_itself() -> None:
    answer = SimpleNamespace(
        topics=[("a", [(0, 0, {}), (1, 55, {})], {}), ("b", [(2, 29, {})], {})]
    )
    assert added_codes(answer) == {("a", 0): 0, ("b", 2): 29}
