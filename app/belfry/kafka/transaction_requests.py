"""Three requests of Kafka's protocol about open transactions and their producers (KIP-664).

Neither librdkafka nor aiokafka has them, so they are described here in the terms of aiokafka, which
ships no types:

    DescribeProducers      to the leader of a partition: the producers that it knows, and the offset
                           at which the open transaction of each begins
    ListTransactions       to every broker: transactional ids of producers, as its coordinators know
    DescribeTransactions   to a coordinator: state, begin and time-out of a transaction

A schema lists the fields in the order of the wire. All three are flexible versions (KIP-482): texts
and arrays have compact lengths, and each structure has tagged fields behind it; belfry sends none
and skips those that it gets. belfry only uses version 0 of each, which every broker from Kafka 3.0
on understands. `open_transactions.py` sends the requests, reads the answers, and raises Untold if a
broker is older.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

_TEXT: Final = CompactString("utf-8")
_TAGS: Final = ("tags", TaggedFields)
NO_TAGS: Final[dict[int, bytes]] = {}


class _DescribeProducersResponse(Response):  # type: ignore[misc]
    API_KEY = 61
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("name", _TEXT),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("error_code", Int16),
                        ("error_message", _TEXT),
                        (
                            "producers",
                            CompactArray(
                                ("producer_id", Int64),
                                ("producer_epoch", Int32),
                                ("last_sequence", Int32),
                                ("last_timestamp_ms", Int64),
                                ("coordinator_epoch", Int32),
                                # Offset of the first record of the open transaction; -1 if none is
                                # open.
                                ("transaction_start", Int64),
                                _TAGS,
                            ),
                        ),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class _DescribeProducersRequest(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 61
    API_VERSION = 0
    RESPONSE_TYPE = _DescribeProducersResponse
    SCHEMA = Schema(
        ("topics", CompactArray(("name", _TEXT), ("partitions", CompactArray(Int32)), _TAGS)),
        _TAGS,
    )


class _ListTransactionsResponse(Response):  # type: ignore[misc]
    API_KEY = 66
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("unknown_states", CompactArray(_TEXT)),
        (
            "transactions",
            CompactArray(
                ("transactional_id", _TEXT), ("producer_id", Int64), ("state", _TEXT), _TAGS
            ),
        ),
        _TAGS,
    )


class _ListTransactionsRequest(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 66
    API_VERSION = 0
    RESPONSE_TYPE = _ListTransactionsResponse
    SCHEMA = Schema(("states", CompactArray(_TEXT)), ("producer_ids", CompactArray(Int64)), _TAGS)


class _DescribeTransactionsResponse(Response):  # type: ignore[misc]
    API_KEY = 65
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "transactions",
            CompactArray(
                ("error_code", Int16),
                ("transactional_id", _TEXT),
                ("state", _TEXT),
                ("timeout_ms", Int32),
                # Epoch ms; -1 if no transaction is under way.
                ("start_ms", Int64),
                ("producer_id", Int64),
                ("producer_epoch", Int16),
                (
                    "topics",
                    CompactArray(("topic", _TEXT), ("partitions", CompactArray(Int32)), _TAGS),
                ),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class _DescribeTransactionsRequest(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 65
    API_VERSION = 0
    RESPONSE_TYPE = _DescribeTransactionsResponse
    SCHEMA = Schema(("transactional_ids", CompactArray(_TEXT)), _TAGS)


class DescribeProducers(Request[_DescribeProducersRequest]):  # type: ignore[misc]
    """Asks a leader for the producers of some partitions of one topic.

    It has to be sent to the leader of all these partitions; another broker answers with an error
    for each.
    """

    API_KEY: ClassVar[int] = 61

    def __init__(self, topic: str, partitions: list[int]) -> None:
        self._topics = [(topic, partitions, NO_TAGS)]

    def build(self, request_struct_class: Any) -> Any:
        """The request in the version that the broker speaks."""
        return request_struct_class(self._topics, NO_TAGS)


class ListTransactions(Request[_ListTransactionsRequest]):  # type: ignore[misc]
    """Asks a broker for the transactional ids of these producers.

    A broker only knows the ids that it coordinates, so each broker is asked.
    """

    API_KEY: ClassVar[int] = 66

    def __init__(self, producer_ids: list[int]) -> None:
        self._producer_ids = producer_ids

    def build(self, request_struct_class: Any) -> Any:
        """The request in the version that the broker speaks."""
        return request_struct_class([], self._producer_ids, NO_TAGS)


class DescribeTransactions(Request[_DescribeTransactionsRequest]):  # type: ignore[misc]
    """Asks a coordinator about the transactions of these transactional ids.

    It needs the right to describe each of them; a denied one has an error code of its own.
    """

    API_KEY: ClassVar[int] = 65

    def __init__(self, transactional_ids: list[str]) -> None:
        self._ids = transactional_ids

    def build(self, request_struct_class: Any) -> Any:
        """The request in the version that the broker speaks."""
        return request_struct_class(self._ids, NO_TAGS)
