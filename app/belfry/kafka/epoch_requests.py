"""Kafka's request that shows whether a leader has the records of a former leader (KIP-320).

    OffsetForLeaderEpoch    to the leader of partitions: where do the records of an epoch end?

Each batch names the epoch of the leader that appended it. If the present leader's records of that
epoch end before the offset that was read, the log was cut off, and records that were read are gone.

    leader 1, epoch 7   …  98  99  100  101          a reader has read up to 101
    leader 1 dies before 100 and 101 were copied, and an unclean election chooses leader 2
    leader 2, epoch 8   …  98  99 │ 100' 101'        other records have these offsets now
    OffsetForLeaderEpoch(7) ─► 100: below the read offset, so the log was cut off

aiokafka does not have this request, so it is described here in its terms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, ClassVar

from aiokafka.errors import IncompatibleBrokerVersion, NoError, for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int16, Int32, Int64, Schema, String

_NAME = ("topic", String("utf-8"))


class _EpochsResponse(Response):  # type: ignore[misc]
    API_KEY = 23
    API_VERSION = 2
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(
                _NAME,
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader_epoch", Int32),
                        ("end_offset", Int64),
                    ),
                ),
            ),
        ),
    )


class _EpochsRequest(RequestStruct):  # type: ignore[misc]
    API_KEY = 23
    API_VERSION = 2
    RESPONSE_TYPE = _EpochsResponse
    SCHEMA = Schema(
        (
            "topics",
            Array(
                _NAME,
                (
                    "partitions",
                    Array(
                        ("partition", Int32),
                        ("current_leader_epoch", Int32),
                        ("leader_epoch", Int32),
                    ),
                ),
            ),
        ),
    )


class OffsetsForEpochs(Request[_EpochsRequest]):  # type: ignore[misc]
    """Asks a leader for the ends of epochs in some partitions."""

    API_KEY: ClassVar[int] = 23

    def __init__(self, epochs: Mapping[tuple[str, int], int]) -> None:
        self._topics: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for (topic, partition), epoch in epochs.items():
            self._topics[topic].append((partition, -1, epoch))

    def build(self, request_struct_class: Any) -> Any:
        """The request in the version that the broker speaks."""
        return request_struct_class([*self._topics.items()])

    async def ask(self, client: Any, leader: int) -> dict[tuple[str, int], int | None]:
        """Ends of the epochs, None if the broker refuses; empty from brokers that cannot tell them.

        If a leader does not know an epoch, its log is not the one that was read: 0. Raises one of
        aiokafka's errors.
        """
        try:
            answer = await client.send(leader, self)
        except (NotImplementedError, IncompatibleBrokerVersion):
            return {}
        return {
            (topic, partition): max(0, end) if for_code(code) is NoError else None
            for topic, rows in answer.topics
            for code, partition, _, end in rows
        }
