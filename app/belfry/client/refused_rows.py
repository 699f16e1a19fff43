"""Rows of a key group that its target has refused: they lie in belfry.rejected, and go there again.

    target    ROWS 0   ROWS 1: refused   ROWS 2, END: refused, for 1 has not come
    here      1, 2, END, once more, as they were signed                 ─► all of it is there

A record of a move says which one it is, and a partition takes each of them once and in order. So it
does no harm to write too many of them, or one twice. They are written byte for byte, with the
signature of the worker that wrote them: a redrive does not need the workers' secret.
"""

from __future__ import annotations

from time import monotonic
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from belfry.client.acknowledged import flush
from belfry.client.errors import Unavailable
from belfry.client.kafka import Cluster, headers_of
from belfry.client.refusals import IS_CUT, refused_request
from belfry.wire.moves import END, ROWS, decode_move, is_move, move_key
from belfry.wire.record import Headers

TIMEOUT_S: Final = 60.0
GROUP: Final = "belfry-refused-rows"
_POLL_S: Final = 1.0
_BATCH: Final = 500


class RefusedRows(NamedTuple):
    """A refused record of a move, as it was written; it counts rows by `number`."""

    number: int
    kind: int
    target: int
    key: bytes
    value: bytes
    headers: Headers


class CutRows(Exception):
    """A refused row is not kept whole, so the rows cannot be sent again."""


def refused_rows(cluster: Cluster, topic: str, group: int, move: int) -> list[RefusedRows]:
    """The refused rows of a move, in its order; `topic` is that of refused records.

    Raises `CutRows`, and `Unavailable` where the topic cannot be read.
    """
    found: dict[tuple[int, int], RefusedRows] = {}
    consumer = cluster.consumer(GROUP, from_beginning=True)
    try:
        ends = {each.partition: each.offset for each in cluster.ends(consumer, topic)}
        consumer.assign([TopicPartition(topic, each, 0) for each in ends])
        deadline = monotonic() + TIMEOUT_S
        left = {partition for partition, end in ends.items() if end > 0}
        while left:
            if monotonic() > deadline:
                raise Unavailable(f"{topic} was not read to its end in {TIMEOUT_S:g} s: try again.")
            for message in consumer.consume(_BATCH, _POLL_S):
                if (error := message.error()) is not None:
                    raise KafkaException(error)
                refused = _of_move(message.key(), message.value(), headers_of(message), group, move)
                if refused is not None:
                    found[refused.number, refused.kind] = refused
            for place in consumer.position([TopicPartition(topic, each) for each in left]):
                if place.offset >= ends[place.partition]:
                    left.discard(place.partition)
    except KafkaException as error:
        raise cluster.unavailable(error.args[0], topic) from None
    finally:
        consumer.close()
    return [each for _, each in sorted(found.items())]


def _of_move(
    key: bytes | None, value: bytes | None, headers: Headers, group: int, move: int
) -> RefusedRows | None:
    """A record of rows of this move; None for any other."""
    if key != move_key(group):
        return None
    refused = refused_request(headers)
    if refused is None or refused.marked is not None or value is None:
        return None
    record = (0, 0, key, value, refused.own)
    said = decode_move(value)
    if said is None or not is_move(record) or said.kind not in (ROWS, END):
        return None
    if (said.group, said.move) != (group, move):
        return None
    if refused.hindrance("") == IS_CUT:
        raise CutRows(
            f"Record {said.number} of the rows of key group {group} was too large to be kept whole:"
            " restore the tenants of the group from a backup."
        )
    return RefusedRows(said.number, said.kind, said.target, key, value, refused.own)


def send_again(cluster: Cluster, topic: str, rows: list[RefusedRows]) -> None:
    """Write them to the topic of requests, in their order, and wait for Kafka; raises
    `Unavailable`.
    """
    producer = cluster.producer()
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            errors.append(error)

    try:
        for each in rows:
            given: Any = {"headers": each.headers, "on_delivery": delivered}
            producer.produce(topic, each.value, each.key, each.target, **given)
            producer.poll(0)
        left = flush(cluster, producer, TIMEOUT_S)
    except KafkaException as error:
        raise cluster.unavailable(error.args[0], topic, operation="Write") from None
    if errors:
        raise cluster.unavailable(errors[0], topic, operation="Write")
    if left:
        raise Unavailable(f"Kafka has not confirmed {left} records: give the command again.")
