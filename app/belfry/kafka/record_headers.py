"""Headers of records as librdkafka gives them, whatever their names are made of.

Kafka takes any bytes for the name of a header, and Python's client takes UTF-8 alone. One such
record must not stop a partition, so its headers are replaced by one that says what is wrong with
them, and the request is refused by that.
"""

from __future__ import annotations

from typing import Any

from belfry.kafka import librdkafka
from belfry.store.signatures import SIGNATURE
from belfry.wire.record import Headers
from belfry.wire.unread import NO_TEXT, bounded


def headers_of(messages: list[librdkafka.Message]) -> list[Headers | None]:
    """Headers of records, cut where there are thousands (`wire/unread.py`).

    Those of a record with a name that is no UTF-8 come back as one that says so.
    confluent-kafka leaves such an error pending and hands out a list with a hole, which may end the
    process when it is touched.  `map` looks for pending errors after each call, where a plain call
    does not, and each message is asked once only.
    """
    found: list[Headers | None] = []
    calls: Any = map(librdkafka.Message.headers, messages)
    for _ in messages:
        try:
            found.append(bounded(next(calls)))
        except (SystemError, UnicodeDecodeError):
            found.append([NO_TEXT])
    return found


def proof_of(message: librdkafka.Message) -> bytes | None:
    """What a tombstone of the changelog says to prove that it is a worker's; None for nothing."""
    headers = headers_of([message])[0] or ()
    return next((value or b"" for name, value in headers if name == SIGNATURE), None)
