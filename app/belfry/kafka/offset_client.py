"""A client that asks for offsets and reads no records: ends of logs, and offsets of groups.

Its methods have the arguments, results and errors of confluent-kafka's `Consumer`. But a consumer
of librdkafka has four threads or more, and a worker has a group for each kind of note:

    12 clients of librdkafka       50 threads, and a connection each
    12 clients of this kind        one thread: an event loop, in which each has connections of its
                                   own, and all share the metadata of the cluster

    client = offset_client.OffsetClient({"bootstrap.servers": …, "group.id": "belfry.identity"})
    client.committed([TopicPartition("belfry.tenants", 3)], timeout=5.0)

The group has no members, so no other commits interfere.
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
from belfry.kafka.offset_requests import LATEST, OffsetRequests

T = TypeVar("T")
# Seconds for an answer of the loop itself, once the time of a request is over.
GRACE_S: Final = 5.0
# Milliseconds for a commit without a waiting caller; librdkafka's default.
ANSWER_MS: Final = 60_000
CLOSE_S: Final = 5.0
# The loop of all these clients, from the first request to the end of the process.
_LOOP: Final = client_loop.ClientLoop("offsets")


class OffsetClient:
    """Asks for offsets; any thread may, but only one may `poll`. It connects when it asks."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        """`properties` are librdkafka's: `group.id`, `isolation.level` and `on_commit` among them.

        `on_commit` is called within `poll`, for commits without a waiting caller; it gets an error
        or None, and the partitions. Such a commit is given up after `socket.timeout.ms`.
        """
        self._group = str(properties.get("group.id", ""))
        self._isolation = int(properties.get("isolation.level") != "read_uncommitted")
        self._on_commit = properties.get("on_commit")
        self._commit_s = float(properties.get("socket.timeout.ms", ANSWER_MS)) / 1000
        self._requests = OffsetRequests(untold(properties))
        self._ended: machine.SimpleQueue[Future[list[CommittedOffset]]] = machine.SimpleQueue()

    def get_watermark_offsets(
        self,
        partition: TopicPartition,
        timeout: float,
        *,
        cached: bool = False,
        end_alone: bool = False,
    ) -> tuple[int, int]:
        """First offset of a partition, and its end for readers of this client's isolation.

        Each takes a request. With `end_alone` the first offset is not asked for, and is
        `OFFSET_INVALID`.
        """
        del cached
        where = str(partition.topic), partition.partition
        if end_alone:
            end = self._requests.offset(where, self._isolation, LATEST)
            return OFFSET_INVALID, self._told(end, timeout)
        return self._told(self._requests.ends(where, self._isolation), timeout)

    def offsets_for_times(
        self, partitions: Sequence[TopicPartition], timeout: float
    ) -> list[TopicPartition]:
        """The offsets at the instants (epoch ms) that stand in place of partitions' offsets.

        `OFFSET_END` asks for the end for readers of this client's isolation. It takes one request
        to each leader; if a leader does not answer, its partitions get `OFFSET_INVALID`.
        """
        asked = [((str(each.topic), each.partition), each.offset) for each in partitions]
        found = self._told(self._requests.offsets(asked, self._isolation), timeout)
        return [TopicPartition(*where, found.get(where, OFFSET_INVALID)) for where, _ in asked]

    def list_topics(self, topic: str, timeout: float) -> Any:
        """Ask brokers for a topic; `topics` of the result has it, if it is there."""
        found = self._told(self._requests.partitions(topic), timeout)
        told = SimpleNamespace(partitions=dict.fromkeys(found), error=None)
        return SimpleNamespace(topics={topic: told} if found else {})

    def committed(
        self, partitions: Sequence[TopicPartition], timeout: float
    ) -> list[CommittedOffset]:
        """The offsets that the group has committed for these partitions."""
        places = [(str(each.topic), each.partition) for each in partitions]
        return self._told(self._requests.committed(self._group, places), timeout)

    def commit(
        self, *, offsets: Sequence[TopicPartition], asynchronous: bool
    ) -> list[CommittedOffset] | None:
        """Commit offsets with metadata; the result of each comes at once, or within `poll`."""
        work = self._requests.commit(self._group, offsets)
        if not asynchronous:
            return self._told(work, self._commit_s)
        begun = _LOOP.kept().begin(asyncio.wait_for(work, self._commit_s))
        begun.add_done_callback(self._ended.put)
        return None

    def poll(self, timeout: float) -> None:
        """Wait for the end of a commit without a waiting caller, and call `on_commit`."""
        try:
            ended = self._ended.get(timeout=timeout)
        except Empty:
            return
        error, places = ended.exception(), list[CommittedOffset]()
        if error is None:
            places = ended.result()
        elif not isinstance(error, KafkaException):
            # The connection may be dead: the next request makes another one.
            self.close()
            error = _timed_out(self._commit_s)
        if self._on_commit is not None:
            self._on_commit(None if error is None else error.args[0], places)

    def close(self) -> None:
        """Close the connections; the next request opens others."""
        with suppress(TimeoutError):
            _LOOP.kept().run(self._requests.close(), CLOSE_S)

    def _told(self, work: Coroutine[Any, Any, T], within_s: float) -> T:
        """The answer to a request; raises KafkaException, also if none comes in time."""
        try:
            return _LOOP.kept().run(asyncio.wait_for(work, within_s), within_s + GRACE_S)
        except TimeoutError:
            raise _timed_out(within_s) from None


def _timed_out(within_s: float) -> KafkaException:
    return KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer within {within_s:g} s"))
