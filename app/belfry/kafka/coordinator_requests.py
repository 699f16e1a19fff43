"""Kafka's request for the coordinators of several transactional ids at once (KIP-699).

    FindCoordinator v4    to any broker: the coordinator of each id, or why there is none

A worker that takes 64 partitions over looks for 128 coordinators. aiokafka asks for one at a time,
as this module does with brokers before 3.0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from aiokafka.client import CoordinationType
from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.types import (
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

FIND_COORDINATOR: Final = 10
# A coordinator by its number, and the code of an error (0: none).
Told = tuple[int, int]
_TEXT: Final = CompactString("utf-8")
_TAGS: Final = ("tags", TaggedFields)
# aiokafka's errors if a broker does not know the version.
_OLDER: Final = (NotImplementedError, IncompatibleBrokerVersion)


class _Answer(Response):  # type: ignore[misc]
    API_KEY = FIND_COORDINATOR
    API_VERSION = 4
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "coordinators",
            CompactArray(
                ("key", _TEXT),
                ("coordinator_id", Int32),
                ("host", _TEXT),
                ("port", Int32),
                ("error_code", Int16),
                ("error_message", _TEXT),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class _Question(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = FIND_COORDINATOR
    API_VERSION = 4
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(("coordinator_type", Int8), ("coordinator_keys", CompactArray(_TEXT)), _TAGS)


class FindCoordinators(Request[_Question]):  # type: ignore[misc]
    """Asks for the coordinators of these transactional ids."""

    API_KEY: ClassVar[int] = FIND_COORDINATOR

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)

    def build(self, request_struct_class: Any) -> Any:
        """The request."""
        return request_struct_class(CoordinationType.TRANSACTION, self._names, {})


async def coordinator_by(client: Any, node: int, name: str) -> Told:
    """The coordinator of a transactional id, as this broker says; raises aiokafka's errors."""
    request = FindCoordinatorRequest(name, CoordinationType.TRANSACTION)
    answer = await client.send(node, request)
    return answer.coordinator_id, answer.error_code


async def coordinators_by(client: Any, node: int, names: Sequence[str]) -> dict[str, Told]:
    """The same for several ids, by one request if the broker takes that."""
    try:
        answer = await client.send(node, FindCoordinators(names))
    except _OLDER:
        told = await asyncio.gather(*(coordinator_by(client, node, each) for each in names))
        return dict(zip(names, told, strict=True))
    return {row[0]: (row[1], row[4]) for row in answer.coordinators}
