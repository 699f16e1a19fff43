"""librdkafka's own mock cluster: brokers within this process that can be stopped in milliseconds.

Python's binding does not offer it, so its C functions are called.  It knows leaders, coordinators
and offsets, and no controller.
"""

from __future__ import annotations

import ctypes
from types import TracebackType
from typing import Any, Self

from confluent_kafka import cimpl

_PRODUCER = 0
_WHY_BYTES = 200


class MockCluster:
    """Some brokers, numbered from 1; leaving it ends them."""

    def __init__(self, brokers: int) -> None:
        self._c: Any = ctypes.CDLL(cimpl.__file__)
        for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
            getattr(self._c, name).restype = ctypes.c_void_p
        self._c.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        why = ctypes.create_string_buffer(_WHY_BYTES)
        conf = ctypes.c_void_p(self._c.rd_kafka_conf_new())
        self._client = ctypes.c_void_p(self._c.rd_kafka_new(_PRODUCER, conf, why, _WHY_BYTES))
        assert self._client.value, why.value
        made = self._c.rd_kafka_mock_cluster_new(self._client, brokers)
        self._cluster = ctypes.c_void_p(made)
        self.servers = self._c.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._c.rd_kafka_mock_cluster_destroy(self._cluster)
        self._c.rd_kafka_destroy(self._client)

    def lead(self, topic: str, partition: int, broker: int) -> None:
        """Let this broker lead a partition from now on."""
        self._done("partition_set_leader", topic.encode(), partition, broker)

    def coordinate(self, name: str, broker: int, kind: str = "group") -> None:
        """Let this broker coordinate a group, or a transaction, from now on."""
        self._done("coordinator_set", kind.encode(), name.encode(), broker)

    def stop(self, broker: int) -> None:
        """End its connections, and take no others."""
        self._done("broker_set_down", broker)

    def create(self, topic: str, partitions: int, replicas: int) -> None:
        """Make a topic."""
        self._done("topic_create", topic.encode(), partitions, replicas)

    def _done(self, what: str, *arguments: Any) -> None:
        code = getattr(self._c, f"rd_kafka_mock_{what}")(self._cluster, *arguments)
        assert code == 0, (what, arguments, code)
