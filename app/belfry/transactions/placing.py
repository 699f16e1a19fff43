"""Where a step's records go, and where its manifest then lies.

    a record                            its partition
    of a group, a delivery, a row       told with the record (`kafka/step_records.py`)
    with a key                          the key's, as librdkafka's `murmur2_random` partitioner says
    with neither                        any will do: one for all of a step, the next for the next

Rows of the changelog are the step's last records, and the manifest is the last of them; behind it
are fillers at most.  So the offset of the changelog's last batch tells where the manifest lies.
Signed rows were signed for a place: it is compared before the commit, so that no row is ever
committed where its signature does not hold.

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

# Seconds to learn of topics that are new here.
KNOW_S: Final = 10.0
PartitionOf = Callable[[bytes, int], int]
_NAME: Final = "rd_kafka_msg_partitioner_murmur2"


class PlacedRecords:
    """Puts the records of one step into its batches, each where it belongs.

    `number` is the step's: records without a key or a partition go to the partition that it names.
    `topics` gives all topics of tenants that the step writes to.  It is asked where one of them is
    not known, so that all such topics are learned by one look.
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
        # Those that a look has missed: to miss a topic takes a second.
        self._missed: set[str] = set()
        self._partition_of = partitioner()

    def add(self, records: Iterable[StepRecord]) -> None:
        """Put these behind those that are there; raises TopicGone for a topic that is not there."""
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

        The partition is that of the group, where there is one, else of the key.  `of_groups` says
        among how many partitions of a topic groups choose.
        """
        step, counts = self._step, Counts(self._partitions_of, of_groups)
        events = EventBatches(step.now_ms, step.most, counts, self._partition_of)
        events.add(fired)
        step.begin_with(events.filled())

    def add_told(self, told: Sequence[Told], output_topics: OutputTopics) -> None:
        """Put outcomes behind what their partitions get; raises TopicGone where there are none."""
        if told:
            topic, head = output_topics.lifecycle, output_topics.lifecycle_head
            partitions = self._partitions_of(topic)
            add_told(self._step, told, head, topic, partitions, self._partition_of)

    def add_rows(
        self, where: Where, rows: Mapping[bytes, bytes | None], signer: RowSigner | None
    ) -> None:
        """Put the changelog's rows there; BufferError where what belongs together does not fit."""
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
        """How many partitions a topic has; raises TopicGone where it has none, and Lost where
        nobody can tell.
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

    `manifest` is the changelog's last batch.  `wall_ms` and `monotonic_ms` say when this worker
    heard of it.
    """

    manifest: ProducedBatch
    wall_ms: float
    monotonic_ms: float

    def offset(self, signer: RowSigner | None) -> int:
        """Where the manifest lies: behind it are fillers at most, where rows are signed."""
        return self.manifest.last_offset - (0 if signer is None else signer.fillers)

    def compare(self, signer: RowSigner | None) -> None:
        """See that signed rows lie where they were expected; raises Misplaced."""
        at = self.offset(signer)
        if signer is not None and not signer.lies_as_signed(at):
            raise Misplaced(f"the manifest lies at offset {at}, where it was not expected")

    def receipt(self, signer: RowSigner | None, sent_ms: float) -> Receipt:
        """The receipt of the step, once it is committed; the signer hears of it."""
        at = self.offset(signer)
        if signer is not None:
            signer.committed(at)
        appended_ms = self.manifest.appended_ms
        if appended_ms < 0:
            appended_ms = int(sent_ms)
        return Receipt(at + 1, sent_ms, appended_ms, self.wall_ms, self.monotonic_ms)


@cache
def partitioner() -> PartitionOf:
    """What computes the partition of a key among so many, as librdkafka does.

    The function is librdkafka's own, which belfry loads anyway: ten times as fast as the same in
    Python, and the same for both writers.  It is called with the interpreter's lock held, for it
    takes less time than giving the lock up.  Where the library does not give it out, Python
    computes it.
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
