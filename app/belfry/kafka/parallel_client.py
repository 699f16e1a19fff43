"""aiokafka's client, whose connections are made beside one another.

Its own lock would let all of them wait for one to a broker that does not answer.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from aiokafka.client import ConnectionGroup

from belfry.kafka.measured_client import MeasuredClient


class ParallelClient(MeasuredClient):
    """A client with a lock for each connection; used within one event loop."""

    def __init__(self, properties: Mapping[str, Any], **arguments: Any) -> None:
        """`properties` are librdkafka's, `arguments` those of aiokafka's client."""
        super().__init__(properties, **arguments)
        self._locks: defaultdict[tuple[Any, Any], asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def _get_conn_lock(self) -> asyncio.Lock:
        return asyncio.Lock()

    async def _get_conn(
        self, node_id: Any, *, group: Any = ConnectionGroup.DEFAULT, no_hint: bool = False
    ) -> Any:
        async with self._locks[node_id, group]:
            return await super()._get_conn(node_id, group=group, no_hint=no_hint)

    async def close_group(self, group: object) -> None:
        """Close the connections of one group."""
        for key in [key for key in self._conns if key[1] == group]:
            closed = self._conns.pop(key).close()
            if closed is not None:
                await closed
        for key in [key for key in self._locks if key[1] == group]:
            del self._locks[key]
