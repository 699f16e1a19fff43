"""What a partition's mirror reads of the source: all carried topics, by one consumer.

Rows of the changelog are held back until their manifest has been read, so what is carried ends with
a transaction. Compaction leaves stretches without manifests, above all at the beginning of a log.
Such a one is cut amid, by rows and by bytes: it has to go into memory and into one transaction.

    read       row a   row b   manifest 7   row c
    batch      a, b, manifest 7                      position behind the manifest
    held       c
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import KafkaError, Message, TopicPartition

from belfry.kafka import librdkafka
from belfry.kafka.changelog_batches import StreamedRecord
from belfry.kafka.changelog_sieve import Sieve
from belfry.kafka.log_bounds import WITHOUT_GROUP
from belfry.kafka.log_ends import REQUEST_S, asked
from belfry.kafka.record_headers import headers_of
from belfry.mirror.beginnings import CannotMirror
from belfry.mirror.marks import CHANGELOG, MARKS
from belfry.mirror.sides import Side
from belfry.store.net import Change, after_last_manifest
from belfry.store.replay import MOST_BUFFERED

# Bytes of rows without their manifest: at the beginning of a log, and behind a transaction. The
# second is more than a worker's transaction has, so this side stays whole but where compaction was.
HEAD_BYTES: Final = 16_000_000
STRETCH_BYTES: Final = 64_000_000
# Records that are taken at once, and seconds that the rest of them may take.
BATCH: Final = 10_000
SOON_S: Final = 0.002
_READS: Final[dict[str, Any]] = {
    **WITHOUT_GROUP,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": 100,
    "queued.max.messages.kbytes": 16_384,
}


@dataclass(slots=True)
class CarriedBatch:
    """What was read at once: rows of the changelog, and records of other topics by their kind.

    `positions` are the source's offsets behind it. `whole` says that the rows end with a manifest.
    """

    rows: list[Change]
    others: dict[str, list[Message]]
    positions: dict[str, int]
    whole: bool

    @property
    def size(self) -> int:
        """How many records there are."""
        return len(self.rows) + sum(map(len, self.others.values()))


@dataclass(slots=True)
class _Held:
    """Rows whose manifest has not been read yet, and where they lie."""

    rows: list[Change] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    size: int = 0

    def add(self, rows: list[Change], offsets: list[int]) -> None:
        """Hold further ones back."""
        self.rows += rows
        self.offsets += offsets
        self.size += _size(rows)

    def take(self, count: int) -> list[Change]:
        """The first so many, which are held no more."""
        found = self.rows[:count]
        del self.rows[:count], self.offsets[:count]
        self.size -= _size(found)
        return found


def _size(rows: list[Change]) -> int:
    """Bytes of rows."""
    return sum(len(key) + len(row or b"") for key, row in rows)


class CarriedReader:
    """Reads one partition of the source; for one thread, and closed after use."""

    def __init__(
        self, side: Side, partition: int, positions: dict[str, int] | None, *, whole: bool
    ) -> None:
        """`positions` by kind; a kind without one is read from its first offset.

        `whole` says whether what was read before ended with a manifest.
        """
        self._side = side
        self._partition = partition
        self._sieve = Sieve(side.judge(partition))
        self._consumer = librdkafka.Consumer({**side.settings.kafka_properties(), **_READS})
        self._kinds = {side.settings.topic(each): each for each in side.kinds - {MARKS}}
        self._held = _Held()
        self._whole = whole
        # The source's offsets behind what was read.
        self.read: dict[str, int] = {}
        try:
            self._assign(positions or {})
        except BaseException:
            self._consumer.close()
            raise

    def _assign(self, positions: dict[str, int]) -> None:
        places = []
        for topic, kind in self._kinds.items():
            place = TopicPartition(topic, self._partition)
            low, end = asked(self._consumer, place)
            at = positions.get(kind, low)
            # What retention removed of other topics is no loss that a mirror makes.
            at = at if kind == CHANGELOG else max(at, low)
            if not low <= at <= end:
                raise CannotMirror(
                    f"{topic}/{self._partition} of the source holds offsets {low} to {end}, and"
                    f" this mirror has to go on at {at}: what lies between is gone there. Delete"
                    " the topics of this side, create them anew, and begin again."
                )
            self.read[kind] = at
            places.append(TopicPartition(topic, self._partition, at))
        self._consumer.assign(places)

    def ends(self) -> dict[str, int]:
        """Where readers of committed records find the source's ends now, by kind."""
        return {
            kind: asked(self._consumer, TopicPartition(topic, self._partition), REQUEST_S)[1]
            for topic, kind in self._kinds.items()
        }

    def batch(self, wait_s: float) -> CarriedBatch:
        """The next records; raises ConnectionError, and CannotMirror where the source lost some."""
        first = self._consumer.poll(wait_s)
        messages = [] if first is None else [first, *self._consumer.consume(BATCH - 1, SOON_S)]
        by_kind: dict[str, list[Message]] = {}
        for message in messages:
            if message.error() is not None:
                self._pass_end(message)
                continue
            kind = self._kinds[message.topic() or ""]
            by_kind.setdefault(kind, []).append(message)
            self.read[kind] = (message.offset() or 0) + 1
        rows = self._cut(by_kind.pop(CHANGELOG, []))
        return CarriedBatch(rows, by_kind, self.positions, self._whole)

    @property
    def positions(self) -> dict[str, int]:
        """The source's offsets behind what was given out, by kind."""
        held = self._held.offsets
        return {**self.read, CHANGELOG: held[0]} if held else dict(self.read)

    def _cut(self, messages: list[Message]) -> list[Change]:
        """Rows up to the last manifest; what follows is held back."""
        held = self._held
        where = self._side.settings.topic(CHANGELOG), self._partition
        rows, offsets = self._sieve.ours(_as_records(messages), where)
        held.add(rows, offsets)
        at = after_last_manifest(held.rows)
        if at:
            self._whole = True
        elif len(held.rows) > MOST_BUFFERED or held.size > self._most_bytes:
            at, self._whole = len(held.rows), False
        return held.take(at)

    @property
    def _most_bytes(self) -> int:
        return STRETCH_BYTES if self._whole else HEAD_BYTES

    def _pass_end(self, message: Message) -> None:
        """Note an end that was reached, or raise what is more than that."""
        error: Any = message.error()
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise CannotMirror(
                f"{message.topic()}/{self._partition} of the source has lost what was not carried"
                f" yet ({error.str()}): begin again with topics made anew."
            )
        if is_end(message):
            kind = self._kinds[message.topic() or ""]
            self.read[kind] = max(self.read[kind], message.offset() or 0)

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()


def is_end(message: Message) -> bool:
    """Whether a message that is an error tells of an end, or else of what passes by itself.

    Raises ConnectionError for others. Some name no topic, as where the group's coordinator, or a
    right, is missing.
    """
    error: Any = message.error()
    if error.code() == KafkaError._PARTITION_EOF:
        return True
    if error.fatal() or not error.retriable():
        raise ConnectionError(f"{message.topic() or 'kafka'}: {error.str()}")
    return False


def _as_records(messages: list[Message]) -> list[StreamedRecord]:
    """Messages as readers of the changelog give them."""
    return [
        StreamedRecord(each.offset() or 0, each.timestamp()[1], each.key(), each.value(), headers)
        for each, headers in zip(messages, headers_of(messages), strict=True)
    ]
