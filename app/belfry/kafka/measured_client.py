"""aiokafka's client, which reports each request: the time of its answer, or that none came.

The property `stats_cb` has the figures, as for clients of librdkafka (`client_figures.py`). For a
fetch the broker waits until there are records, so the time of its answer says nothing about the way
to the broker, and is not reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.errors import KafkaConnectionError, KafkaError, RequestTimedOutError

from belfry.telemetry.client_figures import ClientFigures

FETCH: Final = 1


class MeasuredClient(AIOKafkaClient):  # type: ignore[misc]
    """A client that reports its requests, if its properties have a place for figures."""

    def __init__(self, properties: Mapping[str, Any], **arguments: Any) -> None:
        """`properties` are librdkafka's, `arguments` those of aiokafka's client."""
        super().__init__(**arguments)
        self._figures: ClientFigures | None = properties.get("stats_cb")

    async def send(
        self, node_id: int, request: Any, *, group: Any = ConnectionGroup.DEFAULT
    ) -> Any:
        """The answer to a request."""
        figures = self._figures
        if figures is None:
            return await super().send(node_id, request, group=group)
        now = asyncio.get_running_loop().time
        began = now()
        figures.begun()
        try:
            answer = await super().send(node_id, request, group=group)
        except (KafkaError, OSError, TimeoutError) as error:
            lost = isinstance(error, (KafkaConnectionError, RequestTimedOutError))
            figures.failed(node_id, disconnected=lost)
            raise
        finally:
            figures.ended()
        waited = request.API_KEY == FETCH
        throttle_ms = getattr(answer, "throttle_time_ms", 0)
        figures.answered(node_id, None if waited else now() - began, throttle_ms)
        return answer
