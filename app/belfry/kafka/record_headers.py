"""Headers of records as librdkafka gives them, whatever bytes their names have.

Kafka takes any bytes for the name of a header, and Python's client only takes UTF-8. Such a record
must not stop a partition, so its headers are replaced by one that names the problem, and the
request is refused for that.
"""

from __future__ import annotations

from typing import Any

from belfry.kafka import librdkafka
from belfry.store.signatures import SIGNATURE
from belfry.wire.record import Headers
from belfry.wire.unread import NO_TEXT, bounded


def headers_of(messages: list[librdkafka.Message]) -> list[Headers | None]:
    """Headers of records, cut if there are thousands (`wire/unread.py`).

    The headers of a record with a name that is not UTF-8 are replaced by one that says so.
    confluent-kafka leaves such an error pending and hands out a list with a hole, which may end the
    process when it is touched. `map` looks for pending errors after each call, but a plain call
    does not, and each message is only asked once.
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
    """The proof in a tombstone of the changelog that a worker wrote it; None without one."""
    headers = headers_of([message])[0] or ()
    return next((value or b"" for name, value in headers if name == SIGNATURE), None)
