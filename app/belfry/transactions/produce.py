"""Produce: finished batches to the leader of their partitions, encoded and decoded by hand.

    Produce v9     protocol v1: the partitions were added to the transaction before
    Produce v12    adds them itself (KIP-890)

A request has up to hundreds of partitions.  aiokafka's structures cost some microseconds for each
field, and copy each batch at every level; here a batch is copied once, and the fixed part of an
answer is read by one `struct`:

    request    name, acks, time-out │ topic │ partition, size, batch │ … │ topic │ …
    answer     topic │ partition, error, base offset, append time, begin of the log │ … │ throttle

Both versions have the same bytes, so the second class of each kind only differs in its number.

If a broker cannot ask the transaction's coordinator whether it may append, for example while the
coordinator moves, it answers NOT_ENOUGH_REPLICAS, the error of a partition that lacks replicas.
Only the message tells the two apart, so such an answer gets a code of its own here.

In v12 a broker that is not a partition's leader any more names the new leader and its epoch
(KIP-951). This is a tagged field, so a successful answer has no bytes for it.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from aiokafka.protocol.api import Request, RequestStruct
from aiokafka.protocol.types import (
    Array,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
    UnsignedVarInt32,
)

from belfry.transactions import errors
from belfry.transactions.batches import ProducedBatch, Where

PRODUCE: Final = 0
_TEXT: Final = CompactString("utf-8")
_ACKS_OF_ALL: Final = -1
_PARTITION: Final = struct.Struct(">i")
# partition, error, base offset, append time, begin of the log
_ANSWERED: Final = struct.Struct(">ihqqq")
_PLAIN: Final = b"\x01\x00\x00"
# A part of the message of a broker that could not ask the coordinator. The other message may have
# the name of a topic, but that has no spaces.
_OF_COORDINATOR: Final = "added to the transaction"
_ERRORS: Final = CompactArray(("batch_index", Int32), ("message", _TEXT), ("tags", TaggedFields))

# A partition's tagged field about its present leader: the node and the epoch.
_LEADER_TAG: Final = 0
_LEADER: Final = struct.Struct(">ii")

Answered = tuple[str, int, int, int, int]


class ProduceAnswer:
    """Each partition's answer: topic, partition, error, base offset, append time (epoch ms).

    `leaders` has the new leader and its epoch, for partitions that the broker does not lead any
    more.
    """

    def __init__(
        self,
        answers: list[Answered],
        throttle_time_ms: int,
        leaders: dict[Where, tuple[int, int]] | None = None,
    ) -> None:
        self.answers = answers
        self.throttle_time_ms = throttle_time_ms
        self.leaders = leaders or {}

    @classmethod
    def decode(cls, data: Any) -> ProduceAnswer:
        """Read an answer of version 9 to 12 from a stream."""
        answers: list[Answered] = []
        leaders: dict[Where, tuple[int, int]] = {}
        for _ in range(UnsignedVarInt32.decode(data) - 1):
            topic = str(_TEXT.decode(data))
            for _ in range(UnsignedVarInt32.decode(data) - 1):
                partition, code, offset, appended_ms, _ = _ANSWERED.unpack(data.read(30))
                said, leader = _rest(data)
                if code == errors.TOO_FEW_REPLICAS and _OF_COORDINATOR in said:
                    code = errors.NOT_VERIFIED
                if leader is not None:
                    leaders[topic, partition] = leader
                answers.append((topic, partition, code, offset, appended_ms))
            TaggedFields.decode(data)
        return cls(answers, Int32.decode(data), leaders)


def _rest(data: Any) -> tuple[str, tuple[int, int] | None]:
    """A partition's message and leader, behind its numbers; mostly empty, in three bytes."""
    begin = data.tell()
    if data.read(3) == _PLAIN:
        return _NOTHING
    data.seek(begin)
    _ERRORS.decode(data)
    said = _TEXT.decode(data)
    told = TaggedFields.decode(data).get(_LEADER_TAG, b"")
    if len(told) < _LEADER.size:
        return said or "", None
    leader, epoch = _LEADER.unpack_from(told)
    return said or "", (leader, epoch) if leader >= 0 else None


_NOTHING: Final = ("", None)


class _Produce(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = PRODUCE
    API_VERSION = 9
    RESPONSE_TYPE: Any = ProduceAnswer
    SCHEMA = Schema(("transactional_id", _TEXT), ("timeout_ms", Int32), ("batches", Array(Int32)))

    def encode(self) -> bytes:
        """The request's bytes: each batch is copied once.

        aiokafka's structures would copy each batch at every level, and batches are nearly all of a
        request.
        """
        topics: defaultdict[str, list[ProducedBatch]] = defaultdict(list)
        for batch in self.batches:
            topics[batch.where[0]].append(batch)
        varint = UnsignedVarInt32.encode
        parts = [_TEXT.encode(self.transactional_id), Int16.encode(_ACKS_OF_ALL)]
        parts += [Int32.encode(self.timeout_ms), varint(len(topics) + 1)]
        for topic, batches in topics.items():
            parts += [_TEXT.encode(topic), varint(len(batches) + 1)]
            for batch in batches:
                parts.append(_PARTITION.pack(batch.where[1]) + varint(len(batch.data) + 1))
                parts += [batch.data, b"\0"]
            parts.append(b"\0")
        parts.append(b"\0")
        return b"".join(parts)


class _ProduceAdding(_Produce):
    API_VERSION = 12


class Produce(Request[_Produce]):  # type: ignore[misc]
    """Appends batches, in protocol v1; one batch of a partition at most."""

    API_KEY: ClassVar[int] = PRODUCE

    def __init__(self, name: str, timeout_ms: int, batches: Sequence[ProducedBatch]) -> None:
        self.batches = batches
        self._fields = (name, timeout_ms, batches)

    def build(self, request_struct_class: Any) -> Any:
        """The request."""
        return request_struct_class(*self._fields)


class ProduceAdding(Request[_ProduceAdding]):  # type: ignore[misc]
    """The same in protocol v2: the partitions join the transaction by it."""

    API_KEY: ClassVar[int] = PRODUCE
    __init__ = Produce.__init__
    build = Produce.build
