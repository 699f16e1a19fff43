"""Offsets that never held a record for readers: ends of transactions, and rolled-back records.

A reader of committed records sees a hole there, and another one where compaction has removed
records. The log's batches as they are stored show the difference:

    offset    812      813 to 816      817      818 to 820           821
    batch     an end   rolled back     an end   records for readers  (none: removed)
              └──────── void ────────────────┘
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from belfry.host import machine
from belfry.kafka import fetcher
from belfry.kafka.fetch_position import Fetched, OffsetGone, Where
from belfry.wire.record_batches import CommittedBatches, RecordBatch, batches_in

# Seconds without the expected batches, after which the brokers count as silent.
ANSWER_S: Final = 30.0
# The most bytes of one answer: a hole is mostly small.
ANSWER_BYTES: Final = 256 * 1024


class VoidOffsets:
    """Looks at holes in logs; one thread uses it, and closes it after use."""

    def __init__(self, properties: Mapping[str, Any], wait_s: float = ANSWER_S) -> None:
        """`properties` are librdkafka's; it only connects when there is a hole."""
        self._fetcher = fetcher.Fetcher(properties, ANSWER_BYTES)
        self._wait_s = wait_s

    def all_void(self, where: Where, start: int, end: int) -> bool:
        """Whether each offset from `start` up to before `end` is void; raises ConnectionError.

        An offset that no batch has any more is not void: a record may have been there.
        """
        at, deadline_s = start, machine.monotonic() + self._wait_s
        self._fetcher.follow({where: start})
        try:
            while at < end:
                answer = self._fetcher.take(max(0.0, deadline_s - machine.monotonic()))
                if answer is not None and isinstance(answer.error, OffsetGone):
                    return False
                if answer is not None and answer.error is not None:
                    raise answer.error
                if answer is not None and answer.data:
                    behind = void_to(_batches(answer), at, end)
                    if behind is None:
                        return False
                    # The records of a large step take many answers.
                    at, deadline_s = behind, machine.monotonic() + self._wait_s
                elif machine.monotonic() >= deadline_s:
                    topic, partition = where
                    raise ConnectionError(
                        f"{topic}/{partition}: no record batch came from offset {at} on within"
                        f" {self._wait_s:.0f} s"
                    )
        finally:
            self._fetcher.follow({})
        return True

    def close(self) -> None:
        """Close the connections."""
        self._fetcher.close()


def _batches(answer: Fetched) -> Iterable[tuple[RecordBatch, bool]]:
    committed = CommittedBatches(answer.aborted)
    return ((batch, committed.holds(batch)) for batch in batches_in(answer.data))


def void_to(batches: Iterable[tuple[RecordBatch, bool]], at: int, end: int) -> int | None:
    """The offset up to which all is void from `at` on, at most `end`; None if one is not void.

    Each batch comes with whether it has records for readers.
    """
    for batch, counts in batches:
        if batch.next_offset <= at:
            continue
        if at >= end:
            break
        # Compaction leaves a batch its range, and takes records out of it.
        thinned = batch.record_count != batch.next_offset - batch.base_offset
        if counts or thinned or batch.base_offset > at:
            return None
        at = batch.next_offset
    return at
