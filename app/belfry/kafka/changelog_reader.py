"""Reading one partition of the changelog, `read_committed`, in whole record batches.

    fetcher ── batches as they are stored ──┬─► rolled back: skipped
                                            └─► unpacked, read in one go, judged: rows and offsets

Workers' records are state, so none may be skipped: a batch that cannot be read is an error. The
position moves with every batch, also with control records only, so that "read to the end" never
waits for a record that does not come.

`RequestLog` reads requests, with bounds, since any client may write them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from belfry.kafka import fetcher
from belfry.kafka.changelog_batches import UnreadableRows, records_in
from belfry.kafka.changelog_sieve import Changes, Sieve
from belfry.kafka.fetch_position import Fetched, OffsetGone
from belfry.kafka.log_bounds import LogReader, OutOfRange
from belfry.kafka.log_ends import LogEnds
from belfry.store.row_judge import LoggedRecord
from belfry.wire.record_batches import CommittedBatches, RecordBatch, batches_in

# Records of one look that only asks whether there are any.
FEW: Final = 100
# Seconds to wait for more records, after a few have come.
MORE_S: Final = 0.002
# With so many records there is no more wait: the next answer comes while they are applied.
PLENTY: Final = 2_000


class UnreadableBatch(ConnectionError):
    """A batch of the changelog that cannot be read, now or later: it is damaged, or too large."""


class ChangelogReader(LogReader[LoggedRecord]):
    """A reader of one partition of the changelog, from a position on.

    One thread at a time may use it, and it is closed after use. `position` is the offset to be read
    next. Raises OutOfRange if the log has changed under it, and ConnectionError.
    """

    def __init__(
        self,
        properties: dict[str, Any],
        topic: str,
        partition: int,
        log_ends: LogEnds | None = None,
    ) -> None:
        """`properties` are librdkafka's; `log_ends` gives the end of the log."""
        super().__init__(properties, topic, partition, log_ends)
        self._where = topic, partition
        self._fetcher = fetcher.Fetcher(properties)
        # Batches that were fetched and not read yet, and whether they count.
        self._batches: deque[tuple[RecordBatch, bool]] = deque()
        self._fetched = 0
        self._failed: Exception | None = None
        # It says which records count.
        self.sieve = Sieve()
        self.position = 0
        # When the last record that was read was appended, by the broker's clock.
        self.newest_ms: int | None = None

    def seek(
        self, offset: int, *, manifest_at: int = -1, known: tuple[int, int] | None = None
    ) -> None:
        """Read from this offset on; LostRange if the log begins later.

        `manifest_at` is the offset of the last manifest before that, if known: a stranger's copy of
        an older row is not believed behind it. `known` is the begin and the end of the log, if that
        was asked just now.
        """
        self.check(offset, known)
        self._failed = None
        self._batches.clear()
        self.sieve.restart(manifest_at)
        self.position = self._fetched = offset
        # Even from the same position: batches that were fetched from there are gone.
        self._fetcher.follow({})
        self._fetcher.follow({self._where: offset})

    def read(self, at_most: int, wait_s: float) -> list[LoggedRecord]:
        """The next records, about `at_most`: batches are read whole. `position` moves behind them.

        The next answer is on its way when this returns, and comes while the records are applied.
        With few records or none, this call waits for it. Only the first answer is waited for as
        long as `wait_s`, with or without rows in it: the caller has other work, and transactions
        that end without rows may go on coming. An error that comes behind records is raised by the
        next call, so a caller that reads on after it has lost no record.
        """
        found: list[LoggedRecord] = []
        answered = False
        while self._take_out(found, at_most) and len(found) < at_most:
            if found or answered:
                wait_s = MORE_S if len(found) < PLENTY else 0.0
            if not self._fetch(wait_s, after_records=bool(found)):
                break
            answered = True
        if found:
            self.newest_ms = found[-1].timestamp
        return found

    def _take_out(self, found: list[LoggedRecord], at_most: int) -> bool:
        """Read batches that were fetched; False if one cannot be read, behind the found records."""
        while self._batches and len(found) < at_most:
            batch, counts = self._batches[0]
            if counts and batch.next_offset > self.position:
                try:
                    found += self._records(batch)
                except ConnectionError:
                    if found:
                        return False
                    raise
            self._batches.popleft()
            self.position = max(self.position, batch.next_offset)
        if not self._batches:
            self.position = max(self.position, self._fetched)
        return True

    def _fetch(self, wait_s: float, *, after_records: bool) -> bool:
        """Take in the next answer; returns whether there was one."""
        if self._failed is None:
            answer = self._fetcher.take(wait_s)
            if answer is None:
                return False
            self._add(answer)
        if self._failed is None:
            return True
        if after_records:
            return False
        failed, self._failed = self._failed, None
        try:
            raise failed
        finally:
            # An error that its own frame refers to would keep all frames that it passes through.
            del failed

    def _add(self, answer: Fetched) -> None:
        """Keep the batches of an answer, or its error."""
        if answer.error is not None:
            gone = isinstance(answer.error, OffsetGone)
            self._failed = OutOfRange(str(answer.error)) if gone else answer.error
            return
        committed = CommittedBatches(answer.aborted)
        self._batches.extend((each, committed.holds(each)) for each in batches_in(answer.data))
        self._fetched = max(self._fetched, answer.behind)

    def _records(self, batch: RecordBatch) -> Sequence[LoggedRecord]:
        try:
            records = records_in(batch)
        except UnreadableRows as error:
            topic, partition = self._where
            raise UnreadableBatch(
                f"{topic}/{partition}: the batch at offset {batch.base_offset} cannot be read:"
                f" {error}"
            ) from error
        if batch.base_offset >= self.position:
            return records
        return [each for each in records if each.offset >= self.position]

    @property
    def hides(self) -> bool:
        """Whether an open transaction holds back the records from its first one on."""
        # In this order: a record that is appended in between does not count as hidden.
        return self.log_end() > self.ends()[1]

    def holds_records(self) -> bool:
        """Whether any committed row is there, or may be hidden; the position is then lost."""
        low, end = self.ends()
        self.seek(low)
        return any(self.changes(each)[0] for each in self.read_until(end, FEW)) or self.hides

    def changes(self, records: Sequence[LoggedRecord]) -> Changes:
        """The rows among records, and their offsets."""
        return self.sieve.ours(records, self._where)

    def close(self) -> None:
        """Close the connections."""
        self._fetcher.close()
