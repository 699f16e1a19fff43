"""Partitions as they lie on the broker's disk: batches, producers, epochs, and transaction markers.

A consumer sees neither who wrote a record nor where a transaction ended.  The segments say both, in
the header of each batch (format 2, the only one that Kafka 4 writes):

    base offset i64 · length i32 · leader epoch i32 · magic i8 · crc u32 · attributes i16 ·
    last offset delta i32 · first timestamp i64 · max timestamp i64 · producer id i64 ·
    producer epoch i16 · base sequence i32 · records i32

Shares no code with belfry.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final

_HEADER: Final = Struct(">qiibIhiqqqhii")
_BEFORE_LENGTH_COUNTS: Final = 12
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_CONTROL_KEY: Final = Struct(">hh")
COMMIT: Final = 1


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch; `marker` is empty, or how it ends its producer's transaction: commit or abort.

    `at_ms` is its largest timestamp: the instant of its append, where the topic is stamped so.
    """

    first: int
    last: int
    producer: int
    epoch: int
    transactional: bool
    marker: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """What one producer wrote to one partition in one transaction; `marker` is empty while open."""

    producer: int
    epoch: int
    first: int
    last: int
    begun_ms: int
    ended_ms: int
    marker: str


def batches(log_dir: Path, topic: str, partition: int) -> list[Batch]:
    """All batches of a partition, in their order."""
    found: list[Batch] = []
    for segment in sorted((log_dir / f"{topic}-{partition}").glob("*.log")):
        found += _of_segment(segment.read_bytes())
    return found


def transactions(found: list[Batch]) -> list[Transaction]:
    """The transactions of a partition, by where they ended; open ones come last."""
    ended: list[Transaction] = []
    opened: dict[int, list[Batch]] = {}
    for batch in found:
        if not batch.transactional:
            continue
        if not batch.marker:
            opened.setdefault(batch.producer, []).append(batch)
            continue
        # A marker may carry a newer epoch than the records that it ends: that is the fence.
        of = opened.pop(batch.producer, [])
        if of:
            ended.append(_transaction(of, batch))
    return ended + [_transaction(of, None) for of in opened.values()]


class Writers:
    """Which transaction each offset of a partition was written in.

    Several producers may write to one partition at a time, so their transactions interleave.
    """

    def __init__(self, found: list[Batch]) -> None:
        self.transactions = transactions(found)
        self._data = [batch for batch in found if batch.transactional and not batch.marker]
        self._firsts = [batch.first for batch in self._data]
        self._by_producer: dict[int, list[Transaction]] = {}
        for one in self.transactions:
            self._by_producer.setdefault(one.producer, []).append(one)

    def of(self, offset: int) -> Transaction | None:
        """The transaction that an offset was written in; None outside of any."""
        at = bisect_right(self._firsts, offset) - 1
        if at < 0 or offset > self._data[at].last:
            return None
        mine = self._by_producer[self._data[at].producer]
        return mine[bisect_right(mine, offset, key=_first) - 1]


def _first(one: Transaction) -> int:
    return one.first


def partitions_of(log_dir: Path, topic: str) -> list[int]:
    """Which partitions of a topic lie here."""
    stem = f"{topic}-"
    tails = [path.name.removeprefix(stem) for path in log_dir.glob(f"{stem}*")]
    return sorted(int(tail) for tail in tails if tail.isdigit())


def _transaction(of: list[Batch], end: Batch | None) -> Transaction:
    return Transaction(
        of[0].producer,
        of[0].epoch,
        of[0].first,
        of[-1].last,
        of[0].at_ms,
        end.at_ms if end else 0,
        end.marker if end else "",
    )


def _of_segment(content: bytes) -> Iterator[Batch]:
    at = 0
    while at + _HEADER.size <= len(content):
        (base, length, _, magic, _, attributes, delta, _, max_ms, producer, epoch, _, _,
        ) = _HEADER.unpack_from(content, at)  # fmt: skip
        end = at + _BEFORE_LENGTH_COUNTS + length
        if length <= 0 or end > len(content):
            return
        assert magic == 2, f"a batch of format {magic}"
        marker = _marker(content[at + _HEADER.size : end]) if attributes & _CONTROL else ""
        transactional = bool(attributes & _TRANSACTIONAL)
        yield Batch(base, base + delta, producer, epoch, transactional, marker, max_ms)
        at = end


def _marker(record: bytes) -> str:
    """Commit or abort: the control record's key, after size, attributes, deltas and key size."""
    at = 0
    _, at = _varint(record, at)
    at += 1
    for _ in range(3):
        _, at = _varint(record, at)
    return "commit" if _CONTROL_KEY.unpack_from(record, at)[1] == COMMIT else "abort"


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at
