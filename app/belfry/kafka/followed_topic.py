"""Partitions of a topic that are followed from offsets on, by one reader for all of them.

    follow({1: 90, 5: 0}) ─► take() ─► batches of 1, then of 5, … as they are stored
                               │       no bytes: no records follow that readers may see
                               └ the log does not have the offset: from its present begin

The batches stay packed: a user that does not need one skips it unopened. The reader needs no thread
and no client of librdkafka: the event loop of its fetcher runs while its user waits in `take`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import structlog
from confluent_kafka import KafkaException

from belfry.kafka import fetcher, log_ends
from belfry.kafka.batch_reader import BatchReader
from belfry.kafka.client_properties import untold
from belfry.kafka.fetch_plan import CALM_S
from belfry.kafka.fetch_position import Fetched, OffsetGone
from belfry.wire.record import SourceRecord

# The most bytes of one partition in one answer.
ANSWER_BYTES: Final = 1024 * 1024

log = structlog.get_logger(__name__)


class FollowedTopic:
    """Reads committed records without a group; one thread at a time may use it.

    Its methods raise ConnectionError if no broker answers, or lets it in.
    """

    def __init__(self, properties: Mapping[str, Any], topic: str, sip_s: float = 0.0) -> None:
        """`properties` are librdkafka's.

        After a small answer a partition pauses for `sip_s`: records of that time come together.
        """
        given = untold(properties)
        self.name = topic
        self._fetcher = fetcher.Fetcher(given, ANSWER_BYTES, sip_s, CALM_S)
        self._ends = log_ends.LogEnds(given)
        # The next offset, by partition.
        self._positions: dict[int, int] = {}
        self._lost: set[int] = set()

    def partitions(self, wait_s: float = log_ends.REQUEST_S) -> list[int]:
        """The partitions of the topic; at least one."""
        try:
            found = self._ends.partitions(self.name, wait_s)
        except KafkaException as error:
            raise ConnectionError(f"{self.name}: {error.args[0].str()}") from error
        if not found:
            # Not every broker knows a new topic at once.
            raise ConnectionError(f"{self.name} is not there")
        return found

    def ends(self, partitions: list[int], wait_s: float = log_ends.REQUEST_S) -> dict[int, int]:
        """The present ends for readers of committed records."""
        found = self._ends.all_readable([(self.name, each) for each in partitions], wait_s)
        return {partition: end for (_, partition), end in found.items()}

    def follow(self, positions: Mapping[int, int]) -> None:
        """Only read these partitions; those that are at these offsets already go on."""
        self._positions = dict(positions)
        self._lost &= self._positions.keys()
        self._follow()

    def _follow(self) -> None:
        kept = self._positions.items()
        self._fetcher.follow({(self.name, p): at for p, at in kept if p not in self._lost})

    def take(self, wait_s: float) -> Fetched | None:
        """The next answer for some partition; None if none comes in time."""
        for partition in sorted(self._lost):
            self._positions[partition] = self._ends.ends(self.name, partition)[0]
            self._lost.remove(partition)
            self._follow()
        answer = self._fetcher.take(wait_s)
        if answer is None:
            return None
        partition = answer.where[1]
        if isinstance(answer.error, OffsetGone):
            log.info("read from where the log begins", reason=str(answer.error))
            self._lost.add(partition)
            return None
        if answer.error is not None:
            raise answer.error
        self._positions[partition] = answer.behind
        return answer

    def close(self) -> None:
        """Stop reading."""
        self._positions, self._lost = {}, set()
        self._fetcher.close()
        self._ends.close()


def portions(answer: Fetched, at_most: int) -> Iterator[tuple[list[SourceRecord], int]]:
    """The fetched records, at most `at_most` at once, and the offset behind each portion."""
    reader = BatchReader(answer.where, answer.offset)
    reader.add(answer)
    while not reader.empty:
        records = reader.take(at_most)
        yield records, reader.position
