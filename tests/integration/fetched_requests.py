"""One partition of requests with a fetcher of its own, as tests read it."""

from __future__ import annotations

from typing import Any

from belfry.kafka.fetcher import Fetcher
from belfry.kafka.request_log import RequestLog
from belfry.wire.record import SourceRecord


class FetchedRequests(RequestLog):
    """Reads in the thread that asks for records."""

    def __init__(self, properties: dict[str, Any], topic: str, partition: int) -> None:
        super().__init__(properties, topic, partition)
        self.fetcher = Fetcher(properties)

    def read(self, at_most: int, wait_s: float) -> list[SourceRecord]:
        """The next records; raises what the fetcher tells of."""
        self.fetcher.follow({self.where: self.fetched})
        if self.empty and (answer := self.fetcher.take(wait_s)) is not None:
            self.add(answer)
        return self.take(at_most)

    def close(self) -> None:
        """Close the connections."""
        self.fetcher.close()
