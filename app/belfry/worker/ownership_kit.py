"""What a partition's loop needs of its worker, and what a take-over gives it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from belfry.engine.ownership import Event
from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import Place
from belfry.firing.clock_guard import ClockGuard
from belfry.registry.lookups import Lookups
from belfry.schedules.identity import Homes
from belfry.schedules.tenants import Tenants
from belfry.settings import Settings
from belfry.store.identity import Identity
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.wire.batch import SourceBatch
from belfry.wire.lifecycle import LifecycleEvent
from belfry.wire.requests import RequestReader
from belfry.wire.worker_keys import Purpose
from belfry.worker.clock import SystemClock
from belfry.worker.evidence import Evidence
from belfry.worker.failpoints import Failpoints
from belfry.worker.fenced_end import FencedEnd
from belfry.worker.gauges import Gauges
from belfry.worker.giving_up import close_all
from belfry.worker.identities import Identities, World
from belfry.worker.ingress import IngressProducer, committed_position
from belfry.worker.inlets import InletProducer, Inlets, Means
from belfry.worker.intake_end import IntakeEnd
from belfry.worker.local_state import LocalState, Stamp
from belfry.worker.outcome import Unknown
from belfry.worker.outputs import Outputs
from belfry.worker.partition_log import LogEnds, PartitionLog
from belfry.worker.policies import Policies
from belfry.worker.reading import Reading
from belfry.worker.resolver import Resolver
from belfry.worker.rocks import NoRows, RocksMap
from belfry.worker.source import SourceReader
from belfry.worker.standby import Warm
from belfry.worker.takeover import Recovered, TakeOver
from belfry.worker.tenant_topics import TenantTopics
from belfry.worker.transaction_watch import TransactionWatch
from belfry.worker.transactions import Outlets, PartitionProducer, Surroundings

if TYPE_CHECKING:
    from belfry.worker.runner import PartitionRunner


class Refused(Exception):
    """This worker must not own the partition: state or settings do not fit."""


MESSAGE_TIMEOUT_MS: Final = 8_000
PROPAGATION_MS: Final = 400


def _nobody(_runner: PartitionRunner, _term: int, _batch: SourceBatch) -> None:
    raise AssertionError("a batch was read before the agent was there")


def _untold(_events: Sequence[LifecycleEvent]) -> None:
    """Nobody waits for verdicts."""


def _never() -> bool:
    return False


def _keeps(_partition: int, _unable: bool) -> bool:
    return False


def _unheard(reason: str) -> None:
    raise AssertionError(f"nobody hears that this worker is refused: {reason}")


@dataclass(slots=True)
class Owned:
    """All that a term of ownership holds open."""

    engine: PartitionEngine
    rows: RocksMap | NoRows
    producer: PartitionProducer
    source: SourceReader
    resolver: Resolver
    intake: IntakeEnd
    epoch: int
    new_settings: bytes | None
    world: World
    new_identity: bytes | None = None
    inlets: Inlets | None = None
    # Of the last manifest before this term: whose it is, and when it was appended if it says that
    # its owner holds a read lease.
    former_epoch: int | None = None
    lent_ms: int | None = None

    @property
    def keeps_state(self) -> bool:
        """Whether schedules live here: a partition that only takes requests in has no inlets."""
        return self.inlets is not None

    def kept(self) -> None:
        """The first commit has succeeded: this owner's evidence counts from now on."""
        if self.keeps_state:
            self.world.owned()

    def check(self) -> None:
        """Raise where this owner cannot go on: nothing can be read, or topics are others now."""
        if self.source.failure is not None:
            raise self.source.failure
        if self.world.changed:
            raise Unknown("the changelog or the input is another topic than it was")

    def close(self) -> None:
        """Stop reading, give the producer up, close the store."""
        self.source.ask_to_stop()
        self.world.given_up()
        inlets = () if self.inlets is None else (self.inlets.close,)
        close_all(*inlets, self.source.stop, self.producer.close, self.rows.close)


@dataclass(slots=True)
class Term:
    """One term of ownership, as the take-over hears of it and tells of it."""

    partition: int
    moved: Callable[[Event], None]
    hand_over: Callable[[SourceBatch], None]
    reading: Reading
    woken: Callable[[], None]
    # Waits so many seconds; raises where there is no reason to go on with the take-over.
    wait: Callable[[float], None]
    warm: Warm | None = None


@dataclass(slots=True)
class Kit:
    """The worker's side of its partitions: settings, clock, outputs, and how to take over."""

    settings: Settings
    identities: Identities
    partitions: int
    clock: SystemClock
    guard: ClockGuard
    tenants: Tenants
    lookups: Lookups | None
    outlets: Outlets
    outputs: Outputs
    policies: Policies
    metrics: Gauges
    failpoints: Failpoints
    log_ends: LogEnds
    tenant_topics: TenantTopics
    watch: TransactionWatch
    stale_ms: int
    hand_over: Callable[[PartitionRunner, int, SourceBatch], None] = _nobody
    refused: Callable[[str], None] = _unheard
    leaves: Callable[[int, bool], bool] = _keeps
    verdicts: Callable[[Sequence[LifecycleEvent]], None] = _untold
    is_asked: Callable[[], bool] = _never

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
            source = self._log(self.outlets.schedules, partition)
            undo.callback(source.close)
            recovered = self._recover(term, producer, source)
            undo.callback(recovered.rows.close)
            # Asked after the fence: the former owner knew no policy that this one does not.
            self.policies.catch_up()
            new_settings = self._agree(recovered.settings)
            reader = RequestReader()
            engine = self._engine(partition, recovered.store, reader)
            if recovered.manifest is None:
                engine.begin_at(source.ends()[0])
            # A cancel may lie behind a stray that the former owner left in an open transaction:
            # what has to be taken in before firing ends where the log ends, not where readers
            # stop today.
            intake = self._intake_end(partition, source, source.log_end())
            self.failpoints.reach("R4")
            source.seek(engine.position)
            undo.pop_all()
        return Owned(
            engine,
            recovered.rows,
            producer,
            self._source_reader(source, term),
            self._resolver(reader),
            intake,
            engine.manifest.owner_epoch + 1,
            new_settings,
            World(self.identities, partition, recovered.identity),
            recovered.new_identity,
            self._inlets(term),
            None if recovered.manifest is None else recovered.manifest.owner_epoch,
            recovered.lent_ms,
        )

    def _take_in_only(self, term: Term) -> Owned:
        """Own a partition that is no schedule's home: it was added to the source later.

        All of its requests are strays or refused, so it keeps no state; its position lies in a
        consumer group and is committed by the same transaction.
        """
        partition = term.partition
        with ExitStack() as undo:
            properties = self._producer_properties(f"ingress.{partition}")
            producer = IngressProducer(properties, partition, self._surroundings())
            undo.callback(producer.close)
            term.moved(Event.CAUGHT_UP)
            producer.open()
            term.moved(Event.FENCED)
            reader = RequestReader()
            engine = self._engine(partition, ScheduleStore(MemoryMap()), reader)
            source = self._log(self.outlets.schedules, partition)
            undo.callback(source.close)
            group = self._consumer_properties() | {"group.id": producer.group}
            kept = committed_position(group, self.outlets.schedules, partition)
            engine.begin_at(source.ends()[0] if kept is None else kept)
            source.seek(engine.position)
            undo.pop_all()
        return Owned(
            engine,
            NoRows(),
            producer,
            self._source_reader(source, term),
            self._resolver(reader),
            self._intake_end(partition, source, engine.position),
            1,
            None,
            World(self.identities, partition, self.identities.seen),
        )

    def _resolver(self, reader: RequestReader) -> Resolver:
        limits = self.settings.registry_wait_ms / 1000, self.settings.registry_lookups_per_minute
        return Resolver(reader, self.lookups, self.tenants, limits)

    def _source_reader(self, source: PartitionLog, term: Term) -> SourceReader:
        settings = self.settings
        return SourceReader(source, settings.batch_records, settings.step_bytes, term.hand_over)

    def _intake_end(self, partition: int, source: PartitionLog, end: int) -> IntakeEnd:
        return IntakeEnd(end, source.log_end, lambda: self.watch.stranger(partition))

    def _inlets(self, term: Term) -> Inlets:
        """Readers of the topics of tenants that live at a partition."""
        properties = self._producer_properties(f"inlets.{term.partition}")
        means = Means(
            self.tenant_topics,
            self.tenants,
            lambda: InletProducer(properties, term.partition, self._surroundings()),
            self._consumer_properties(),
            self.clock,
            self.metrics,
            self.settings.step_bytes,
        )
        return Inlets(term.partition, means, term.woken)

    def _recover(self, term: Term, producer: PartitionProducer, source: PartitionLog) -> Recovered:
        warm = term.warm
        changelog = (
            self._log(self.outlets.changelog, term.partition) if warm is None else warm.changelog
        )
        try:
            here = self.identities.now()
            local = self._local(term.partition, here)
            known = self.identities
            evidence = Evidence(term.partition, here, known.anchors, source, known.recoveries)
            take_over = TakeOver(
                local,
                evidence,
                term.reading,
                self.failpoints,
                term.moved,
                FencedEnd(self.settings, self.clock, term),
            )
            begun = None if warm is None else (warm.rows, warm.replay)
            leaves = partial(self.leaves, term.partition)
            return take_over.run(changelog, producer, begun, leaves)
        finally:
            changelog.close()

    def open_warm(self, partition: int) -> Warm:
        """What a standby needs, at the place where the local state ends."""
        with ExitStack() as undo:
            changelog = self._log(self.outlets.changelog, partition)
            undo.callback(changelog.close)
            producer = self._producer(partition)
            undo.callback(producer.close)
            producer.connect()
            here = self.identities.now()
            rows = self._local(partition, here).open(changelog.holds_records)
            undo.pop_all()
        return Warm(rows, Replay(ScheduleStore(rows)), changelog, producer)

    def forget(self, partition: int, why: str) -> None:
        """Remove local state that is not to be used; nobody has it open."""
        self._local(partition, self.identities.seen).give_up(why)

    def _local(self, partition: int, here: Identity) -> LocalState:
        stamp = Stamp(here.cluster, here.changelog, partition)
        path = self.settings.data_dir / f"partition-{partition}"
        return LocalState(path, stamp, self.stale_ms, self.clock)

    def _producer(self, partition: int) -> PartitionProducer:
        return PartitionProducer(
            self._producer_properties(str(partition)), partition, self._surroundings()
        )

    def _engine(
        self, partition: int, store: ScheduleStore, reader: RequestReader
    ) -> PartitionEngine:
        place = Place(
            self.outlets.schedules,
            partition,
            Homes(self.partitions),
            self.settings.worker_keys(Purpose.ORIGIN),
        )
        return PartitionEngine(place, store, reader, self.tenants, self.settings.step_bytes)

    def _log(self, topic: str, partition: int) -> PartitionLog:
        return PartitionLog(self._consumer_properties(), topic, partition)

    def _surroundings(self) -> Surroundings:
        return Surroundings(self.outlets, self.clock, self.failpoints)

    def _agree(self, kept: bytes | None) -> bytes | None:
        mine = self.settings.cluster_fingerprint()
        if kept is None:
            return mine
        if kept != mine:
            raise Refused(
                f"cluster settings differ: the state was kept with {kept.decode()}, this worker"
                f" has {mine.decode()}. Give all workers of one belfry the same settings."
            )
        return None

    def _producer_properties(self, role: str) -> dict[str, Any]:
        settings = self.settings
        return {
            # A commit sends at once what is left.  What leaves before it leaves in many requests:
            # each of them holds the records of one partition.
            "linger.ms": 1_000,
            "batch.size": 1_000_000,
            "compression.type": "lz4",
            **settings.kafka_properties(),
            "transactional.id": f"{settings.cluster.app_id}.{role}",
            "transaction.timeout.ms": settings.transaction_timeout_ms,
            # Shorter than a commit waits: a record that cannot be sent rolls its step back.
            "message.timeout.ms": MESSAGE_TIMEOUT_MS,
            # A topic that is gone shows at once, instead of after the time-out above; one that
            # belfry creates is waited for before it is used.
            "topic.metadata.propagation.max.ms": PROPAGATION_MS,
            "partitioner": "murmur2_random",
            # Each topic has its own limit, which is checked when a request is accepted.
            "message.max.bytes": 100_000_000,
            "queue.buffering.max.messages": 1_000_000,
            # A step with more than this waits until some of it has been sent.
            "queue.buffering.max.kbytes": 64 * 1024,
        }

    def _consumer_properties(self) -> dict[str, Any]:
        return {
            "fetch.wait.max.ms": 100,
            # A full queue keeps the next fetch back: by default for a second, which was what a
            # partition with much to read waited for.  Looked at often, it may be small.
            "queued.max.messages.kbytes": 2 * 1024,
            "fetch.queue.backoff.ms": 5,
            **self.settings.kafka_properties(),
        }
