"""A step's records as finished record batches, and batches as requests.  Pure, but for the codecs.

    records ─► one batch for each partition, more where one is full ─► requests, for one broker:

    request 1   fired-a/0 first batch   fired-a/1 first batch   changelog/3 first batch
    request 2   changelog/3 second batch

A request holds one batch of a partition at most, as brokers want it, and the batches of a partition
leave in their order.  A batch says who wrote it: producer, epoch, and the number of its first
record in its partition (its *sequence*).  So one that is sent twice is taken once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from aiokafka.record._crecords.default_records import DefaultRecordBatchBuilder

from belfry.transactions.errors import LOST
from belfry.transactions.packing import NONE, packed
from belfry.wire.record import Headers

Where = tuple[str, int]

# Below the limit that Kafka's brokers have unless told otherwise; librdkafka fills as much.
BATCH_BYTES: Final = 1_000_000
# A broker takes 100 MB in a request by default, and answers a small one sooner.
REQUEST_BYTES: Final = 8_000_000
_MAGIC: Final = 2
_SEQUENCES: Final = 2**31


class Writer(NamedTuple):
    """Who writes: what the coordinator gave to this transactional id."""

    producer_id: int
    epoch: int


@dataclass(slots=True, eq=False)
class Batch:
    """A finished batch, and what its partition has answered: offset and append time in epoch ms."""

    where: Where
    records: int
    data: bytes
    code: int = LOST
    offset: int = -1
    appended_ms: int = -1

    @property
    def last_offset(self) -> int:
        """The offset of its last record, once it was acknowledged."""
        return self.offset + self.records - 1


class StepBatches:
    """The batches of one step, in the making."""

    def __init__(self, codec: int, limits: Mapping[str, int], now_ms: int) -> None:
        """`limits` are bytes of a batch, by topic, where they are less than `BATCH_BYTES`."""
        self._codec = codec
        self._limits = limits
        self._now_ms = now_ms
        # Builders of each partition, and how many records the last of them has.
        self._filled: dict[Where, list[tuple[Any, int]]] = {}
        self._open: dict[Where, Any] = {}
        self._count: defaultdict[Where, int] = defaultdict(int)

    def add(self, where: Where, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """Put a record behind those that the partition already gets."""
        builder = self._open.get(where)
        if builder is None:
            builder = self._open[where] = self._builder(where[0])
        count = self._count[where]
        if builder.append(count, self._now_ms, key, value, headers) is None:
            self._filled.setdefault(where, []).append((builder, count))
            builder, count = self._builder(where[0]), 0
            # The first record of a batch always fits: whether it may be so large is the broker's.
            builder.append(0, self._now_ms, key, value, headers)
            self._open[where] = builder
        self._count[where] = count + 1

    def add_rows(self, where: Where, rows: Iterable[Mapping[str, bytes | None]]) -> None:
        """The same for many records of one partition, which have a key and a value alone."""
        builder, count, now_ms = self._open.get(where), self._count[where], self._now_ms
        none: Headers = []
        for row in rows:
            key, value = row["key"], row["value"]
            if builder is None or builder.append(count, now_ms, key, value, none) is None:
                self._count[where] = count
                self.add(where, key, value, none)
                builder, count = self._open[where], self._count[where]
            else:
                count += 1
        self._count[where] = count

    def _builder(self, topic: str) -> Any:
        most = min(self._limits.get(topic, BATCH_BYTES), BATCH_BYTES)
        return DefaultRecordBatchBuilder(_MAGIC, NONE, 1, -1, -1, 0, most)

    @property
    def places(self) -> set[Where]:
        """The partitions that get something."""
        return set(self._open)

    def finish(self, writer: Writer, sequences: Mapping[Where, int]) -> list[Batch]:
        """All batches: the first of each partition, then the second ones, and so on.

        `sequences` are those of the next record of each partition; 0 where none is told.
        """
        rounds: defaultdict[int, list[Batch]] = defaultdict(list)
        for where, last in self._open.items():
            sequence = sequences.get(where, 0)
            parts = [*self._filled.get(where, ()), (last, self._count[where])]
            for number, (builder, count) in enumerate(parts):
                builder.set_producer_state(writer.producer_id, writer.epoch, sequence)
                rounds[number].append(Batch(where, count, packed(builder.build(), self._codec)))
                sequence = after(sequence, count)
        return [batch for number in sorted(rounds) for batch in rounds[number]]


def after(sequence: int, records: int) -> int:
    """The sequence of the record that follows so many; behind the largest comes 0."""
    return (sequence + records) % _SEQUENCES


def requests_of(batches: Iterable[Batch]) -> list[list[Batch]]:
    """Batches for one broker, in order, as requests that it takes."""
    requests: list[list[Batch]] = []
    places: set[Where] = set()
    size = 0
    for batch in batches:
        if not requests or batch.where in places or size + len(batch.data) > REQUEST_BYTES:
            requests.append([])
            places, size = set(), 0
        requests[-1].append(batch)
        places.add(batch.where)
        size += len(batch.data)
    return requests
