"""The open parts of one term of ownership, and those that a standby hands over to the next owner.

    standby ── Warm ──► take-over, told by a Term ──► Owned ──► the partition's loop, until close

Several parts pass these values on: the loop (`owner.py`), the take-over (`opener.py`), standbys
(`standby.py`).  They open nothing themselves; they close what they hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from belfry.engine.ownership import Event
from belfry.engine.partition import PartitionEngine
from belfry.host.rocks import RocksMap
from belfry.kafka.changelog_reader import ChangelogReader
from belfry.kafka.giving_up import close_all
from belfry.kafka.outcome import Unknown
from belfry.kafka.step_producer import StepProducer
from belfry.partitions.intake_end import IntakeEnd
from belfry.partitions.resigning import Resigning
from belfry.partitions.resolver import Resolver
from belfry.partitions.source import SourceReader
from belfry.partitions.tenant_input import TenantInputs
from belfry.recovery.identities import World
from belfry.recovery.reading import ReplayProgress
from belfry.store.ordered_map import Damaged
from belfry.store.replay import Replay
from belfry.wire.batch import SourceBatch


class NoRows:
    """In place of a store, for a partition that keeps no state."""

    def figures(self) -> None:
        """There are no figures."""

    def condemn(self, why: str) -> None:
        """There is no row that could be wrong."""

    def flush(self) -> None:
        """There is no row to write."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass(slots=True)
class Warm:
    """The parts that a standby hands over: the next owner goes on with them."""

    rows: RocksMap
    replay: Replay
    changelog: ChangelogReader
    producer: StepProducer

    def close(self) -> None:
        """Close all of it."""
        close_all(self.changelog.close, self.producer.close, self.rows.close)


@dataclass(slots=True)
class Owned:
    """All open parts of a term of ownership.

    It belongs to the partition's thread. Others look at `engine` and at figures of `rows`, and
    change nothing.
    """

    engine: PartitionEngine
    rows: RocksMap | NoRows
    producer: StepProducer
    source: SourceReader
    resolver: Resolver
    intake: IntakeEnd
    # The producer's epoch, by which Kafka knows this ownership.
    epoch: int
    # Rows that the first commit adds: settings, identity and statement, where the state has not got
    # them.
    new_settings: bytes | None
    world: World
    new_identity: bytes | None = None
    new_statement: bytes | None = None
    tenant_inputs: TenantInputs | None = None
    # The last manifest before this term: its owner's epoch, and its append time if its owner holds
    # a read lease.
    former_epoch: int | None = None
    lent_ms: int | None = None
    # Signs rows that former owners have left unsigned, or signed with another secret.
    resigning: Resigning | None = None
    # Keys of rows that strangers wrote behind the last manifest; the first commit overwrites them.
    unclosed_rows: tuple[bytes, ...] = ()
    # Called when the rows are wrong: a checkpoint that they came from is not used again.
    found_wrong: Callable[[], None] | None = None

    @property
    def keeps_state(self) -> bool:
        """Whether schedules live here: a partition that only forwards has no tenant inputs."""
        return self.tenant_inputs is not None

    def kept(self) -> None:
        """The first commit has succeeded: this owner's evidence counts from now on."""
        if self.keeps_state:
            self.world.owned()

    def committed(self) -> None:
        """A step of this term was committed, and its rows are in the store."""
        self.producer.lease.committed()
        if self.resigning is not None and self.resigning.under_way:
            self.resigning.committed()

    def rolled_back(self) -> None:
        """A step of this term was rolled back."""
        self.producer.lease.aborted()
        if self.resigning is not None:
            self.resigning.aborted()

    def check(self) -> None:
        """Raise where this owner cannot go on: reading failed, or a topic was replaced."""
        if self.source.failure is not None:
            raise self.source.failure
        if self.world.changed:
            raise Unknown("the changelog or the input is another topic than it was")
        if self.tenant_inputs is None and self.world.holds_schedules:
            raise Unknown("the partition holds schedules from now on")

    def failed(self, error: Exception) -> None:
        """The term ends with this error; where its rows are wrong, the next term has none."""
        if isinstance(error, Damaged):
            self.rows.condemn(str(error))
            if self.found_wrong is not None:
                self.found_wrong()

    def close(self) -> None:
        """Stop reading, give the producer up, close the store."""
        self.source.ask_to_stop()
        self.world.given_up()
        tenant_inputs = () if self.tenant_inputs is None else (self.tenant_inputs.close,)
        close_all(*tenant_inputs, self.source.stop, self.producer.close, self.rows.close)


@dataclass(slots=True)
class Term:
    """One term of ownership: the input and the callbacks of its take-over."""

    partition: int
    # Called at each change of the ownership's state; may raise to end the take-over.
    moved: Callable[[Event], None]
    # Gives a batch that was read to the owner's mailbox, by way of the agent.
    hand_over: Callable[[SourceBatch], None]
    reading: ReplayProgress
    # Wakes the loop, when a schema that it waits for has come.
    woken: Callable[[], None]
    # Waits so many seconds; raises where there is no reason to go on with the take-over.
    wait: Callable[[float], None]
    warm: Warm | None = None
