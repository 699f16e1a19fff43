"""The four requests of a transaction that aiokafka lacks, or has in versions that are too old.

    InitProducerId v4       says which producer epoch is being replaced (KIP-360)
    AddPartitionsToTxn v3   protocol v1 alone
    Produce v9, v12         finished batches; v12 adds their partitions to the transaction (KIP-890)
    EndTxn v3, v5           v5 answers with the epoch of the next transaction

Produce is encoded and decoded here by hand, for it has up to hundreds of partitions, and aiokafka's
way costs some microseconds for each field.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
    UnsignedVarInt32,
)

from belfry.transactions.batches import ProducedBatch, Where, Writer

PRODUCE: Final = 0
INIT_PRODUCER_ID: Final = 22
ADD_PARTITIONS: Final = 24
END_TXN: Final = 26
NO_WRITER: Final = Writer(-1, -1)
_TEXT: Final = CompactString("utf-8")
_TAGS: Final = ("tags", TaggedFields)
_NO_TAGS: Final[dict[int, bytes]] = {}
_ACKS_OF_ALL: Final = -1


# -- to the coordinator ----------------------------------------------------------------------------


class _InitAnswer(Response):  # type: ignore[misc]
    API_KEY = INIT_PRODUCER_ID
    API_VERSION = 4
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        _TAGS,
    )


class _Init(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = INIT_PRODUCER_ID
    API_VERSION = 4
    RESPONSE_TYPE = _InitAnswer
    SCHEMA = Schema(
        ("transactional_id", _TEXT),
        ("timeout_ms", Int32),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        _TAGS,
    )


class InitProducerId(Request[_Init]):  # type: ignore[misc]
    """Asks for an epoch.  Without a `writer` it fences anybody, with one it is fenced itself."""

    API_KEY: ClassVar[int] = INIT_PRODUCER_ID

    def __init__(self, name: str, timeout_ms: int, writer: Writer = NO_WRITER) -> None:
        self._fields = (name, timeout_ms, writer.producer_id, writer.epoch, _NO_TAGS)

    def build(self, request_struct_class: Any) -> Any:
        """The request."""
        return request_struct_class(*self._fields)


class _AddAnswer(Response):  # type: ignore[misc]
    API_KEY = ADD_PARTITIONS
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", _TEXT),
                ("partitions", CompactArray(("partition", Int32), ("error_code", Int16), _TAGS)),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class _Add(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = ADD_PARTITIONS
    API_VERSION = 3
    RESPONSE_TYPE = _AddAnswer
    SCHEMA = Schema(
        ("transactional_id", _TEXT),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("topics", CompactArray(("topic", _TEXT), ("partitions", CompactArray(Int32)), _TAGS)),
        _TAGS,
    )


class AddPartitionsToTxn(Request[_Add]):  # type: ignore[misc]
    """Adds all partitions of a step to its transaction; all of them, or none."""

    API_KEY: ClassVar[int] = ADD_PARTITIONS

    def __init__(self, name: str, writer: Writer, places: Iterable[Where]) -> None:
        topics: defaultdict[str, list[int]] = defaultdict(list)
        for topic, partition in sorted(places):
            topics[topic].append(partition)
        named = [(topic, partitions, _NO_TAGS) for topic, partitions in topics.items()]
        self._fields = (name, writer.producer_id, writer.epoch, named, _NO_TAGS)

    def build(self, request_struct_class: Any) -> Any:
        """The request."""
        return request_struct_class(*self._fields)


class _EndAnswer(Response):  # type: ignore[misc]
    API_KEY = END_TXN
    API_VERSION = 3
    SCHEMA = Schema(("throttle_time_ms", Int32), ("error_code", Int16), _TAGS)


class _EndAnswerWithEpoch(Response):  # type: ignore[misc]
    API_KEY = END_TXN
    API_VERSION = 5
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        _TAGS,
    )


class _End(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = END_TXN
    API_VERSION = 3
    RESPONSE_TYPE = _EndAnswer
    SCHEMA = Schema(
        ("transactional_id", _TEXT),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("committed", Boolean),
        _TAGS,
    )


class _EndWithEpoch(_End):
    API_VERSION = 5
    RESPONSE_TYPE = _EndAnswerWithEpoch


class EndTxn(Request[_End]):  # type: ignore[misc]
    """Commits or aborts, in protocol v1."""

    API_KEY: ClassVar[int] = END_TXN

    def __init__(self, name: str, writer: Writer, *, commit: bool) -> None:
        self._fields = (name, writer.producer_id, writer.epoch, commit, _NO_TAGS)

    def build(self, request_struct_class: Any) -> Any:
        """The request."""
        return request_struct_class(*self._fields)


class EndTxnWithEpoch(Request[_EndWithEpoch]):  # type: ignore[misc]
    """Commits or aborts, in protocol v2; the answer has the epoch of the next transaction."""

    API_KEY: ClassVar[int] = END_TXN
    __init__ = EndTxn.__init__
    build = EndTxn.build


# -- to leaders of partitions ----------------------------------------------------------------------

_PARTITION: Final = struct.Struct(">i")
# partition, error, base offset, append time, begin of the log
_ANSWERED: Final = struct.Struct(">ihqqq")
_PLAIN: Final = b"\x01\x00\x00"
_ERRORS: Final = CompactArray(("batch_index", Int32), ("message", _TEXT), _TAGS)

Answered = tuple[str, int, int, int, int]


class ProduceAnswer:
    """What each partition says: topic, partition, error, base offset, append time (epoch ms)."""

    def __init__(self, answers: list[Answered], throttle_time_ms: int) -> None:
        self.answers = answers
        self.throttle_time_ms = throttle_time_ms

    @classmethod
    def decode(cls, data: Any) -> ProduceAnswer:
        """Read an answer of version 9 to 12 from a stream."""
        answers: list[Answered] = []
        for _ in range(UnsignedVarInt32.decode(data) - 1):
            topic = str(_TEXT.decode(data))
            for _ in range(UnsignedVarInt32.decode(data) - 1):
                partition, code, offset, appended_ms, _ = _ANSWERED.unpack(data.read(30))
                answers.append((topic, partition, code, offset, appended_ms))
                _skip_rest(data)
            TaggedFields.decode(data)
        return cls(answers, Int32.decode(data))


def _skip_rest(data: Any) -> None:
    """Pass over what follows the numbers of a partition: mostly nothing, in three bytes."""
    begin = data.tell()
    if data.read(3) == _PLAIN:
        return
    data.seek(begin)
    _ERRORS.decode(data)
    _TEXT.decode(data)
    TaggedFields.decode(data)


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
