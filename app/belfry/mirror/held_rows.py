"""Records of a mirror's reader: rows that are held back, and batches that are given out."""

from __future__ import annotations

from dataclasses import dataclass, field

from confluent_kafka import Message

from belfry.kafka.changelog_batches import StreamedRecord
from belfry.kafka.record_headers import headers_of
from belfry.mirror.cuts import Cut
from belfry.store.layout.keys import MANIFEST_PREFIX
from belfry.store.layout.manifests import decode_manifest
from belfry.store.net import Change


@dataclass(slots=True)
class CarriedBatch:
    """One batch of records: rows of the changelog, and records of other topics by their kind.

    `positions` are the source's offsets behind it. `whole` says that the rows end with a manifest,
    and `number` is that of the last transaction among them; None without a transaction.
    """

    rows: list[Change]
    others: dict[str, list[Message]]
    positions: dict[str, int]
    whole: bool
    number: int | None = None

    @property
    def size(self) -> int:
        """How many records there are."""
        return len(self.rows) + sum(map(len, self.others.values()))


@dataclass(slots=True)
class HeldRows:
    """Rows whose manifest has not been read yet, and where they lie."""

    rows: list[Change] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    size: int = 0
    # So many of them, the last ones, are behind all transactions that are known to wait.
    behind: int = 0
    # The last transaction that was read, or was carried before; 0 for none.
    number: int = 0

    def add(self, rows: list[Change], offsets: list[int]) -> None:
        """Hold further ones back."""
        self.rows += rows
        self.offsets += offsets
        self.size += _size(rows)
        self.behind += len(rows)

    def cuts(self, at_ms: int) -> list[Cut]:
        """The transactions that end among the rows that came last."""
        found: list[Cut] = []
        first = len(self.rows) - self.behind
        for at in range(first, len(self.rows)):
            key, row = self.rows[at]
            if key.startswith(MANIFEST_PREFIX) and row is not None:
                rows, offset = self.rows[first : at + 1], self.offsets[at] + 1
                found.append(Cut.of(rows, offset, decode_manifest(row), at_ms, self.number))
                self.number = found[-1].number
                first = at + 1
        self.behind = len(self.rows) - first
        return found

    def take(self, count: int) -> list[Change]:
        """The first so many, which are held no more."""
        found = self.rows[:count]
        del self.rows[:count], self.offsets[:count]
        self.size -= _size(found)
        return found


def _size(rows: list[Change]) -> int:
    """Bytes of rows."""
    return sum(len(key) + len(row or b"") for key, row in rows)


def as_records(messages: list[Message]) -> list[StreamedRecord]:
    """Messages as readers of the changelog give them."""
    return [
        StreamedRecord(each.offset() or 0, each.timestamp()[1], each.key(), each.value(), headers)
        for each, headers in zip(messages, headers_of(messages), strict=True)
    ]
