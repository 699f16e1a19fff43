"""The requests of a transaction to its coordinator, in versions that aiokafka lacks.

    InitProducerId v4       says which producer epoch is being replaced (KIP-360)
    AddPartitionsToTxn v3   protocol v1 alone
    EndTxn v3, v5           v5 answers with the epoch of the next transaction (KIP-890)

These requests are small and few, one or two for each step, so aiokafka's structures encode and
decode them. Requests to the leaders of partitions are in `produce.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

from belfry.transactions import errors
from belfry.transactions.batches import Where, Writer

INIT_PRODUCER_ID: Final = 22
ADD_PARTITIONS: Final = 24
END_TXN: Final = 26
NO_WRITER: Final = Writer(-1, -1)
_TEXT: Final = CompactString("utf-8")
_TAGS: Final = ("tags", TaggedFields)
_NO_TAGS: Final[dict[int, bytes]] = {}


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
    """Asks for an epoch. Without a `writer` it fences any writer; with one it can be fenced."""

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


def added_codes(answer: Any) -> dict[Where, int]:
    """The error code of each partition in an answer to AddPartitionsToTxn.

    Partitions that were not added because of another one are left out: their code has no cause of
    its own.
    """
    return {
        (topic, partition): code
        for topic, partitions, _ in answer.topics
        for partition, code, _ in partitions
        if code != errors.NOT_ATTEMPTED
    }


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
