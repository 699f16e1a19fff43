"""The reader of a partition's mirror: all carried topics of the source, by one consumer.

Rows of the changelog are held back until their manifest has been read, so carried rows end with a
transaction. Compaction leaves stretches without manifests, above all at the beginning of a log.
Such a stretch is cut into pieces, by rows and by bytes: each has to go into memory and into one
transaction.

    read       row a   row b   manifest 7   row c
    batch      a, b, manifest 7                      position behind the manifest
    held       c

A transaction is held back as well until its causes and its effects are carried (`cuts.py`). If that
takes long, the changelog is read no further, and only other topics are.

A mirror that goes on reads carried requests again that were not judged by then: they are not given
out, but their senders have to be known.
"""

from __future__ import annotations

from typing import Any, Final

from confluent_kafka import KafkaError, Message, TopicPartition

from belfry.kafka import librdkafka
from belfry.kafka.changelog_sieve import Sieve
from belfry.kafka.log_bounds import WITHOUT_GROUP
from belfry.kafka.log_ends import REQUEST_S, asked
from belfry.kafka.record_headers import headers_of
from belfry.mirror.beginnings import CannotMirror
from belfry.mirror.cuts import Gate, Need
from belfry.mirror.held_rows import CarriedBatch, HeldRows, as_records
from belfry.mirror.marks import CHANGELOG, REQUESTS
from belfry.mirror.premature import sender_of
from belfry.mirror.sides import Side
from belfry.store.net import Change
from belfry.store.replay import MOST_BUFFERED
from belfry.wire.worker_keys import Purpose

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


class CarriedReader:
    """Reads one partition of the source; for one thread, and closed after use."""

    def __init__(
        self, side: Side, partition: int, positions: dict[str, int] | None, gate: Gate, *,
        whole: bool, rows_to: tuple[int, int] = (0, 0),
    ) -> None:  # fmt: skip
        """`positions` by kind; a kind without one is read from its first offset.

        `whole` says whether what was read before ended with a manifest. Rows go up to `rows_to`:
        an offset of the requests, and a transaction, 0 where none is known. `gate` says which
        transactions may be given out.
        """
        self._side = side
        judged, number = rows_to
        self._partition = partition
        self._gate = gate
        self._origin_keys = side.settings.worker_keys(Purpose.ORIGIN)
        self._sieve = Sieve(side.judge(partition))
        self._consumer = librdkafka.Consumer({**side.settings.kafka_properties(), **_READS})
        self._kinds = {side.settings.topic(each): each for each in side.kinds_of(partition)}
        self._held = HeldRows(number=number)
        self._whole = whole
        self._paused = False
        # The source's offsets behind the read records.
        self.read: dict[str, int] = {}
        # When the changelog began, epoch ms; 0 where its first record was not read here.
        self.began_ms = 0
        # Requests from here on are given out, and up to here it is known who sent them.
        self._fresh = self.noted = 0
        try:
            self._assign(positions or {}, judged)
        except BaseException:
            self._consumer.close()
            raise

    def _assign(self, positions: dict[str, int], judged: int) -> None:
        places = []
        for topic, kind in self._kinds.items():
            place = TopicPartition(topic, self._partition)
            low, end = asked(self._consumer, place)
            at = positions.get(kind, low)
            # Records that retention removed from other topics are not a loss of the mirror.
            at = at if kind == CHANGELOG else max(at, low)
            if not low <= at <= end:
                raise CannotMirror(
                    f"{topic}/{self._partition} of the source holds offsets {low} to {end}, and"
                    f" this mirror has to go on at {at}: what lies between is gone there. Delete"
                    " the topics of this side, create them anew, and begin again."
                )
            self.read[kind] = at
            if kind == REQUESTS:
                self._fresh = at
                at = self.noted = max(low, min(at, judged)) if kind in positions else at
            places.append(TopicPartition(topic, self._partition, at))
        self._consumer.assign(places)

    def ends(self) -> dict[str, int]:
        """Where readers of committed records find the source's ends now, by kind."""
        return {
            kind: asked(self._consumer, TopicPartition(topic, self._partition), REQUEST_S)[1]
            for topic, kind in self._kinds.items()
        }

    def batch(self, wait_s: float, now_ms: int = 0) -> CarriedBatch:
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
            self.read[kind] = max(self.read[kind], (message.offset() or 0) + 1)
        fresh = self._noted(by_kind.pop(REQUESTS, []), now_ms)
        if fresh:
            by_kind[REQUESTS] = fresh
        rows, number = self._cut(by_kind.pop(CHANGELOG, []), now_ms)
        return CarriedBatch(rows, by_kind, self.positions, self._whole, number)

    def _noted(self, requests: list[Message], now_ms: int) -> list[Message]:
        """Note who sent requests on; those that were not carried before."""
        place = self._side.settings.topic(REQUESTS), self._partition
        for message, headers in zip(requests, headers_of(requests), strict=True):
            by = sender_of(message, headers, place, self._origin_keys) if headers else None
            if by is not None:
                self._gate.request(Need(message.offset() or 0, by, now_ms))
            self.noted = (message.offset() or 0) + 1
        return [each for each in requests if (each.offset() or 0) >= self._fresh]

    @property
    def positions(self) -> dict[str, int]:
        """The source's offsets behind the given records, by kind."""
        held = self._held.offsets
        return {**self.read, CHANGELOG: held[0]} if held else dict(self.read)

    def pass_missing(self, end: int, asked_ms: int) -> None:
        """The requests end at `end`, asked at `asked_ms`: no more will come for what was read
        before, as where they were made anew behind an older changelog.
        """
        if self.noted >= end:
            self._gate.pass_missing(end, asked_ms)

    def _cut(self, messages: list[Message], now_ms: int) -> tuple[list[Change], int | None]:
        """Rows up to the last manifest that may be carried; later rows are held back."""
        if messages and messages[0].offset() == 0:
            self.began_ms = messages[0].timestamp()[1]
        held, gate = self._held, self._gate
        where = self._side.settings.topic(CHANGELOG), self._partition
        rows, offsets = self._sieve.ours(as_records(messages), where)
        held.add(rows, offsets)
        for cut in held.cuts(now_ms):
            gate.sealed(cut)
        cuts = gate.free(self.noted)
        number = cuts[-1].number if cuts else None
        at = sum(cut.rows for cut in cuts)
        if at:
            self._whole = True
        elif not gate.held and (len(held.rows) > MOST_BUFFERED or held.size > self._most_bytes):
            at, self._whole = len(held.rows), False
            held.behind = 0
        taken = held.take(at)
        self._pause_changelog(held.size > STRETCH_BYTES and gate.held > 0)
        return taken, number

    def _pause_changelog(self, paused: bool) -> None:
        """Read the changelog no further while much of it waits, or read on."""
        if paused == self._paused:
            return
        place = TopicPartition(self._side.settings.topic(CHANGELOG), self._partition)
        (self._consumer.pause if paused else self._consumer.resume)([place])
        self._paused = paused

    @property
    def _most_bytes(self) -> int:
        return STRETCH_BYTES if self._whole else HEAD_BYTES

    def _pass_end(self, message: Message) -> None:
        """Note an end that was reached, or raise the error."""
        error: Any = message.error()
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise CannotMirror(
                f"{message.topic()}/{self._partition} of the source has lost what was not carried"
                f" yet ({error.str()}): begin again with topics made anew."
            )
        if is_end(message):
            kind = self._kinds[message.topic() or ""]
            self.read[kind] = max(self.read[kind], message.offset() or 0)
            if kind == REQUESTS:
                self.noted = max(self.noted, message.offset() or 0)

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()


def is_end(message: Message) -> bool:
    """Whether a message that is an error tells of an end, or of an error that passes by itself.

    Raises ConnectionError for others. Some name no topic, as where the group's coordinator, or a
    right, is missing.
    """
    error: Any = message.error()
    if error.code() == KafkaError._PARTITION_EOF:
        return True
    if error.fatal() or not error.retriable():
        raise ConnectionError(f"{message.topic() or 'kafka'}: {error.str()}")
    return False
