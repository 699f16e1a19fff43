"""Answers to Produce, read by what Kafka's protocol says of their fields (versions 9 to 12)."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from aiokafka.protocol.types import (
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

from belfry.transactions import errors
from belfry.transactions.asking import Ended
from belfry.transactions.errors import Meaning
from belfry.transactions.produce import Answered, ProduceAnswer
from tests.unit.transactions.scripted import Script, batches, opened

TEXT = CompactString("utf-8")
TAGS = ("tags", TaggedFields)
ERRORS = CompactArray(("batch_index", Int32), ("message", TEXT), TAGS)
PARTITION = CompactArray(
    ("index", Int32), ("error_code", Int16), ("base_offset", Int64), ("appended_ms", Int64),
    ("log_start", Int64), ("record_errors", ERRORS), ("error_message", TEXT), TAGS,
)  # fmt: skip
ANSWER = Schema(
    ("topics", CompactArray(("name", TEXT), ("partitions", PARTITION), TAGS)),
    ("throttle_time_ms", Int32),
    TAGS,
)
# Of Kafka 4.3, and of its partitions that lack replicas, which say nothing or how many there are.
COORDINATOR_MOVES = (
    "Unable to verify the partition has been added to the transaction."
    " Underlying error: NOT_COORDINATOR"
)
ISR = "The size of the current ISR : 1 is insufficient to satisfy the min.isr requirement of 2"


def answered(*told: tuple[int, str | None]) -> list[Answered]:
    """What is read of an answer with these errors and messages, partition by partition."""
    rows: list[tuple[Any, ...]] = [
        (n, code, 40 + n, 7, 0, [], said, {}) for n, (code, said) in enumerate(told)
    ]
    answer = ProduceAnswer.decode(BytesIO(ANSWER.encode(([("fired", rows, {})], 12, {}))))
    assert answer.throttle_time_ms == 12
    return answer.answers


def test_each_partition_is_read_behind_one_with_a_message() -> None:
    assert answered((87, "no such record"), (0, None)) == [
        ("fired", 0, 87, 40, 7),
        ("fired", 1, 0, 41, 7),
    ]


def refusal(message: bytes, leader: int, epoch: int) -> bytes:
    """What stands behind a partition's numbers; who leads is a tagged field."""
    word = leader.to_bytes(4, signed=True) + epoch.to_bytes(4) + b"\0"
    return b"\1" + message + b"\1" + b"\0" + bytes([len(word)]) + word


@pytest.mark.parametrize("message", [b"\0", b"\6moved"])
def test_a_broker_that_leads_no_more_says_who_does(message: bytes) -> None:
    numbers = [n.to_bytes(4) + c.to_bytes(2) + bytes(24) for n, c in ((0, 6), (1, 6), (2, 0))]
    rest = [refusal(message, 3, 8), refusal(message, -1, 8), b"\1\0\0"]
    said = b"".join(a + b for a, b in zip(numbers, rest, strict=True))
    whole = b"\2" + TEXT.encode("fired") + b"\4" + said + b"\0" + bytes(5)
    answer = ProduceAnswer.decode(BytesIO(whole))
    assert [each[1:3] for each in answer.answers] == [(0, 6), (1, 6), (2, 0)]
    # Nobody leads the second one yet.
    assert answer.leaders == {("fired", 0): (3, 8)}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (COORDINATOR_MOVES, errors.NOT_VERIFIED),
        (None, errors.TOO_FEW_REPLICAS),
        (ISR, errors.TOO_FEW_REPLICAS),
        (f"{ISR} for partition fired.transactions-0", errors.TOO_FEW_REPLICAS),
    ],
)
def test_a_coordinator_that_moves_is_told_from_too_few_replicas(
    message: str | None, code: int
) -> None:
    assert [each[2] for each in answered((errors.TOO_FEW_REPLICAS, message))] == [code]


@pytest.mark.usefixtures("skipped_time")
@pytest.mark.parametrize(
    ("code", "blamed"), [(errors.NOT_VERIFIED, []), (errors.TOO_FEW_REPLICAS, ["fired"])]
)
async def test_a_topic_is_held_for_its_replicas_and_not_for_a_coordinator(
    code: int, blamed: list[str]
) -> None:
    """Both are asked again until the step's time is up."""
    writer = await opened(Script(produce=[code] * 999), own_epochs=True)
    with pytest.raises(Ended) as raised:
        await writer.write(batches(writer, ("fired", 0)))
    assert raised.value.meaning is Meaning.ABORT
    assert list(raised.value.topics) == blamed
