"""Offsets of groups without members, whose metadata says something: the part of Kafka's admin."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException


class OffsetNotes:
    """What was noted, by partition; `away` where the cluster does not answer."""

    def __init__(self) -> None:
        self.kept: dict[int, str] = {}
        self.writes = 0
        self.away = False

    def list_consumer_group_offsets(self, asked: Any, **_: Any) -> dict[str, Future[Any]]:
        return self._answer(asked[0], lambda one: self.kept.get(one.partition))

    def alter_consumer_group_offsets(self, given: Any, **_: Any) -> dict[str, Future[Any]]:
        if not self.away:
            self.writes += 1
            self.kept |= {one.partition: one.metadata for one in given[0].topic_partitions}
        return self._answer(given[0], lambda one: one.metadata)

    def _answer(self, asked: Any, noted: Any) -> dict[str, Future[Any]]:
        future: Future[Any] = Future()
        if self.away:
            future.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer")))
            return {asked.group_id: future}
        found = [
            SimpleNamespace(
                partition=one.partition,
                offset=-1001 if noted(one) is None else 0,
                metadata=noted(one),
                error=None,
            )
            for one in asked.topic_partitions
        ]
        future.set_result(SimpleNamespace(topic_partitions=found))
        return {asked.group_id: future}
