"""A client that asks for offsets and reads no records: ends of logs, and what groups committed.

It takes and gives what confluent-kafka's `Consumer` does, and raises the same.  But a consumer of
librdkafka has four threads or more, and a worker asks as many groups as it keeps sorts of notes:

    12 clients of librdkafka       50 threads, and a connection each
    12 clients of this kind        one thread: an event loop, in which each has connections of its
                                   own, and all share what is known of the brokers

    client = offset_client.OffsetClient({"bootstrap.servers": …, "group.id": "belfry.identity"})
    client.committed([TopicPartition("belfry.tenants", 3)], timeout=5.0)

The group has no members, so nobody else's commits are in the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty
from types import SimpleNamespace
from typing import Any, Final, TypeVar

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition

from belfry.host import machine
from belfry.kafka import client_loop
from belfry.kafka.answer_errors import CommittedOffset
from belfry.kafka.client_properties import untold
from belfry.kafka.offset_requests import OffsetRequests

T = TypeVar("T")
# Seconds for an answer of the loop itself, once the time of a question is over.
GRACE_S: Final = 5.0
# Milliseconds for a commit that nobody waits for; librdkafka's default.
ANSWER_MS: Final = 60_000
CLOSE_S: Final = 5.0
# Of all of these clients, from the first question to the end of the process.
_LOOP: Final = client_loop.ClientLoop("offsets")


class OffsetClient:
    """Asks for offsets; any thread may, but `poll` is one thread's.  It connects when it asks."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        """`properties` are librdkafka's: `group.id`, `isolation.level` and `on_commit` among them.

        `on_commit` hears of commits that nobody waited for, within `poll`; it is given an error or
        None, and the partitions. Such a commit is given up after `socket.timeout.ms`.
        """
        self._group = str(properties.get("group.id", ""))
        self._isolation = int(properties.get("isolation.level") != "read_uncommitted")
        self._on_commit = properties.get("on_commit")
        self._commit_s = float(properties.get("socket.timeout.ms", ANSWER_MS)) / 1000
        self._requests = OffsetRequests(untold(properties))
        self._ended: machine.SimpleQueue[Future[list[CommittedOffset]]] = machine.SimpleQueue()

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float, *, cached: bool = False
    ) -> tuple[int, int]:
        """First offset of a partition, and where readers of this client's isolation stop."""
        del cached
        where = str(partition.topic), partition.partition
        return self._told(self._requests.ends(where, self._isolation), timeout)

    def offsets_for_times(
        self, partitions: Sequence[TopicPartition], timeout: float
    ) -> list[TopicPartition]:
        """Where partitions have the instant (epoch ms) that stands in place of their offset.

        `OFFSET_END` is where readers of this client's isolation stop. It takes one request to each
        leader; one that does not answer leaves `OFFSET_INVALID` to all of its partitions.
        """
        asked = [((str(each.topic), each.partition), each.offset) for each in partitions]
        found = self._told(self._requests.offsets(asked, self._isolation), timeout)
        return [TopicPartition(*where, found.get(where, OFFSET_INVALID)) for where, _ in asked]

    def list_topics(self, topic: str, timeout: float) -> Any:
        """Ask brokers who leads a topic; `topics` has it with its `partitions`, if it is there."""
        found = self._told(self._requests.partitions(topic), timeout)
        told = SimpleNamespace(partitions=dict.fromkeys(found), error=None)
        return SimpleNamespace(topics={topic: told} if found else {})

    def committed(
        self, partitions: Sequence[TopicPartition], timeout: float
    ) -> list[CommittedOffset]:
        """What the group has committed for these partitions."""
        places = [(str(each.topic), each.partition) for each in partitions]
        return self._told(self._requests.committed(self._group, places), timeout)

    def commit(
        self, *, offsets: Sequence[TopicPartition], asynchronous: bool
    ) -> list[CommittedOffset] | None:
        """Commit offsets with metadata; of each, whether it was: at once, or within `poll`."""
        work = self._requests.commit(self._group, offsets)
        if not asynchronous:
            return self._told(work, self._commit_s)
        begun = _LOOP.kept().begin(asyncio.wait_for(work, self._commit_s))
        begun.add_done_callback(self._ended.put)
        return None

    def poll(self, timeout: float) -> None:
        """Wait for the end of a commit that nobody waited for, and have it heard."""
        try:
            ended = self._ended.get(timeout=timeout)
        except Empty:
            return
        error, places = ended.exception(), list[CommittedOffset]()
        if error is None:
            places = ended.result()
        elif not isinstance(error, KafkaException):
            # A connection may lead nowhere: the next question makes another one.
            self.close()
            error = _timed_out(self._commit_s)
        if self._on_commit is not None:
            self._on_commit(None if error is None else error.args[0], places)

    def close(self) -> None:
        """Close the connections; another question opens others."""
        with suppress(TimeoutError):
            _LOOP.kept().run(self._requests.close(), CLOSE_S)

    def _told(self, work: Coroutine[Any, Any, T], within_s: float) -> T:
        """The answer to a question; raises KafkaException, also where none comes in time."""
        try:
            return _LOOP.kept().run(asyncio.wait_for(work, within_s), within_s + GRACE_S)
        except TimeoutError:
            raise _timed_out(within_s) from None


def _timed_out(within_s: float) -> KafkaException:
    return KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer within {within_s:g} s"))
