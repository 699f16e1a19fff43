"""The places of a step's records: their partitions, and the offset of its manifest.

    a record                            its partition
    of a group, a delivery, a row       told with the record (`kafka/step_records.py`)
    with a key                          the key's, by librdkafka's `murmur2_random` partitioner
    with neither                        any: one for all of a step, another for the next step

Rows of the changelog are the step's last records, and the manifest is the last of them; only
fillers may follow it. So the offset of the changelog's last batch tells where the manifest lies.
Signed rows are signed for an offset: that is compared before the commit, so that no row is ever
committed at an offset where its signature does not hold.

    changelog/3   row  row  row  manifest  filler  filler  │ marker of the commit
    offset        507  508  509  510       511     512     │ 513
                                  └── 512, the batch's last offset, less two fillers
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from belfry.engine.effects import Fired
from belfry.kafka.client_loop import ClientLoop
from belfry.kafka.outcome import Misplaced, TopicGone
from belfry.kafka.row_signing import RowSigner
from belfry.kafka.step_producer import Receipt
from belfry.kafka.step_records import OutputTopics, StepRecord, changelog_rows
from belfry.schedules import identity
from belfry.transactions.batches import ProducedBatch, StepBatches, Where
from belfry.transactions.brokers import BrokerConnections
from belfry.transactions.event_batches import Counts, EventBatches
from belfry.transactions.told_batches import add_told
from belfry.wire.accepted import Told

# Seconds to learn of new topics.
KNOW_S: Final = 10.0
PartitionOf = Callable[[bytes, int], int]
_NAME: Final = "rd_kafka_msg_partitioner_murmur2"


class PlacedRecords:
    """Puts the records of one step into the batches of their partitions.

    `number` is the step's: it chooses the partition of records without a key or a partition.
    `topics` gives all topics of tenants that the step writes to. It is called when one of them is
    not known, so that one look finds all such topics.
    """

    def __init__(
        self,
        step: StepBatches,
        brokers: BrokerConnections,
        loop: ClientLoop,
        number: int,
        topics: Callable[[], AbstractSet[str]],
    ) -> None:
        self._step = step
        self._brokers = brokers
        self._loop = loop
        self._number = number
        self._topics = topics
        self._partitions: dict[str, int] = {}
        # Topics that a look has not found: such a look takes a second.
        self._missed: set[str] = set()
        self._partition_of = partitioner()

    def add(self, records: Iterable[StepRecord]) -> None:
        """Put these behind the records before them; raises TopicGone if a topic is missing."""
        known = self._partitions
        for topic, partition, key, value, headers in records:
            if topic not in known:
                known[topic] = self._partitions_of(topic)
            if partition is not None:
                where = partition
            elif key is not None:
                where = self._partition_of(key, known[topic])
            else:
                where = self._number % known[topic]
            self._step.add((topic, where), key, value, headers)

    def add_fired(self, fired: Iterable[Fired], of_groups: Callable[[str], int]) -> None:
        """Put fired events before all else; raises TopicGone for a topic that is not there.

        The partition is that of the group, if there is one, else of the key. `of_groups` gives the
        number of a topic's partitions for groups.
        """
        step, counts = self._step, Counts(self._partitions_of, of_groups)
        events = EventBatches(step.now_ms, step.most, counts, self._partition_of)
        events.add(fired)
        step.begin_with(events.filled())

    def add_told(self, told: Sequence[Told], output_topics: OutputTopics) -> None:
        """Put outcomes behind their partitions' records; raises TopicGone if the topic has none."""
        if told:
            topic, head = output_topics.lifecycle, output_topics.lifecycle_head
            partitions = self._partitions_of(topic)
            add_told(self._step, told, head, topic, partitions, self._partition_of)

    def add_rows(
        self, where: Where, rows: Mapping[bytes, bytes | None], signer: RowSigner | None
    ) -> None:
        """Put the changelog's rows in; BufferError if rows that belong together do not fit."""
        step = self._step
        plain, tombstones, manifest, parts = changelog_rows(rows, signer, step.most(where[0]))
        if parts:
            for part in parts:
                step.add_apart(where, part)
            return
        step.add_rows(where, plain)
        for key, headers in tombstones:
            step.add(where, key, None, headers)
        step.add(where, *manifest, [])

    def _partitions_of(self, topic: str) -> int:
        """The number of a topic's partitions; raises TopicGone if it has none, and Lost if no
        broker answers.
        """
        known = self._brokers.partitions_of(topic)
        if not known and topic not in self._missed:
            of = self._brokers.partitions_of
            new = {topic, *(each for each in self._topics() if not of(each))}
            self._loop.run(self._brokers.know(new), KNOW_S)
            self._missed |= {each for each in new if not of(each)}
            known = of(topic)
        if not known:
            raise TopicGone(topic)
        return known


@dataclass(slots=True)
class AcknowledgedStep:
    """A step whose records are all in their logs, in a transaction that is still open.

    `manifest` is the changelog's last batch. `wall_ms` and `monotonic_ms` say when this worker got
    the acknowledgement.
    """

    manifest: ProducedBatch
    wall_ms: float
    monotonic_ms: float

    def offset(self, signer: RowSigner | None) -> int:
        """The offset of the manifest; only fillers may follow it, if rows are signed."""
        return self.manifest.last_offset - (0 if signer is None else signer.fillers)

    def compare(self, signer: RowSigner | None) -> None:
        """Check that signed rows lie at their expected offsets; raises Misplaced."""
        at = self.offset(signer)
        if signer is not None and not signer.lies_as_signed(at):
            raise Misplaced(f"the manifest lies at offset {at}, where it was not expected")

    def receipt(self, signer: RowSigner | None, sent_ms: float) -> Receipt:
        """The receipt of the step, once it is committed; the signer is told of it."""
        at = self.offset(signer)
        if signer is not None:
            signer.committed(at)
        appended_ms = self.manifest.appended_ms
        if appended_ms < 0:
            appended_ms = int(sent_ms)
        return Receipt(at + 1, sent_ms, appended_ms, self.wall_ms, self.monotonic_ms)


@cache
def partitioner() -> PartitionOf:
    """The function that computes the partition of a key, as librdkafka does.

    It is librdkafka's own, which belfry loads anyway: it is ten times as fast as Python code, and
    both writers get the same partitions. It is called with the interpreter's lock held, because the
    call takes less time than to release the lock. If the library does not export it, Python
    computes the same.
    """
    from confluent_kafka import cimpl

    try:
        function: Any = getattr(ctypes.PyDLL(cimpl.__file__), _NAME)
    except (OSError, AttributeError):
        return identity.partition_of
    function.restype = ctypes.c_int

    def partition_of(key: bytes, partitions: int) -> int:
        # Topic (not looked at), key, its size, partitions, and two pointers that callers may pass
        # on.  ctypes gives None and bytes as pointers, and ints in whole registers, as the function
        # takes them.  Were their types declared, each would be checked, for twice the time.
        found: int = function(None, key, len(key), partitions, None, None)
        return found

    return partition_of
