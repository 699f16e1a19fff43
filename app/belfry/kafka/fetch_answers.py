"""Takes a broker's answer to a fetch apart, partition by partition.

    batches, or an end that is met for the first time    put where the reader takes them
    the offset is out of range                           the reader is told, and starts over
    another broker leads, or the broker is busy          asked again after a moment, in doubt
    no rights, unknown for 10 s, no whole batch          the reader is told; asked again

One partition's error is put beside the others' batches: these do not wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiokafka import errors

from belfry.kafka.fetch_client import FetchClient
from belfry.kafka.fetch_position import Fetched, FetchPosition, OffsetGone, Where
from belfry.kafka.fetch_refusals import not_known, not_read

# Seconds after which a partition with a reported error is asked for once more.
TOLD_AGAIN_S = 1.0


class FetchAnswers:
    """Takes answers in for partitions that are still wanted; within one event loop."""

    def __init__(
        self,
        places: dict[Where, FetchPosition],
        put: Callable[[Fetched], None],
        client: FetchClient,
        sip_s: float,
    ) -> None:
        """`places` are the wanted partitions; answers for their readers are `put`.

        After a small answer a partition is put off to the next sip, one every `sip_s`.
        """
        self._places = places
        self._put_on = put
        self._client = client
        self._sip_s = sip_s

    def take_in(self, asked: dict[Where, int], answer: Any) -> int:
        """Keep an answer's part of each partition; returns the bytes of all batches."""
        size = 0
        for topic, rows in answer.topics:
            for row in rows:
                where = (topic, row[0])
                size += len(row[-1] or b"")
                self._note(where, asked.get(where), row, answer.API_VERSION)
        return size

    def _note(self, where: Where, offset: int | None, row: Any, version: int) -> None:
        """Keep an answer's part of one partition, if that is still wanted."""
        place = self._places.get(where)
        if place is None or place.next != offset:
            return
        error: Any = errors.for_code(row[1])
        if error is not errors.NoError:
            self._refused(where, place, error)
            return
        place.unknown_since = None
        data = row[-1] or b""
        if place.is_no_news(data, row[3]):
            return
        # From version 11 on the preferred replica stands between them.
        aborted = tuple(row[-3 if version > 10 else -2] or ())
        if not place.went(data):
            name = f"{where[0]}/{where[1]}"
            self.told(where, place, ConnectionError(f"{name}: no whole batch at {offset}"))
            return
        if data:
            place.sipped(len(data), _now(), self._sip_s)
            # Brokers fill a response in the order of the request: other partitions come first next
            # time.
            self._places[where] = self._places.pop(where)
        self._put(place, Fetched(where, offset, place.next, data, aborted))

    def _refused(self, where: Where, place: FetchPosition, error: Any) -> None:
        """Take in a broker's error for a partition."""
        name = f"{where[0]}/{where[1]}"
        if error is errors.OffsetOutOfRangeError:
            gone = OffsetGone(f"{name}: offset {place.next} is out of range")
            self.told(where, place, gone)
            return
        place.refused(_now())
        self._client.look_again()
        if error is errors.UnknownTopicOrPartitionError:
            self.unknown(where, place)
        elif not error.retriable:
            self.told(where, place, not_read(where, error))

    def unknown(self, where: Where, place: FetchPosition) -> bool:
        """Whether a topic has been unknown for so long that its reader is told."""
        if not place.unknown_too_long(_now()):
            return False
        self.told(where, place, not_known(where, self._client.cluster))
        return True

    def told(self, where: Where, place: FetchPosition, error: Exception) -> None:
        """Report an error to a partition's reader; after OffsetGone nothing more is fetched."""
        place.stopped = isinstance(error, OffsetGone)
        place.not_before = _now() + TOLD_AGAIN_S
        self._put(place, Fetched(where, place.next, place.next, error=error))

    def _put(self, place: FetchPosition, answer: Fetched) -> None:
        place.put(_now(), len(answer.data))
        self._put_on(answer)


def _now() -> float:
    """The clock of the running loop, in seconds."""
    return asyncio.get_running_loop().time()
