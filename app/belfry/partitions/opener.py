"""Opening the parts of a partition: for an owner, for a standby, and for a partition without state.

    take_over   store, producer, source and engine of a partition, fenced and recovered
                the same without a state, where the partition was added to the input alone
    open_warm   store, changelog and producer of a standby, where the local state ends

Each term of ownership gets objects of its own, so that no object of an earlier term can be used by
mistake (`parts.py` makes them).  Parts that were opened are closed again where a later one fails.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from belfry.engine.ownership import Event
from belfry.host.rocks import RocksMap
from belfry.kafka.agreement import Agreement, OwnershipRefused
from belfry.kafka.changelog_trust import ChangelogTrust, NotTrusted
from belfry.kafka.request_log import RequestLog
from belfry.kafka.signature_marks import Mark
from belfry.kafka.step_producer import StepProducer
from belfry.partitions.parts import PartitionDependencies, PartitionParts
from belfry.partitions.resigning import Resigning
from belfry.partitions.term import NoRows, Owned, Term, Warm
from belfry.policies.follower import Policies
from belfry.recovery.evidence import Evidence
from belfry.recovery.fenced_end import FencedEnd
from belfry.recovery.identities import Identities, World
from belfry.recovery.takeover import Recovered, TakeOver
from belfry.store.layout import keys
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.wire.requests import RequestReader

# How long an owner waits for the end of the changelog, amid a step.
LOG_END_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOpener(PartitionDependencies):
    """Opens partitions for their owners and standbys.

    `leaves` says whether a partition of which this worker cannot fire everything is left to
    another one (`Group.leaves`).
    """

    identities: Identities
    policies: Policies
    trust: ChangelogTrust
    leaves: Callable[[int, bool], bool]
    agreement: Agreement

    def take_over(self, term: Term) -> Owned:
        """Take a partition over, up to the point where its requests are to be read."""
        partition = term.partition
        self.watch.follow(partition)
        if not self._holds(partition):
            return self._take_in_only(term)
        parts = PartitionParts(self, partition)
        with ExitStack() as undo:
            warm = term.warm
            producer = parts.producer() if warm is None else warm.producer
            undo.callback(producer.close)
            source = parts.requests()
            recovered = self._recover(term, producer, source)
            undo.callback(recovered.rows.close)
            resigning = self._sign(partition, producer, recovered)
            # Asked after the fence: the former owner knew no policy that this one does not.
            self.policies.catch_up()
            new_settings = self.agreement.cluster(recovered.settings)
            reader = RequestReader()
            engine = parts.engine(recovered.store, reader)
            bounds = source.bounds()
            new_statement = self.agreement.statement(
                recovered.store.named(keys.STATEMENT_KEY),
                (recovered.identity.schedules, bounds[1]),
            )
            if recovered.manifest is None:
                low = bounds[0]
                engine.begin_at(low if partition < self.partitions else parts.sent_on_to(low))
            # A cancel may lie behind a misrouted request that the former owner left in an open
            # transaction. So all requests up to the log's end have to be taken in before firing,
            # not only those up to where readers stop today.
            intake = parts.intake_end(source, bounds[1])
            self.failpoints.reach("R4")
            source.seek(engine.position, bounds)
            undo.pop_all()
        resolver = parts.resolver(reader)
        resolver.take_over(engine.aside.all())
        return Owned(
            engine,
            recovered.rows,
            producer,
            parts.source_reader(source, term),
            resolver,
            intake,
            engine.manifest.owner_epoch + 1,
            new_settings,
            World(self.identities, partition, recovered.identity),
            recovered.new_identity,
            new_statement,
            parts.tenant_inputs(term),
            None if recovered.manifest is None else recovered.manifest.owner_epoch,
            recovered.lent_ms,
            resigning,
            recovered.unclosed_rows,
            parts.local(recovered.identity).found_wrong,
        )

    def _holds(self, partition: int) -> bool:
        """Whether a partition holds schedules.

        About a partition that is not known to, Kafka is asked: the changelog may have got it since
        (`belfry rebalance grow`), and another worker may have owned it with its schedules.
        """
        if not self.counted.holds(partition):
            self.identities.now()
            self.counted.grown(self.identities.partitions[0])
        return self.counted.holds(partition)

    def _sign(
        self, partition: int, producer: StepProducer, recovered: Recovered
    ) -> Resigning | None:
        """Sign the rows of this owner, where workers sign; returns the walk that signs old rows."""
        trust, end = self.trust, recovered.end
        log_end = partial(self.log_ends.end, self.output_topics.changelog, partition, LOG_END_S)
        producer.signer = trust.signer(partition, recovered.identity.changelog, end, log_end)
        if not trust.begins(partition, self._trusted(partition), end):
            return None
        return Resigning(recovered.store, lambda: trust.all_signed(partition))

    def _trusted(self, partition: int) -> Mark:
        try:
            return self.trust.check(partition)
        except NotTrusted as error:
            raise OwnershipRefused(str(error)) from error

    def _take_in_only(self, term: Term) -> Owned:
        """Own a partition that holds no schedules: it was added to the source alone.

        All of its requests are misrouted or refused, so it keeps no state; its position lies in a
        consumer group and is committed by the same transaction. ConnectionError where the group
        says that the partition has held schedules since.
        """
        parts = PartitionParts(self, term.partition)
        with ExitStack() as undo:
            producer = parts.forwarding_producer()
            undo.callback(producer.close)
            term.moved(Event.CAUGHT_UP)
            producer.open()
            term.moved(Event.FENCED)
            reader = RequestReader()
            engine = parts.engine(ScheduleStore(MemoryMap()), reader, forwards=True)
            source = parts.requests()
            kept = parts.kept_position(producer.group)
            if kept is not None and kept.over:
                raise ConnectionError(
                    "the partition holds schedules, and no broker has told this worker that the"
                    " changelog has it"
                )
            engine.begin_at(source.ends()[0] if kept is None else kept.offset)
            source.seek(engine.position)
            undo.pop_all()
        return Owned(
            engine,
            NoRows(),
            producer,
            parts.source_reader(source, term),
            parts.resolver(reader, forwards=True),
            parts.intake_end(source, engine.position),
            1,
            None,
            World(self.identities, term.partition, self.identities.seen),
        )

    def _recover(self, term: Term, producer: StepProducer, source: RequestLog) -> Recovered:
        warm, parts = term.warm, PartitionParts(self, term.partition)
        changelog = parts.changelog() if warm is None else warm.changelog
        with ExitStack() as undo, ExitStack() as unused:
            undo.callback(changelog.close)
            if warm is not None:
                unused.callback(warm.rows.close)
            mark, here = self._trusted(term.partition), self.identities.now()
            before, changelog.sieve = (
                changelog.sieve,
                self.trust.sieve(term.partition, here.changelog, mark),
            )
            if warm is not None:
                changelog.sieve.go_on_from(before)
            known = self.identities
            evidence = Evidence(term.partition, here, known.anchors, source, known.recoveries)
            take_over = TakeOver(
                parts.local(here),
                evidence,
                term.reading,
                self.failpoints,
                term.moved,
                FencedEnd(self.settings, self.clock, term.partition, term.reading, term.wait),
            )
            begun = None if warm is None else (warm.rows, warm.replay)
            leaves = partial(self.leaves, term.partition)
            recovered = take_over.run(changelog, producer, begun, leaves)
            unused.pop_all()
            return recovered

    def open_warm(self, partition: int, stops: Callable[[], bool]) -> Warm:
        """The open parts of a standby, at its local state; `stops` ends a fetch of a checkpoint."""
        parts = PartitionParts(self, partition)
        with ExitStack() as undo:
            changelog = parts.changelog()
            undo.callback(changelog.close)
            producer = parts.producer()
            undo.callback(producer.close)
            producer.connect()
            mark = self.trust.check(partition)
            here = self.identities.now()
            changelog.sieve = self.trust.sieve(partition, here.changelog, mark)
            rows = parts.local(here).open_newest(changelog, stops)
            undo.callback(rows.close)
            warm = Warm(rows, Replay(ScheduleStore(rows)), changelog, producer)
            undo.pop_all()
        return warm

    def checkpoint(
        self, partition: int, *, owner: bool = True
    ) -> Callable[[RocksMap, float], None] | None:
        """A function to be called at intervals with a store, to make checkpoints of it; or None."""
        if self.checkpoints is None:
            return None
        return partial(self.checkpoints.turn, partition, owner=owner)

    def look_at_signatures(self, partition: int, warm: Warm) -> None:
        """Follow the marks about signatures that owners have written since a standby was opened."""
        marks = self.trust.marks
        warm.changelog.sieve.believe_near(lambda: marks.read(partition).near_from)

    def start(self) -> None:
        """Begin to look at open transactions, and to make checkpoints where they are kept."""
        self.watch.start()
        if self.checkpoints is not None:
            self.checkpoints.start()

    def stops(self) -> dict[str, Callable[[], None]]:
        """Functions that end the work of `start`, by its names."""
        made = {} if self.checkpoints is None else {"checkpoints": self.checkpoints.stop}
        return {"watch": self.watch.stop, "payloads": self.payloads.stop, **made}

    def given_up(self, partition: int) -> None:
        """A partition is not owned here any more: its open transactions are not looked at."""
        self.watch.forget(partition)
        self.trust.marks.given_up(partition)

    def forget(self, partition: int, why: str) -> None:
        """Remove local state that is not to be used; it must not be open."""
        local = PartitionParts(self, partition).local(self.identities.seen)
        local.found_wrong()
        local.give_up(why)
