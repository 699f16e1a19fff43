"""A step's records as finished record batches, and batches as requests.  Pure, but for the codecs.

    records ─► one batch for each partition, more if one is full ─► requests, for one broker:

    request 1   fired-a/0 first batch   fired-a/1 first batch   changelog/3 first batch
    request 2   changelog/3 second batch

A request holds one batch of a partition at most, as brokers want it, and the batches of a partition
leave in their order. A batch names its writer: producer, epoch, and the number of its first record
in its partition (its *sequence*). So a batch that is sent twice is appended once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from aiokafka.record._crecords.default_records import DefaultRecordBatchBuilder

from belfry.kafka.row_signing import BATCH_BYTES
from belfry.transactions.errors import LOST
from belfry.transactions.joined_batch import JoinedBatch
from belfry.transactions.packing import NONE, packed
from belfry.wire.record import Headers

Where = tuple[str, int]

# A broker takes 100 MB in a request by default, and answers a small one sooner.
# Bytes of batches in one request.
REQUEST_BYTES: Final = 8_000_000
# The version of record batches (message format v2, KIP-98), and the number of sequences.
_MAGIC: Final = 2
_SEQUENCES: Final = 2**31
# Producer, epoch and sequence of a batch that is not finished.
_NOBODY: Final = (-1, -1, 0)


class Writer(NamedTuple):
    """The producer id and epoch that the coordinator gave to a transactional id."""

    producer_id: int
    epoch: int


@dataclass(slots=True, eq=False)
class ProducedBatch:
    """A finished batch, and the answer of its partition: offset and append time in epoch ms."""

    where: Where
    records: int
    data: bytes | bytearray
    # The last error of the protocol that its partition has answered; LOST before any answer.
    code: int = LOST
    offset: int = -1
    appended_ms: int = -1

    @property
    def last_offset(self) -> int:
        """The offset of its last record, once the batch was acknowledged."""
        return self.offset + self.records - 1


class Filling(Protocol):
    """A batch that is not finished, and the number of its records."""

    count: int

    def finished(self, writer: Writer, sequence: int, codec: int) -> bytes | bytearray:
        """The batch; `sequence` is that of its first record."""


class _Filling:
    """A batch that takes any records, one by one."""

    __slots__ = ("append", "builder", "count")

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self.append = builder.append
        self.count = 0

    def finished(self, writer: Writer, sequence: int, codec: int) -> bytes | bytearray:
        """The batch; `sequence` is that of its first record."""
        self.builder.set_producer_state(*writer, sequence)
        return packed(self.builder.build(), codec)


class StepBatches:
    """The batches of one step, in the making.

    The batches are filled in the partition's thread and finished once. Records of a partition keep
    the order in which they are added.
    """

    def __init__(self, codec: int, limits: Mapping[str, int], now_ms: int) -> None:
        """`limits` are the most bytes of a batch, by topic, if less than `BATCH_BYTES`."""
        self._codec = codec
        # The limits lie in several maps (`alternating.py`), so they are looked up by topic.
        self._limits = dict(limits)
        self.now_ms = now_ms
        self._filled: dict[Where, list[Filling]] = {}
        self._open: dict[Where, _Filling | JoinedBatch] = {}

    def add(self, where: Where, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """Put a record behind those that the partition already gets; `where` is topic and
        partition.
        """
        filling = self._open.get(where) or self._next(where)
        if filling.append(filling.count, self.now_ms, key, value, headers) is None:
            self._close(where)
            filling = self._next(where)
            # The first record of a batch always fits here: the broker decides whether it is too
            # large.
            filling.append(0, self.now_ms, key, value, headers)
        filling.count += 1

    def begin_with(self, filled: Mapping[Where, list[Filling]]) -> None:
        """Put batches of each partition before all records that are added by themselves."""
        self._filled.update(filled)

    def add_rows(self, where: Where, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """The same for many records of one partition that have only a key and a value."""
        filling, now_ms = self._open.get(where) or self._next(where), self.now_ms
        append, count, none = filling.append, filling.count, list[Any]()
        for key, value in rows:
            if append(count, now_ms, key, value, none) is None:
                filling.count = count
                self.add(where, key, value, none)
                filling = self._open[where]
                append, count = filling.append, filling.count
            else:
                count += 1
        filling.count = count

    def joined(self, where: Where) -> JoinedBatch:
        """The last batch of a partition so far, for records that are bytes already."""
        batch = self._open.get(where)
        return batch if isinstance(batch, JoinedBatch) else self.joined_anew(where)

    def joined_anew(self, where: Where) -> JoinedBatch:
        """Another one of these, behind the one that is open."""
        self._close(where)
        batch = self._open[where] = JoinedBatch(self.most(where[0]), self.now_ms)
        return batch

    def _close(self, where: Where) -> None:
        """Put the open batch of a partition among the full ones, if it has any record."""
        batch = self._open.get(where)
        if batch is not None and batch.count:
            self._filled.setdefault(where, []).append(batch)

    def add_apart(
        self, where: Where, records: Iterable[tuple[bytes, bytes | None, Headers]]
    ) -> None:
        """Put records into a batch of their own; BufferError if they do not fit into one."""
        self._close(where)
        filling = self._next(where)
        for key, value, headers in records:
            if filling.append(filling.count, self.now_ms, key, value, headers) is None:
                raise BufferError(f"records that have to lie in one batch of {where[0]} do not fit")
            filling.count += 1

    def most(self, topic: str) -> int:
        """Bytes of a batch that a topic takes."""
        return min(self._limits.get(topic, BATCH_BYTES), BATCH_BYTES)

    def _next(self, where: Where) -> _Filling:
        """A new batch for a partition, behind those that are full."""
        most = self.most(where[0])
        builder = DefaultRecordBatchBuilder(_MAGIC, NONE, True, *_NOBODY, most)
        filling = self._open[where] = _Filling(builder)
        return filling

    @property
    def places(self) -> set[Where]:
        """The partitions that get records."""
        return {*self._filled, *(where for where, last in self._open.items() if last.count)}

    def finish(self, writer: Writer, sequences: Mapping[Where, int]) -> list[ProducedBatch]:
        """All batches: the first of each partition, then the second ones, and so on.

        `sequences` are those of the next record of each partition; 0 for other partitions.
        """
        rounds: defaultdict[int, list[ProducedBatch]] = defaultdict(list)
        parts_of: dict[Where, Iterable[Filling]] = dict(self._filled)
        for where, last in self._open.items():
            parts_of[where] = [*self._filled.get(where, ()), *([last] if last.count else ())]
        for where, parts in parts_of.items():
            sequence = sequences.get(where, 0)
            for number, filling in enumerate(parts):
                data = filling.finished(writer, sequence, self._codec)
                rounds[number].append(ProducedBatch(where, filling.count, data))
                sequence = after(sequence, filling.count)
        return [batch for number in sorted(rounds) for batch in rounds[number]]


def after(sequence: int, records: int) -> int:
    """The sequence after that many records; behind the largest (2^31 - 1) comes 0."""
    return (sequence + records) % _SEQUENCES


def requests_of(batches: Iterable[ProducedBatch]) -> list[list[ProducedBatch]]:
    """Batches for one broker, in order, as requests that it takes."""
    requests: list[list[ProducedBatch]] = []
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
