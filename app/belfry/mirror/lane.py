"""One partition of a mirror: the records of the source, and the transactions that carry them.

    open    fence the target's partition ─► read its mark ─► decide where to begin
    turn    read ─► one transaction: rows, requests, lifecycle, refused, and the mark
    close

All records that the source had by an instant are carried when the mirror reaches the ends that the
source told after that instant. There is no other proof: a source that is cut off sends no records
either.

    12:00:00  the source ends at 131 and 18      12:00:02  both are reached: level since 12:00:00
    12:00:05  no answer: the lane ends           the mark still says 12:00:00

The target is written with the transactional ids of the partition itself. So a take-over, which
takes them, ends a mirror that still runs; and a mirror that is started a second time ends the first
one. The mark is read after the fence, when no other process can write one: a mirror that comes late
learns that the partition was taken over, and leaves.

    killed amid a transaction     the next one fences, which rolls it back, and goes on at the mark
    killed after it               the mark says so

Lanes know of one another (`cuts.py`), for the carried records of all partitions have to fit
together at any time.

A partition that was just added is there as a whole from its first transaction on: its log begins
with it, and was not compacted yet. All that the source had before its first record is here.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final, NamedTuple

from confluent_kafka import Message

from belfry.kafka.record_headers import headers_of
from belfry.mirror.beginnings import see_that_it_is_in_time
from belfry.mirror.carried import carried_headers, carried_rows
from belfry.mirror.cuts import Gate, Together
from belfry.mirror.held_rows import CarriedBatch
from belfry.mirror.marks import (
    MARK_KEY,
    MARKS,
    REQUESTS,
    MirrorMark,
    encode_mark,
    offsets_behind,
)
from belfry.mirror.opening import Opening, number_of
from belfry.mirror.reading import CarriedReader
from belfry.mirror.sides import Side
from belfry.recovery.changelog_writer import ChangelogWriter
from belfry.store.identity import encode_identity
from belfry.store.layout import keys
from belfry.store.net import Change
from belfry.wire.record import Headers
from belfry.wire.worker_keys import Purpose

# A transaction that its mirror leaves behind hides the target's end for so long.
TRANSACTION_MS: Final = 60_000
# A log whose first record is no older when it is followed was not compacted.
YOUNG_MS: Final = 600_000
# So often the source is asked where it ends.
ASK_EVERY_MS: Final = 5_000


class _Goal(NamedTuple):
    """The source's ends, by kind, which it told after an instant (epoch ms)."""

    at_ms: int
    ends: dict[str, int]


class Lane:
    """Carries one partition; for one thread.

    Methods raise ConnectionError, KafkaException and BufferError where a side does not answer or a
    fence has come: then it is closed, and another one opened. CannotMirror says that it is over.
    """

    def __init__(
        self, source: Side, target: Side, partition: int, now_ms: int, together: Together, *,
        takes_over: bool = False,
    ) -> None:  # fmt: skip
        """`together` is shared with the other lanes. With `takes_over` it may go on where a
        take-over has begun.
        """
        self.partition = partition
        self._together = together
        self._gate = Gate(together, partition)
        self.source = source
        self.target = target
        self._origin_keys = source.settings.worker_keys(Purpose.ORIGIN)
        # The source's ends when this lane last asked, and the ends that it carries up to.
        self._asked_ms = 0
        self._ends: dict[str, int] = {}
        self._goal: _Goal | None = None
        # All that the source had appended by then is carried (epoch ms); 0 until that is known.
        self.level_ms = 0
        opening = Opening(source, target, partition, takes_over=takes_over)
        # Before the fence as well, so that a partition that is somebody's is not disturbed.
        opening.start()
        self.writer = ChangelogWriter(target.settings, partition, TRANSACTION_MS)
        try:
            begun, self.mark = opening.mark(now_ms)
            # Until it is level it goes on reading, which takes a while.
            see_that_it_is_in_time(self.mark, partition, now_ms, source.tombstones_ms // 2)
            self._begins = begun.positions is None
            self.reader = CarriedReader(
                source, partition, begun.positions, self._gate,
                whole=self.mark.whole, rows_to=(self.mark.judged, self.mark.number),
            )  # fmt: skip
            self._tell()
        except BaseException:
            self.writer.close()
            raise

    def turn(self, wait_s: float, now_ms: int) -> int:
        """Carry the next records; how many these were. It waits `wait_s` for the first of them."""
        if not 0 <= now_ms - self._asked_ms < ASK_EVERY_MS:
            self._ask(now_ms)
        self._together.waits.passes(now_ms)
        batch = self.reader.batch(wait_s, now_ms)
        if batch.size or self._begins or self._is_level:
            self._carry(batch)
        # Also where only the ends of transactions came: others may wait for just that.
        self._together.inputs[self.partition] = self.reader.positions.get(REQUESTS, 0)
        return batch.size

    @property
    def is_held(self) -> bool:
        """Whether transactions wait for other partitions."""
        return self._gate.held > 0

    @property
    def wants_growth(self) -> bool:
        """Whether one waits for a partition that is not followed yet."""
        first = self._gate.first
        return first is not None and first.names >= self._together.count

    def _tell(self) -> None:
        """Tell the other lanes how far this one is."""
        mark = self.mark
        number = number_of(self.target, self.partition, mark)
        requests = self.reader.positions.get(REQUESTS, 0)
        self._together.carried(self.partition, number, requests, mark.level_ms)

    def _ask(self, now_ms: int) -> None:
        see_that_it_is_in_time(self.mark, self.partition, now_ms, self.source.tombstones_ms)
        self._ends = self.reader.ends()
        self.reader.pass_missing(self._ends[REQUESTS], now_ms)
        self._asked_ms = now_ms
        if self._goal is None:
            self._goal = _Goal(now_ms, self._ends)

    @property
    def _is_level(self) -> bool:
        """Whether the lane has read as far as it has to carry."""
        return self._goal is not None and self.reached(self._goal.ends)

    def reached(self, ends: dict[str, int]) -> bool:
        """Whether all is carried up to these offsets of the source."""
        positions = self.reader.positions
        return all(positions.get(kind, 0) >= end for kind, end in ends.items())

    def behind(self) -> int:
        """How many offsets of the source were still to be carried when it was last asked."""
        return offsets_behind(self._ends, self.reader.positions)

    def leave(self) -> None:
        """Say that a take-over has begun, and where it goes on if it is said again."""
        mark = self.mark._replace(leaving=True, positions=self.reader.positions)
        self._commit(self._beginning(), {}, mark)
        self._begins = False

    def _beginning(self) -> list[Change]:
        """The first records, so that no worker takes a copy for a belfry of its own."""
        if not self._begins:
            return []
        return [(keys.IDENTITY_KEY, encode_identity(self.source.here))]

    def _carry(self, batch: CarriedBatch) -> None:
        rows, generation, judged = carried_rows(batch.rows, self.target.here.cluster)
        goal = self._goal if self._is_level else None
        mark = self.mark._replace(
            positions=batch.positions,
            generation=max(self.mark.generation, generation),
            whole=batch.whole,
            judged=self.mark.judged if judged is None else judged,
            number=self.mark.number if batch.number is None else batch.number,
            level_ms=(self.mark.level_ms or self._begun_ms(batch)) if goal is None else goal.at_ms,
        )
        self._commit([*self._beginning(), *rows], batch.others, mark)
        self._begins = False
        if goal is not None:
            self._goal, self.level_ms = None, goal.at_ms

    def _begun_ms(self, batch: CarriedBatch) -> int:
        """The instant by which a partition that was just added was empty; 0 for any other one."""
        began_ms = self.reader.began_ms
        young = self.mark.began_ms - began_ms < YOUNG_MS
        return began_ms - 1 if batch.whole and began_ms and young else 0

    def _commit(
        self, rows: list[Change], others: dict[str, list[Message]],
        mark: MirrorMark,
    ) -> None:  # fmt: skip
        writer, topic = self.writer, self.target.settings.topic
        writer.begin(self.target.here.changelog)
        for key, row in rows:
            writer.row(key, row)
        for kind, messages in others.items():
            for message, headers in zip(messages, headers_of(messages), strict=True):
                given = self._request_headers(message, headers) if kind == REQUESTS else headers
                more: dict[str, Any] = {"headers": given or [], "timestamp": message.timestamp()[1]}
                writer.beside(topic(kind), message.key(), message.value(), **more)
        writer.beside(topic(MARKS), MARK_KEY, encode_mark(mark))
        writer.commit()
        self.mark = mark
        self._tell()

    def _request_headers(self, message: Message, headers: Headers | None) -> Headers:
        place = self.source.settings.topic(REQUESTS), self.partition
        offset, timestamp_ms = message.offset() or 0, message.timestamp()[1]
        record = offset, timestamp_ms, message.key(), message.value(), headers
        return carried_headers(record, place, self._origin_keys)

    def close(self) -> None:
        """Give both sides up."""
        with closing(self.writer):
            self.reader.close()
