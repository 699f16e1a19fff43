"""A way round batches that Kafka's client cannot unpack.

    consumer ── _BAD_COMPRESSION at N ──► Detour: fetch, unpack in slices ──► messages of one batch
       ▲                                                                            │
       └──────────────────── assigned anew behind that batch ◄──────────────────────┘

librdkafka unpacks zstd to `receive.message.max.bytes` at most, and reports a larger batch at one
offset for ever.  6 KB are enough for that.  A detour reads the batch as a stream, some megabytes at
a time, and hands its records out as messages like any others.  What of it cannot be read at all is
one message that is refused: those behind it are not lost by that.

Only requests are read so, since each of them can be refused.  Of what workers write, nothing may be
passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import structlog
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    Message,
)

from belfry.kafka.one_fetch import Fetched, Where, fetch
from belfry.kafka.unpacking import chunks_of
from belfry.telemetry.limited import LimitedLogger
from belfry.wire.headers import UNREADABLE_BATCH, unread
from belfry.wire.record import SourceRecord, size_of
from belfry.wire.record_batches import Batch, CommittedBatches, batches_in
from belfry.wire.record_stream import MOST_BYTES, Unreadable, records_of

SLICE_BYTES: Final = 4_000_000
RECORD_BYTES: Final = 2_000_000
# Of a reader of requests: how much librdkafka unpacks of a zstd batch before it gives up.
BOUNDED: Final[dict[str, Any]] = {"receive.message.max.bytes": MOST_BYTES}

Fetch = Callable[[Mapping[str, Any], Where, int], Fetched]
log = structlog.get_logger(__name__)


def needs_detour(error: KafkaError) -> bool:
    """Whether a consumer can get no further in a partition by itself."""
    return error.code() == KafkaError._BAD_COMPRESSION  # noqa: SLF001  # its public name


class Detours:
    """The detours of one reader, whose thread alone uses them; they share a limit of log lines."""

    def __init__(self, properties: Mapping[str, Any], fetching: Fetch = fetch) -> None:
        """`properties` are librdkafka's."""
        self._properties = properties
        self._fetch = fetching
        self._log = LimitedLogger(log)
        self._under_way: dict[Where, Detour] = {}

    def __contains__(self, where: Where) -> bool:
        return where in self._under_way

    def begin(self, where: Where, offset: int) -> None:
        """Read the batch at an offset, if it is not read already."""
        if where not in self._under_way:
            fetching = partial(self._fetch, self._properties, where)
            self._under_way[where] = Detour(where, offset, fetching, self._log)

    def take(self, at_most: int) -> list[Message]:
        """The next records of one of them, some megabytes at most."""
        for detour in self._under_way.values():
            found = detour.take(at_most)
            if found:
                return found
        return []

    def ended(self) -> dict[Where, int]:
        """Where those that have come to their end go on; they are forgotten."""
        ends = {where: each.position for where, each in self._under_way.items() if each.ended}
        for where in ends:
            del self._under_way[where]
        return ends

    def clear(self) -> None:
        """Forget all of them."""
        self._under_way.clear()


class Detour:
    """Reads the next batch of a partition from an offset on."""

    def __init__(
        self, where: Where, offset: int, fetching: Callable[[int], Fetched], said: LimitedLogger
    ) -> None:
        self._where = where
        self._fetch = fetching
        self._log = said
        self.ended = False
        self._batch: Batch | None = None
        self._records: Iterator[SourceRecord] | None = None
        self.position = offset

    def take(self, at_most: int) -> list[Message]:
        """The next records, some megabytes at most; none at the end: go on at `position`.

        Raises ConnectionError, or OffsetGone; it can be asked again.
        """
        if self._records is None:
            self._records = self._open()
        found: list[Message] = []
        size = 0
        while len(found) < at_most and size < SLICE_BYTES:
            record = self._next()
            if record is None:
                break
            found.append(self._message(record))
            self.position = record[0] + 1
            size += size_of(record)
        if not found:
            self.ended = True
            if self._batch is not None:
                self.position = max(self.position, self._batch.next_offset)
        return found

    def _open(self) -> Iterator[SourceRecord]:
        """Fetch, and find the first batch that has records for readers."""
        fetched = self._fetch(self.position)
        committed = CommittedBatches(fetched.aborted)
        for batch in batches_in(fetched.data):
            counts = committed.holds(batch)
            if batch.next_offset <= self.position:
                continue
            if counts:
                self._batch = batch
                self._tell(batch)
                return records_of(batch, chunks_of(batch.codec, batch.packed), RECORD_BYTES)
            self.position = batch.next_offset
        return iter(())

    def _next(self) -> SourceRecord | None:
        assert self._records is not None
        try:
            return next((each for each in self._records if each[0] >= self.position), None)
        except Unreadable as error:
            self._records = iter(())
            return self._refusal(str(error))

    def _refusal(self, cause: str) -> SourceRecord | None:
        """What stands for all records of the batch that cannot be read."""
        assert self._batch is not None
        (topic, partition), batch = self._where, self._batch
        first, last = max(self.position, batch.base_offset), batch.next_offset - 1
        if first > last:
            return None
        self._log.error(
            "unreadable", "a batch cannot be read; its requests are refused as one",
            topic=topic, of=partition, first_offset=first, last_offset=last, cause=cause,
        )  # fmt: skip
        reason = (
            f"Offsets {first} to {last} of {topic}/{partition} lie in a batch that cannot be read:"
            f" {cause}. They are refused as one. Send these requests again, with another"
            " compression or in smaller batches."
        )
        return (first, batch.largest_ms, None, None, [unread(UNREADABLE_BATCH, reason)])

    def _tell(self, batch: Batch) -> None:
        topic, partition = self._where
        self._log.warning(
            "detour", "a batch is larger than Kafka's client unpacks; it is read in slices",
            topic=topic, of=partition, first_offset=self.position, packed_bytes=len(batch.data),
            records=batch.record_count,
        )  # fmt: skip

    def _message(self, record: SourceRecord) -> Message:
        assert self._batch is not None
        offset, timestamp_ms, key, value, headers = record
        kind = TIMESTAMP_LOG_APPEND_TIME if self._batch.appended else TIMESTAMP_CREATE_TIME
        make: Any = Message
        message: Message = make(
            topic=self._where[0], partition=self._where[1], offset=offset, key=key, value=value,
            headers=headers, timestamp=(kind, timestamp_ms),
        )  # fmt: skip
        return message
