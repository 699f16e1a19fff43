"""The meaning of librdkafka's errors for a transaction: fenced, surely rolled back, or unknown.

    fenced by another owner                          Fenced
    the broker has forgotten the transactional id    Unknown
    the transaction has to be aborted                Aborted, once that is done
    refused before anything was sent                 Aborted   (a record too large to queue)
    all others, and each error of the abort itself   Unknown

`fatal`, `retriable` and `txn_requires_abort` are librdkafka's own marks of its errors.

For a forgotten id librdkafka says that the transaction is to be aborted. Its abort asks for the id
anew, and the broker gives it to any client that asks: the broker has forgotten any later owner. A
former owner would go on with its old state, so it has to take over instead.
"""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaError, KafkaException

from belfry.kafka.outcome import Aborted, Fenced, Unknown

_FENCED: Final = {
    KafkaError._FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
}
_FORGOTTEN: Final = KafkaError.INVALID_PRODUCER_ID_MAPPING


def end_of(error: KafkaException, during: str, final: bool = False) -> Exception:
    """The exception for an error `during` a call; `final` if no abort can follow."""
    cause = error.args[0]
    if cause.code() in _FENCED:
        return Fenced(f"{during}: {cause.str()}")
    if cause.code() == _FORGOTTEN:
        return Unknown(f"{during}: {cause.str()}")
    if not final and not cause.fatal() and cause.txn_requires_abort():
        return Aborted(cause.str())
    if not final and not cause.fatal() and not cause.retriable() and during == "a transaction":
        # Refused before anything was sent, such as a record that is too large to queue.
        return Aborted(cause.str())
    return Unknown(f"{during}: {cause.str()}")


def is_blocked(error: Exception) -> bool:
    """Whether a right to write to a topic is missing; the error does not name the topic."""
    if not isinstance(error, KafkaException):
        return False
    return bool(error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED)
