"""A broker in memory: logs, a transaction coordinator, fencing, compaction.

What it does like Kafka, because belfry's promises hang on it:

    init       raises the epoch, ends the open transaction, answers when its last marker is written
    produce    with an old epoch is refused; the records lie in the log at once, undecided
    end        decides at one instant; the markers reach each partition later, one by one
    readers    of committed records stop at the first undecided one (`stable_end`)
    time-out   ends a transaction that nobody ends, and fences its producer
    compaction keeps the last record of a key below `stable_end`, and drops old tombstones

A marker takes an offset.  Offsets are used twice only where an election has lost a tail that nobody
had acknowledged (`replication`).  `history` keeps what compaction removes, for the checker alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from belfry.store.signatures import FILLER
from tests.simulation.hearsay import Hearsay
from tests.simulation.replication import Cluster, Replicas
from tests.simulation.stage import Stage, Task

T0: Final = 1_800_000_000_000  # 2027-01-15T08:00:00Z, on a minute's edge
# Where transactions commit offsets of groups.
OFFSETS: Final = "__consumer_offsets"
Headers = list[tuple[str, bytes | None]]
Record = tuple[bytes | None, bytes | None, Headers | None]


class Refused(Exception):
    """The broker refuses; `kind` is fenced, forgotten, state, unknown_topic or refused."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


@dataclass(eq=False, slots=True)
class Txn:
    """One transaction: `outcome` is empty while nothing is decided.

    `in_batches`: its records came partition by partition, so nothing says which of two was first.
    """

    producer: str
    epoch: int
    started_ms: float
    outcome: str = ""
    touched: list[Log] = field(default_factory=list)
    number: int = 0
    timeout_ms: float = 0.0
    in_batches: bool = False
    # Offsets of groups that it commits: group, topic and partition to offset and text.
    offsets: dict[tuple[str, str, int], tuple[int, str]] = field(default_factory=dict)


class Entry(NamedTuple):
    """A record in a log; without a transaction it is committed, with `marker` it is none."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None
    txn: Txn | None
    order: int
    marker: bool = False

    @property
    def committed(self) -> bool:
        """Whether readers of committed records see it, once it is stable."""
        return not self.marker and (self.txn is None or self.txn.outcome == "commit")


class Log:
    """One partition of a topic."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.entries: list[Entry] = []
        self.history: list[Entry] = []
        self.end = 0
        self.open: dict[Txn, int] = {}
        self.readers: list[Task] = []
        # Batches as they are fetched, by the order of their entries, which is never another one's.
        self.fetched: dict[int, bytes] = {}
        # Where brokers hold copies of it, and are elected.
        self.replicas: Replicas | None = None

    @property
    def readable_end(self) -> int:
        """The end for readers of everything: what all replicas have, as the leader knows."""
        return self.end if self.replicas is None else self.replicas.shown

    @property
    def stable_end(self) -> int:
        """The first offset that an undecided transaction holds back, else the end."""
        end = self.end if self.replicas is None else self.replicas.shown
        return min(end, *self.open.values()) if self.open else end

    def cut(self, offset: int) -> list[Entry]:
        """Lose what lies from an offset on; what was lost."""
        lost = [entry for entry in self.entries if entry.offset >= offset]
        if lost:
            self.entries = self.entries[: -len(lost)]
            self.history = [entry for entry in self.history if entry.offset < offset]
            self.end = offset
            self.open = {txn: start for txn, start in self.open.items() if start < offset}
        return lost

    def add(self, entry: Entry) -> None:
        """Append an entry."""
        self.entries.append(entry)
        self.history.append(entry)
        self.end = entry.offset + 1

    def read(self, offset: int, end: int, at_most: int) -> list[Entry]:
        """Entries from an offset on, markers included, below `end`."""
        if offset >= end:
            return []
        at = bisect_left(self.entries, offset, key=lambda entry: entry.offset)
        found = []
        for entry in self.entries[at : at + at_most]:
            if entry.offset >= end:
                break
            found.append(entry)
        return found

    def compact(self, now_ms: int, tombstones_ms: int) -> None:
        """Keep the last committed record of each key; old tombstones and markers go."""
        stable = self.stable_end
        last = {e.key: e.offset for e in self.entries if e.committed and e.offset < stable}

        def stays(entry: Entry) -> bool:
            if entry.offset >= stable:
                return True
            if not entry.committed or last[entry.key] != entry.offset:
                return False
            return entry.value is not None or now_ms - entry.timestamp_ms < tombstones_ms

        self.entries = [entry for entry in self.entries if stays(entry)]


@dataclass(slots=True)
class Coordinated:
    """What the coordinator knows of a transactional id.

    `ended` is the epoch whose EndTxn gave the present one, `replaced` the one that an
    InitProducerId named; both are -1 for none.  The id was forgotten, and everything before the
    epoch `known_from` with it; where that is the present one, nobody has asked for the id since.
    """

    epoch: int = -1
    txn: Txn | None = None
    last_outcome: str = ""
    timeout_ms: float = 0.0
    ended: int = -1
    replaced: int = -1
    known_from: int = 0

    @property
    def forgotten(self) -> bool:
        """Whether the coordinator knows nothing of the id."""
        return 0 < self.known_from == self.epoch

    def forget(self) -> None:
        """Forget the id, as after `transactional.id.expiration.ms`; not amid a transaction.

        Producer ids are given anew then, and their epochs begin at 0.  Here epochs go on, and
        those of before are of another producer id.
        """
        if self.txn is None and self.epoch >= 0:
            self.epoch += 1
            self.known_from, self.ended, self.replaced = self.epoch, -1, -1


class Broker:
    """One broker, which loses nothing that it has acknowledged."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        # When the world begins, in epoch ms.
        self.began_ms = T0
        self.topics: dict[str, list[Log]] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.refused: dict[str, str] = {}
        self.coordinated: dict[str, Coordinated] = {}
        # By group, topic and partition: what was committed, and its text.
        self.offsets: dict[tuple[str, str, int], tuple[int, str]] = {}
        self.made: dict[str, int] = {}
        self.own_epochs = False
        # Where several brokers hold copies.
        self.cluster: Cluster | None = None
        # Where topics change amid the run.
        self.hearsay: Hearsay | None = None
        # Until then a stranger copies what is written to the changelog, as soon as it lies there.
        self.copied_until_ms = 0.0
        # Which markers never come (`hanging`).
        self.loses_marker: Callable[..., bool] | None = None
        # Which one comes late, and by how much (`late_markers`).
        self.slows_marker: Callable[[Txn], tuple[Log, float] | None] | None = None
        self.parts: dict[Any, Any] = {}  # Its nodes, and its groups by their names.
        self.order = 0
        self.decided = 0

    # -- topics ----------------------------------------------------------------------------------

    def now_ms(self) -> int:
        """The broker's clock, which all promises are judged by."""
        return int(self.began_ms + self.stage.now_ms)

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic."""
        self.made[topic] = self.made.get(topic, 0) + 1
        self.topics[topic] = []
        self.extend(topic, partitions)

    def extend(self, topic: str, partitions: int) -> None:
        """Give a topic so many partitions."""
        logs = self.topics[topic]
        if self.hearsay is not None:
            self.hearsay.changes(topic, len(logs))
        for number in range(len(logs), partitions):
            log = Log(topic, number)
            if self.cluster is not None:
                log.replicas = Replicas(log, self.cluster)
            logs.append(log)

    def some(self) -> int:
        """The broker that a client stays with, where there are several."""
        return 0 if self.hearsay is None else self.hearsay.some()

    def known(self, at: int) -> dict[str, list[Log]]:
        """Topics and their partitions, as who asks this broker is told of them."""
        return self.topics if self.hearsay is None else self.hearsay.known(at)

    def log(self, topic: str, partition: int) -> Log:
        """One partition of a topic."""
        if topic not in self.topics:
            raise Refused("unknown_topic", f"{topic} does not exist")
        return self.topics[topic][partition]

    def append(
        self,
        log: Log,
        record: Record,
        txn: Txn | None = None,
    ) -> Entry:
        """Append a record; outside of a transaction it is committed."""
        self.order += 1
        entry = Entry(log.end, self.now_ms(), *record, txn, self.order)
        log.add(entry)
        if log.replicas is not None and txn is None:
            log.replicas.appended(entry)
        self.wake(log)
        return entry

    def wake(self, log: Log) -> None:
        """Wake who waits for more of a log."""
        readers, log.readers = log.readers, []
        for reader in readers:
            self.stage.wake(reader)

    # -- transactions ----------------------------------------------------------------------------

    def init(self, name: str, wait: Callable[[float], None]) -> int:
        """Fence the former producer of this id and end its transaction; the new epoch."""
        known = self.coordinated.setdefault(name, Coordinated())
        if known.txn is not None and not known.txn.outcome:
            known.epoch += 1
            self.decide(known, "abort")
        while known.txn is not None:
            wait(5.0)
        known.epoch += 1
        return known.epoch

    def produce(
        self,
        producer: tuple[str, int],
        place: tuple[str, int],
        records: Sequence[Record],
        timeout_ms: float,
    ) -> list[Entry]:
        """Append records to one partition within the producer's transaction."""
        self._known(producer)
        topic, partition = place
        if topic in self.refused:
            raise Refused("refused", self.refused[topic])
        log = self.log(topic, partition)
        txn = self.begin(producer, timeout_ms)
        if txn.outcome:
            raise Refused("state", "the transaction is being ended")
        self.touch(txn, log)
        return self.append_all(txn, log, records)

    def begin(self, producer: tuple[str, int], timeout_ms: float) -> Txn:
        """The transaction that is under way, or a new one."""
        known = self.coordinated[producer[0]]
        if known.txn is None:
            known.txn = Txn(*producer, self.stage.now_ms, timeout_ms=timeout_ms)
            self._expire_later(known, known.txn, timeout_ms)
        return known.txn

    def touch(self, txn: Txn, log: Log) -> None:
        """Add a partition to a transaction: it gets a marker, whether or not records come."""
        if log not in txn.touched:
            txn.touched.append(log)

    def append_all(self, txn: Txn, log: Log, records: Sequence[Record]) -> list[Entry]:
        """Append records of a transaction, undecided."""
        log.open.setdefault(txn, log.end)
        if log.replicas is not None:
            log.replicas.begins_batch(log.end)
        appended = [self.append(log, record, txn) for record in records]
        if log.replicas is not None:
            log.replicas.appended(appended[-1])
        if self.copied_until_ms > self.stage.now_ms and log.topic == "belfry.changelog":
            for record in records:
                if record[0] != FILLER:
                    self.append(log, record)
        return appended

    def busy(self, name: str) -> bool:
        """Whether markers of this id's last transaction are still to be written."""
        known = self.coordinated.get(name)
        return known is not None and known.txn is not None and bool(known.txn.outcome)

    def end(self, producer: tuple[str, int], outcome: str) -> None:
        """EndTxn: commit or abort what this producer has open."""
        known = self._known(producer)
        if known.txn is None or known.txn.outcome:
            ended = known.last_outcome if known.txn is None else known.txn.outcome
            if ended not in ("", outcome):
                raise Refused("state", f"the transaction has ended by {ended}")
            return
        self.decide(known, outcome)

    def _known(self, producer: tuple[str, int]) -> Coordinated:
        name, epoch = producer
        known = self.coordinated.setdefault(name, Coordinated())
        if epoch < known.known_from:
            raise Refused("forgotten", f"{name}: the producer id is not known")
        if known.epoch != epoch:
            raise Refused("fenced", f"{name}: epoch {epoch} is older than {known.epoch}")
        return known

    def decide(self, known: Coordinated, outcome: str) -> None:
        """Decide the open transaction at once; its markers are written later, one by one."""
        txn = known.txn
        assert txn is not None
        self.decided += 1
        txn.outcome, txn.number = outcome, self.decided
        slow_ms = 400.0 if self.stage.random.random() < 0.02 else 3.0
        left, loses = list(txn.touched), self.loses_marker
        if loses is not None:
            fenced = known.epoch != txn.epoch
            left = [log for log in left if not loses(txn, log, fenced=fenced)]
        if not left:
            known.txn, known.last_outcome = None, outcome
        late = None if self.slows_marker is None else self.slows_marker(txn)

        def mark(log: Log) -> None:
            self.order += 1
            marker = Entry(log.end, self.now_ms(), None, None, None, txn, self.order, True)
            log.add(marker)
            if log.replicas is None:
                marked(log)
                return
            log.replicas.begins_batch(marker.offset)
            log.replicas.appended(marker)
            log.replicas.when(marker.offset, lambda kept: marked(log) if kept else mark(log))

        def marked(log: Log) -> None:
            log.open.pop(txn, None)
            if log.topic == OFFSETS and outcome == "commit":
                self.offsets |= txn.offsets
            self.wake(log)
            left.remove(log)
            if not left:
                known.txn, known.last_outcome = None, outcome

        for log in tuple(left):
            after_ms = self.stage.random.random() * slow_ms
            if late is not None and late[0] is log:
                after_ms = late[1]
            self.stage.later(after_ms, lambda log=log: mark(log))  # type: ignore[misc]

    def _expire_later(self, known: Coordinated, txn: Txn, timeout_ms: float) -> None:
        def expire() -> None:
            if known.txn is txn and not txn.outcome:
                known.epoch += 1
                self.decide(known, "abort")

        self.stage.later(timeout_ms, expire)
