"""Errors of aiokafka and of brokers' answers, as errors of confluent-kafka.

a broker's code               ─► KafkaError of that code
no answer, a connection gone  ─► KafkaError._TRANSPORT
a coordinator that has moved  ─► one of `MOVED`: it is looked for again
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final, NamedTuple, TypeVar

from aiokafka import errors
from confluent_kafka import KafkaError, KafkaException

from belfry.host.errors import named
from belfry.kafka.shared_client import AWAY

T = TypeVar("T")
MOVED: Final = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


class CommittedOffset(NamedTuple):
    """An offset that a group has committed for a partition, or was to commit, with its error.

    `offset` is `OFFSET_INVALID` if there is none.
    """

    topic: str
    partition: int
    offset: int
    metadata: str
    error: KafkaError | None = None


def unmoved(answer: Any) -> Any:
    """The answer of a coordinator; raises KafkaException if it has moved, or refuses all."""
    whole = getattr(answer, "error_code", 0)
    codes = [whole, *(row[-1] for _, rows in answer.topics for row in rows)]
    if why := next((code for code in codes if code in MOVED), whole):
        raise KafkaException(error_of(why))
    return answer


async def answered(answer: Awaitable[T]) -> T:
    """The answer of a broker; raises KafkaException with its code, or without an answer."""
    try:
        return await answer
    except (*AWAY, NotImplementedError) as error:
        code: Any = getattr(error, "errno", None)
        # aiokafka's time-out has the code of a broker's error, but no broker has sent it.
        if (
            not isinstance(error, errors.BrokerResponseError)
            or code == KafkaError.REQUEST_TIMED_OUT
        ):
            code = KafkaError._TRANSPORT
        raise failure(code, named(error)) from error


def error_of(code: int) -> KafkaError | None:
    """A broker's code as an error; None for 0."""
    return KafkaError(code) if code else None


def failure(code: int, reason: str) -> KafkaException:
    """The exception for a code, with this text."""
    return KafkaException(KafkaError(code, reason))
