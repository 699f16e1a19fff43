"""The parts of one partition's term, each made new: store, clients, reader, engine.

    producer ── transactions of the partition        engine ── decides, over the store
    requests ── its input, by the shared reader      resolver ── schemas that are not known yet
    changelog ── its own log                         local ── where its store lies

No part of an earlier term is used again.  So each part is made by a call, and its caller closes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from belfry.engine.options import EngineOptions
from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import SourcePartition
from belfry.host.clock import SystemClock
from belfry.host.failpoints import Failpoints
from belfry.host.passing import PassThrough
from belfry.kafka.changelog_reader import ChangelogReader
from belfry.kafka.client_properties import consumer_properties, producer_properties
from belfry.kafka.log_ends import LogEnds
from belfry.kafka.request_log import RequestLog
from belfry.kafka.step_producer import ProducerSurroundings, StepProducer
from belfry.kafka.step_records import OutputTopics
from belfry.outputs.day_store import DayStore
from belfry.outputs.payload_store import PayloadStore
from belfry.partitions.forwarding import (
    ForwardingProducer,
    SentOn,
    TenantInputProducer,
    committed_position,
)
from belfry.partitions.gauges import Gauges
from belfry.partitions.intake_end import IntakeEnd
from belfry.partitions.request_readers import RequestReaders
from belfry.partitions.resolver import Resolver
from belfry.partitions.source import SourceReader
from belfry.partitions.tenant_dependencies import TenantInputDependencies
from belfry.partitions.tenant_input import TenantInputs
from belfry.partitions.tenant_topics import TenantTopics
from belfry.partitions.term import Term
from belfry.partitions.transaction_watch import TransactionWatch
from belfry.placement.partition_count import PartitionCount
from belfry.recovery.checkpoint_making import CheckpointMaker
from belfry.recovery.checkpoint_restoring import CheckpointRestorer
from belfry.recovery.local_state import LocalState
from belfry.recovery.stamp import Stamp
from belfry.registry.lookups import Lookups
from belfry.schedules.identity import Homes
from belfry.settings import Settings
from belfry.store.identity import Identity
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import Tenants
from belfry.transactions.choosing import MakeProducer
from belfry.wire.requests import RequestReader
from belfry.wire.worker_keys import Purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDependencies:
    """The parts of a worker that all of its partitions share.

    `partitions` is the number of homes, and `counted` knows how many partitions hold schedules.
    `stale_ms` is the longest time that a local store may have been out of use: tombstones of the
    changelog are kept twice as long.
    """

    settings: Settings
    partitions: int
    counted: PartitionCount
    clock: SystemClock
    tenants: Tenants
    lookups: Lookups | None
    output_topics: OutputTopics
    metrics: Gauges
    failpoints: Failpoints
    log_ends: LogEnds
    tenant_topics: TenantTopics
    watch: TransactionWatch
    stale_ms: int
    producers: MakeProducer
    readers: RequestReaders
    tenant_inputs_through: PassThrough
    payloads: PayloadStore
    # The store of payloads that are due far ahead, None where none is set.
    day_store: DayStore | None = None
    # Makes checkpoints, None where none are kept.
    checkpoints: CheckpointMaker | None = None
    # Restores stores from checkpoints.
    restorer: CheckpointRestorer | None = None


class PartitionParts:
    """Makes the parts of one partition from those of its worker."""

    def __init__(self, given: PartitionDependencies, partition: int) -> None:
        self._given = given
        self._settings = given.settings
        self._partition = partition

    # -- clients ---------------------------------------------------------------------------------

    def producer(self) -> StepProducer:
        """The producer that commits this partition's steps."""
        properties = producer_properties(self._settings, str(self._partition))
        properties |= self._figure_properties("writer")
        return self._given.producers(properties, self._partition, self._surroundings())

    def forwarding_producer(self) -> ForwardingProducer:
        """The producer of a partition that only forwards requests."""
        properties = producer_properties(self._settings, f"ingress.{self._partition}")
        return ForwardingProducer(properties, self._partition, self._surroundings())

    def requests(self) -> RequestLog:
        """The log of its requests."""
        given, topic = self._given, self._given.output_topics.schedules
        properties = self._settings.kafka_properties()
        return RequestLog(properties, topic, self._partition, given.log_ends)

    def changelog(self) -> ChangelogReader:
        """A reader of its changelog."""
        given, topic = self._given, self._given.output_topics.changelog
        properties = self._settings.kafka_properties() | self._figure_properties("changelog")
        return ChangelogReader(properties, topic, self._partition, given.log_ends)

    def kept_position(self, group: str) -> SentOn | None:
        """The committed position in its input, by a group's offsets; None where there is none."""
        properties = consumer_properties(self._settings) | {"group.id": group}
        return committed_position(properties, self._given.output_topics.schedules, self._partition)

    def sent_on_to(self, low: int) -> int:
        """The offset up to which its input was sent on before it held schedules; else `low`.

        The former owner is fenced first, and the end of sending on is noted. So requests before
        this offset were sent on, and no later one ever is.
        """
        former = self.forwarding_producer()
        try:
            former.open()
            kept = self.kept_position(former.group)
            begins = low if kept is None else max(low, kept.offset)
            if kept is None or not kept.over:
                former.end_at(begins)
            return begins
        finally:
            former.close()

    def _figure_properties(self, client: str) -> dict[str, Any]:
        """Properties that make a client report its figures; it has to be polled while it lives."""
        interval_ms = self._settings.client_statistics_interval_ms
        return self._given.metrics.client(client, interval_ms)

    def _surroundings(self) -> ProducerSurroundings:
        given = self._given
        return ProducerSurroundings(given.output_topics, given.clock, given.failpoints)

    # -- store, engine and readers ---------------------------------------------------------------

    def local(self, here: Identity) -> LocalState:
        """The partition's store on this machine's disk."""
        given, partition = self._given, self._partition
        stamp = Stamp(here.cluster, here.changelog, partition)
        path = self._settings.data_dir / f"partition-{partition}"
        return LocalState(path, stamp, given.stale_ms, given.clock, given.restorer)

    def engine(
        self, store: ScheduleStore, reader: RequestReader, *, forwards: bool = False
    ) -> PartitionEngine:
        """The engine of the partition, over a store; `forwards`: it holds no schedules."""
        given, partition, settings = self._given, self._partition, self._settings
        place = SourcePartition(
            given.output_topics.schedules,
            partition,
            Homes(given.partitions),
            settings.worker_keys(Purpose.ORIGIN),
            given.counted,
            forwards,
        )
        # A partition that was added to the input later keeps no state, so no tenant has schedules
        # there.
        metering_ms = 0 if forwards else settings.metering_interval_ms
        options = EngineOptions(
            settings.step_bytes,
            metering_ms,
            given.metrics.traces,
            settings.last_fires,
            settings.key_group_moves,
        )
        return PartitionEngine(place, store, reader, given.tenants, options)

    def resolver(self, reader: RequestReader, *, forwards: bool = False) -> Resolver:
        """The resolver of the schemas that its requests refer to."""
        given, settings = self._given, self._settings
        return Resolver(
            reader,
            given.lookups,
            given.tenants,
            (settings.registry_wait_ms / 1000, settings.registry_lookups_per_minute),
            lambda: given.clock.monotonic_ms() / 1000,
            forwards=forwards,
        )

    def source_reader(self, source: RequestLog, term: Term) -> SourceReader:
        """The reader that reads its requests ahead, one of those of the worker."""
        settings, readers = self._settings, self._given.readers
        return SourceReader(
            source, settings.batch_records, settings.step_bytes, term.hand_over, readers
        )

    def intake_end(self, source: RequestLog, end: int) -> IntakeEnd:
        """The offset up to which its requests are taken in before it fires."""
        watch, partition = self._given.watch, self._partition
        return IntakeEnd(end, source.log_end, lambda: watch.stranger(partition))

    def tenant_inputs(self, term: Term) -> TenantInputs:
        """Readers of the topics of tenants that live at the partition."""
        given, settings = self._given, self._settings
        properties = producer_properties(settings, f"inlets.{self._partition}")
        means = TenantInputDependencies(
            given.tenant_topics,
            given.tenants,
            lambda: TenantInputProducer(properties, self._partition, self._surroundings()),
            consumer_properties(settings) | self._figure_properties("tenant_inputs"),
            given.clock,
            given.metrics,
            given.log_ends.all_readable,
            settings.step_bytes,
            given.tenant_inputs_through,
        )
        return TenantInputs(self._partition, means, term.woken)
