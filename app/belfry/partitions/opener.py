"""Opening what a partition needs: for an owner, for a standby, and for one that only takes in.

    take_over   store, producer, source and engine of a home partition, fenced and recovered
                the same without a state, where the partition was added to the input later
    open_warm   store, changelog and producer of a standby, where the local state ends

Each term of ownership gets objects of its own, so that nothing of an earlier one can be used by
mistake.  What was opened is closed again where a later part fails.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from belfry.engine.options import EngineOptions
from belfry.engine.ownership import Event
from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import SourcePartition
from belfry.host.clock import SystemClock
from belfry.host.failpoints import Failpoints
from belfry.host.passing import PassThrough
from belfry.host.rocks import NoRows
from belfry.kafka.agreement import Agreement, OwnershipRefused
from belfry.kafka.changelog_trust import ChangelogTrust, NotTrusted
from belfry.kafka.client_properties import consumer_properties, producer_properties
from belfry.kafka.partition_log import LogEnds, PartitionLog
from belfry.kafka.request_log import RequestLog
from belfry.kafka.signature_marks import Mark
from belfry.kafka.step_records import OutputTopics
from belfry.kafka.transactions import ProducerSurroundings, StepProducer
from belfry.partitions.forwarding import ForwardingProducer, committed_position
from belfry.partitions.gauges import Gauges
from belfry.partitions.intake_end import IntakeEnd
from belfry.partitions.resigning import Resigning
from belfry.partitions.resolver import Resolver
from belfry.partitions.source import SourceReader
from belfry.partitions.tenant_input import (
    TenantInputDependencies,
    TenantInputProducer,
    TenantInputs,
)
from belfry.partitions.tenant_topics import TenantTopics
from belfry.partitions.term import Owned, Term, Warm
from belfry.partitions.transaction_watch import TransactionWatch
from belfry.policies.follower import Policies
from belfry.recovery.evidence import Evidence
from belfry.recovery.fenced_end import FencedEnd
from belfry.recovery.identities import Identities, World
from belfry.recovery.local_state import LocalState, Stamp
from belfry.recovery.takeover import Recovered, TakeOver
from belfry.registry.lookups import Lookups
from belfry.schedules.identity import Homes
from belfry.settings import Settings
from belfry.store.identity import Identity
from belfry.store.layout import keys
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import Tenants
from belfry.transactions.choosing import MakeProducer
from belfry.wire.requests import RequestReader
from belfry.wire.worker_keys import Purpose

# How long an owner waits for where the changelog ends, amid a step.
LOG_END_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOpener:
    """Opens partitions for their owners and standbys.

    `partitions` is the number of homes.  `stale_ms` is for how long a local store may have been
    away: tombstones of the changelog are kept twice as long.  `leaves` says whether a partition
    of which this worker cannot fire everything is left to another one (`Group.leaves`).
    """

    settings: Settings
    identities: Identities
    partitions: int
    clock: SystemClock
    tenants: Tenants
    lookups: Lookups | None
    output_topics: OutputTopics
    policies: Policies
    metrics: Gauges
    failpoints: Failpoints
    log_ends: LogEnds
    tenant_topics: TenantTopics
    watch: TransactionWatch
    trust: ChangelogTrust
    stale_ms: int
    leaves: Callable[[int, bool], bool]
    producers: MakeProducer
    agreement: Agreement
    tenant_inputs_through: PassThrough

    def take_over(self, term: Term) -> Owned:
        """Take a partition over, up to the point where its requests are to be read."""
        partition = term.partition
        self.watch.follow(partition)
        if partition >= self.partitions:
            return self._take_in_only(term)
        with ExitStack() as undo:
            warm = term.warm
            producer = self._producer(partition) if warm is None else warm.producer
            undo.callback(producer.close)
            source = self._requests(partition)
            undo.callback(source.close)
            recovered = self._recover(term, producer, source)
            undo.callback(recovered.rows.close)
            resigning = self._sign(partition, producer, recovered)
            # Asked after the fence: the former owner knew no policy that this one does not.
            self.policies.catch_up()
            new_settings = self.agreement.cluster(recovered.settings)
            new_statement = self.agreement.statement(recovered.store.named(keys.STATEMENT_KEY))
            reader = RequestReader()
            engine = self._engine(partition, recovered.store, reader)
            if recovered.manifest is None:
                engine.begin_at(source.ends()[0])
            # A cancel may lie behind a misrouted request that the former owner left in an open
            # transaction: what has to be taken in before firing ends where the log ends, not where
            # readers stop today.
            intake = self._intake_end(partition, source, source.log_end())
            self.failpoints.reach("R4")
            source.seek(engine.position)
            undo.pop_all()
        resolver = self._resolver(reader)
        resolver.take_over(engine.aside.all())
        return Owned(
            engine,
            recovered.rows,
            producer,
            self._source_reader(source, term),
            resolver,
            intake,
            engine.manifest.owner_epoch + 1,
            new_settings,
            World(self.identities, partition, recovered.identity),
            recovered.new_identity,
            new_statement,
            self._tenant_inputs(term),
            None if recovered.manifest is None else recovered.manifest.owner_epoch,
            recovered.lent_ms,
            resigning,
            recovered.unclosed_rows,
        )

    def _sign(
        self, partition: int, producer: StepProducer, recovered: Recovered
    ) -> Resigning | None:
        """Sign what this owner writes, where workers sign; and what is to be signed anew."""
        trust = self.trust
        topic_id = recovered.identity.changelog
        changelog, end = self.output_topics.changelog, recovered.end
        log_end = partial(self.log_ends.end, changelog, partition, LOG_END_S)
        producer.signer = trust.signer(partition, topic_id, end, log_end)
        if not trust.begins(partition, self._trusted(partition), end):
            return None
        return Resigning(recovered.store, lambda: trust.all_signed(partition))

    def _trusted(self, partition: int) -> Mark:
        try:
            return self.trust.check(partition)
        except NotTrusted as error:
            raise OwnershipRefused(str(error)) from error

    def _take_in_only(self, term: Term) -> Owned:
        """Own a partition that is no schedule's home: it was added to the source later.

        All of its requests are misrouted or refused, so it keeps no state; its position lies in a
        consumer group and is committed by the same transaction.
        """
        partition = term.partition
        with ExitStack() as undo:
            properties = producer_properties(self.settings, f"ingress.{partition}")
            producer = ForwardingProducer(properties, partition, self._surroundings())
            undo.callback(producer.close)
            term.moved(Event.CAUGHT_UP)
            producer.open()
            term.moved(Event.FENCED)
            reader = RequestReader()
            engine = self._engine(partition, ScheduleStore(MemoryMap()), reader)
            source = self._requests(partition)
            undo.callback(source.close)
            group = consumer_properties(self.settings) | {"group.id": producer.group}
            kept = committed_position(group, self.output_topics.schedules, partition)
            engine.begin_at(source.ends()[0] if kept is None else kept)
            source.seek(engine.position)
            undo.pop_all()
        return Owned(
            engine,
            NoRows(),
            producer,
            self._source_reader(source, term),
            self._resolver(reader, forwards=True),
            self._intake_end(partition, source, engine.position),
            1,
            None,
            World(self.identities, partition, self.identities.seen),
        )

    def _resolver(self, reader: RequestReader, *, forwards: bool = False) -> Resolver:
        limits = self.settings.registry_wait_ms / 1000, self.settings.registry_lookups_per_minute
        return Resolver(
            reader,
            self.lookups,
            self.tenants,
            limits,
            lambda: self.clock.monotonic_ms() / 1000,
            forwards=forwards,
        )

    def _source_reader(self, source: RequestLog, term: Term) -> SourceReader:
        settings = self.settings
        return SourceReader(source, settings.batch_records, settings.step_bytes, term.hand_over)

    def _intake_end(self, partition: int, source: RequestLog, end: int) -> IntakeEnd:
        return IntakeEnd(end, source.log_end, lambda: self.watch.stranger(partition))

    def _tenant_inputs(self, term: Term) -> TenantInputs:
        """Readers of the topics of tenants that live at a partition."""
        properties = producer_properties(self.settings, f"inlets.{term.partition}")
        means = TenantInputDependencies(
            self.tenant_topics,
            self.tenants,
            lambda: TenantInputProducer(properties, term.partition, self._surroundings()),
            consumer_properties(self.settings) | self._told("tenant_inputs"),
            self.clock,
            self.metrics,
            self.settings.step_bytes,
            self.tenant_inputs_through,
        )
        return TenantInputs(term.partition, means, term.woken)

    def _recover(self, term: Term, producer: StepProducer, source: RequestLog) -> Recovered:
        warm = term.warm
        changelog = (
            self._log(self.output_topics.changelog, term.partition)
            if warm is None
            else warm.changelog
        )
        with ExitStack() as undo, ExitStack() as unused:
            undo.callback(changelog.close)
            if warm is not None:
                unused.callback(warm.rows.close)
            mark = self._trusted(term.partition)
            here = self.identities.now()
            changelog.sieve = self.trust.sieve(term.partition, here.changelog, mark)
            local = self._local(term.partition, here)
            known = self.identities
            evidence = Evidence(term.partition, here, known.anchors, source, known.recoveries)
            take_over = TakeOver(
                local,
                evidence,
                term.reading,
                self.failpoints,
                term.moved,
                FencedEnd(self.settings, self.clock, term.partition, term.reading, term.wait),
            )
            # From here on the take-over closes what it is given.
            unused.pop_all()
            begun = None if warm is None else (warm.rows, warm.replay)
            leaves = partial(self.leaves, term.partition)
            return take_over.run(changelog, producer, begun, leaves)

    def open_warm(self, partition: int) -> Warm:
        """What a standby needs, at the place where the local state ends."""
        with ExitStack() as undo:
            changelog = self._log(self.output_topics.changelog, partition)
            undo.callback(changelog.close)
            producer = self._producer(partition)
            undo.callback(producer.close)
            producer.connect()
            mark = self.trust.check(partition)
            here = self.identities.now()
            changelog.sieve = self.trust.sieve(partition, here.changelog, mark)
            rows = self._local(partition, here).open(changelog.holds_records)
            undo.pop_all()
        return Warm(rows, Replay(ScheduleStore(rows)), changelog, producer)

    def look_at_signatures(self, partition: int, warm: Warm) -> None:
        """Follow what owners have said of signatures since a standby was opened."""
        marks = self.trust.marks
        warm.changelog.sieve.believe_near(lambda: marks.read(partition).near_from)

    def given_up(self, partition: int) -> None:
        """A partition is not owned here any more: its open transactions are not looked at."""
        self.watch.forget(partition)
        self.trust.marks.given_up(partition)

    def forget(self, partition: int, why: str) -> None:
        """Remove local state that is not to be used; nobody has it open."""
        self._local(partition, self.identities.seen).give_up(why)

    def _local(self, partition: int, here: Identity) -> LocalState:
        stamp = Stamp(here.cluster, here.changelog, partition)
        path = self.settings.data_dir / f"partition-{partition}"
        return LocalState(path, stamp, self.stale_ms, self.clock)

    def _producer(self, partition: int) -> StepProducer:
        properties = producer_properties(self.settings, str(partition)) | self._told("writer")
        return self.producers(properties, partition, self._surroundings())

    def _engine(
        self, partition: int, store: ScheduleStore, reader: RequestReader
    ) -> PartitionEngine:
        place = SourcePartition(
            self.output_topics.schedules,
            partition,
            Homes(self.partitions),
            self.settings.worker_keys(Purpose.ORIGIN),
        )
        # What was added to the input later keeps no state, so it holds nothing of anybody.
        metering_ms = self.settings.metering_interval_ms if partition < self.partitions else 0
        settings = self.settings
        options = EngineOptions(
            settings.step_bytes, metering_ms, self.metrics.traces, settings.last_fires
        )
        return PartitionEngine(place, store, reader, self.tenants, options)

    def _requests(self, partition: int) -> RequestLog:
        properties = consumer_properties(self.settings) | self._told("requests")
        return RequestLog(properties, self.output_topics.schedules, partition)

    def _told(self, client: str) -> dict[str, Any]:
        """Properties by which a client tells its figures; it has to be polled while it lives."""
        return self.metrics.client(client, self.settings.client_statistics_interval_ms)

    def _log(self, topic: str, partition: int) -> PartitionLog:
        properties = consumer_properties(self.settings) | self._told("changelog")
        return PartitionLog(properties, topic, partition)

    def _surroundings(self) -> ProducerSurroundings:
        return ProducerSurroundings(self.output_topics, self.clock, self.failpoints)
