"""What stands in for confluent-kafka's `AdminClient`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaError
from confluent_kafka.admin import AclOperation, OffsetSpec  # type: ignore[attr-defined]

from belfry.kafka.broker_features import Features
from belfry.kafka.holders import OpenTransaction, Untold
from belfry.kafka.lacking import Lacking
from tests.simulation.broker import Log
from tests.simulation.clients import failure, metadata
from tests.simulation.machine import machine

ADMIN_MS: Final = 2_000.0
# confluent-kafka ships it without types.
_EARLIEST: Final[Any] = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_CONFIGS: Final = {"max.message.bytes": "1048588", "min.insync.replicas": "1"}


def _settled(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def _in_metrics(topic: str) -> str:
    """What a broker's metrics call a topic: two that are called alike cannot both be there."""
    return topic.replace(".", "_")


class SimAdmin:
    """Topics of the simulated broker."""

    def __init__(self, _properties: dict[str, Any], **_: Any) -> None:
        self._machine = machine()
        self._broker = self._machine.broker
        self._at = self._broker.some()

    def _ask(self) -> None:
        if not self._machine.travel(ADMIN_MS):
            raise failure(KafkaError._TRANSPORT, "no answer")

    def poll(self, timeout: float = -1) -> int:
        """Errors that nobody asked for: there are none."""
        del timeout
        return 0

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """The cluster's metadata."""
        self._ask()
        return metadata(self._broker, self._broker.known(self._at))

    def create_topics(self, new: Iterable[Any], **_: Any) -> dict[str, Future[Any]]:
        """Create those that are missing."""
        self._ask()
        found: dict[str, Future[Any]] = {}
        for topic in new:
            future: Future[Any] = Future()
            if topic.topic in self._broker.refused:
                code = KafkaError.TOPIC_AUTHORIZATION_FAILED
                future.set_exception(failure(code, "not authorised"))
            elif topic.topic in self._broker.topics:
                future.set_exception(failure(KafkaError.TOPIC_ALREADY_EXISTS, "exists"))
            elif _in_metrics(topic.topic) in map(_in_metrics, self._broker.topics):
                future.set_exception(failure(KafkaError.TOPIC_EXCEPTION, "the name collides"))
            else:
                self._broker.create(topic.topic, topic.num_partitions)
                self._broker.configs[topic.topic] = dict(topic.config or {})
                future.set_result(None)
            found[topic.topic] = future
        return found

    def create_partitions(self, new: Iterable[Any], **_: Any) -> dict[str, Future[Any]]:
        """Give topics more partitions: those that have as many already are refused."""
        self._ask()
        found: dict[str, Future[Any]] = {}
        for each in new:
            future: Future[Any] = Future()
            found[each.topic] = future
            if len(self._broker.topics[each.topic]) >= each.new_total_count:
                future.set_exception(failure(KafkaError.INVALID_PARTITIONS, "it has as many"))
            else:
                self._broker.extend(each.topic, each.new_total_count)
                future.set_result(None)
        return found

    def describe_configs(self, resources: Iterable[Any], **_: Any) -> dict[Any, Future[Any]]:
        """Settings of topics."""
        self._ask()
        return {
            resource: _settled(
                {
                    key: SimpleNamespace(value=value)
                    for key, value in {
                        **_CONFIGS,
                        **self._broker.configs.get(resource.name, {}),
                    }.items()
                }
            )
            for resource in resources
        }

    def describe_topics(self, collection: Any, **_: Any) -> dict[str, Future[Any]]:
        """Ids and partitions of topics, and what may be done with them."""
        self._ask()
        known = self._broker.known(self._at)
        return {
            name: _settled(self._described(name, known.get(name, [])))
            for name in collection.topic_names
        }

    def _described(self, name: str, partitions: list[Log]) -> Any:
        allowed = [AclOperation.READ]
        if name not in self._broker.refused:
            allowed.append(AclOperation.WRITE)
        return SimpleNamespace(
            topic_id=f"id-of-{name}-{self._broker.made.get(name, 0)}",
            partitions=partitions,
            authorized_operations=allowed,
        )

    def describe_consumer_groups(self, names: Iterable[str], **_: Any) -> dict[str, Future[Any]]:
        """Members of groups; the simulator's own group has its members elsewhere."""
        self._ask()
        return {name: _settled(SimpleNamespace(members=[])) for name in names}

    def list_offsets(
        self, wanted: dict[Any, Any], isolation_level: Any = None, **_: Any
    ) -> dict[Any, Future[Any]]:
        """Where partitions begin, or end for readers: of committed records, unless told of all."""
        self._ask()
        of_all = isolation_level == IsolationLevel.READ_UNCOMMITTED
        logs = {place: self._broker.log(place.topic, place.partition) for place in wanted}
        return {
            place: _settled(SimpleNamespace(offset=0))
            if isinstance(wanted[place], type(_EARLIEST))
            else self._end(log, of_all=of_all)
            for place, log in logs.items()
        }

    @staticmethod
    def _end(log: Log, *, of_all: bool) -> Future[Any]:
        if log.replicas is not None and not log.replicas.told:
            future: Future[Any] = Future()
            future.set_exception(failure(KafkaError.OFFSET_NOT_AVAILABLE, "the leader is new"))
            return future
        return _settled(SimpleNamespace(offset=log.readable_end if of_all else log.stable_end))


def ask_brokers(_properties: dict[str, Any]) -> dict[str, Features | str]:
    """What the broker can do: it is of no version, so it does not tell."""
    raise ConnectionError("no answer")


def missing_rights(_admin: Any, _settings: Any) -> list[Lacking]:
    """Rights that are missing: its broker has no authorizer but for topics that it refuses."""
    return []


def look_up(
    _properties: dict[str, Any], places: Sequence[tuple[str, int]]
) -> list[OpenTransaction]:
    """Whose transactions are open in these partitions, the first of each partition first."""
    if not machine().travel(ADMIN_MS):
        raise Untold("no answer")
    found = []
    for topic, partition in places:
        for txn, start in machine().broker.log(topic, partition).open.items():
            began_ms = int(machine().broker.began_ms + txn.started_ms)
            known = machine().broker.coordinated
            if txn.producer not in known or known[txn.producer].forgotten:
                # No coordinator knows its producer.
                found.append(OpenTransaction(topic, partition, start, 9, txn.epoch, began_ms))
                continue
            state = f"Prepare{txn.outcome.title()}" if txn.outcome else "Ongoing"
            if known[txn.producer].txn is not txn:
                state = "Empty"
            number = sorted(known).index(txn.producer)
            told = (txn.producer, state, began_ms, int(txn.timeout_ms))
            place = (topic, partition, start, number, txn.epoch, began_ms)
            found.append(OpenTransaction(*place, *told))
    return sorted(found, key=lambda each: (each.topic, each.partition, each.start_offset))
