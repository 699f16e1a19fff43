"""Acknowledgements: Kafka's answers on requests that were given to the producer.

Each record has a callback of its own. librdkafka calls it in the thread `belfry-http-writer`, while
the caller waits in an event loop, so a callback reaches a future only through the future's loop:

    thread `belfry-http-writer`                        event loop of the caller
    acknowledged: partition 2, offset 70 ────────────► `told_to`: the verdict on 2/70 is awaited
                                                       `placed`: where it lies is the answer
    refused: MSG_SIZE_TOO_LARGE ─────────────────────► the future fails with `TooLarge`
    refused: anything else ──────────────────────────► the future fails with `NotWritten`

The errors say what is known of the request. `TooLarge` is certain: it does not lie in Kafka. The
other two are not: a record that was not confirmed may have been written, and one without a verdict
is carried out later. So a caller asks again with the same `request_id`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from confluent_kafka import KafkaError, Message

from belfry.api.workers.verdicts import AwaitedVerdict, settle
from belfry.client.verdict import Verdict


class NotWritten(Exception):
    """Kafka has not confirmed a request: it may have been written or not.

    To ask again with the same `request_id` is safe: it is carried out once at most.
    """


class TooLarge(Exception):
    """Kafka does not take a request of this size; it has not been written."""


class VerdictTimeout(Exception):
    """A request was written and no verdict came in time; it is still carried out."""


def meaning(error: Any) -> Exception:
    """An error of Kafka's as one of this module."""
    if isinstance(error, KafkaError):
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return TooLarge(error.str())
        return NotWritten(error.str())
    return NotWritten(str(error))


# Called in the thread `belfry-http-writer`, so it reaches a future only through the future's loop.
Delivered = Callable[[KafkaError | None, Message], None]


def told_to(awaited: AwaitedVerdict, loop: asyncio.AbstractEventLoop) -> Delivered:
    """A callback that says where a request was written, or that it was not."""

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            loop.call_soon_threadsafe(_fail, awaited.answer, meaning(error))
        else:
            loop.call_soon_threadsafe(awaited.written, message.partition(), message.offset())

    return delivered


def placed(
    place: asyncio.Future[Verdict], loop: asyncio.AbstractEventLoop, sent: Verdict
) -> Delivered:
    """A callback that tells where a request lies."""

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            loop.call_soon_threadsafe(_fail, place, meaning(error))
            return
        lies = replace(
            sent,
            source_topic=message.topic(),
            source_partition=message.partition(),
            source_offset=message.offset(),
        )
        loop.call_soon_threadsafe(settle, place, lies)

    return delivered


def _fail(future: asyncio.Future[Verdict], error: Exception) -> None:
    """Fail a future, unless it has been settled."""
    if not future.done():
        future.set_exception(error)
