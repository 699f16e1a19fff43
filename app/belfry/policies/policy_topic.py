"""The reader of the topic of policies: its positions, and the present ends of the topic.

    records        │ 0 … 57 │ 58 (an open transaction) │ 59 │
    position       58      a reader of committed records stops here
    end            58      and the question for the end stops here too: a record that cannot be
                   read is not waited for

`catch_up` asks for the ends and waits until the reader has come there.

The offset behind a fetch is known even where it holds only records of aborted transactions, so
these are passed as well.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import structlog

from belfry.host import machine
from belfry.host.joined import Joined
from belfry.kafka import fetcher
from belfry.kafka.batch_reader import BatchReader
from belfry.kafka.client_properties import untold
from belfry.kafka.fetch_plan import CALM_S
from belfry.kafka.fetch_position import Fetched, OffsetGone, Where
from belfry.kafka.log_ends import REQUEST_S, LogEnds
from belfry.settings import Settings
from belfry.wire.record import SourceRecord

READ_RECORDS: Final = 10_000
WAIT_S: Final = 0.2
CATCH_UP_S: Final = 30.0
# Seconds for the begin of one partition while others are read, and until the next try.
BEGIN_S: Final = 1.0
AGAIN_S: Final = 5.0

log = structlog.get_logger(__name__)


class PolicyBatch(NamedTuple):
    """Records of one partition, maybe none, and the offset that comes next."""

    partition: int
    records: list[SourceRecord]
    behind: int


class PolicyTopic:
    """Reads the topic from its beginning, without a group; `name` is the topic's.

    One thread reads and passes; any thread may `catch_up`.
    """

    def __init__(self, settings: Settings) -> None:
        self.name = settings.topic("tenants")
        # The offset that comes next, by partition.
        self.positions: dict[int, int] = {}
        properties = untold(settings.kafka_properties())
        self._fetcher = fetcher.Fetcher(properties, wait_s=CALM_S)
        self._log_ends = LogEnds(properties)
        self._readers: dict[int, BatchReader] = {}
        # Whether the fetcher follows all readers.
        self._followed = True
        # The earliest next try to begin with a partition whose leader did not answer.
        self._not_before: dict[int, float] = {}
        self.moved = machine.Event()
        self._ends = Joined(self._ends_now)

    def assign(self) -> None:
        """Learn which partitions there are; `read` begins with the first record of each.

        Raises ConnectionError where there are none within `CATCH_UP_S`.
        """
        deadline = machine.monotonic() + CATCH_UP_S
        # A topic that was made a moment ago is not known to each broker at once.
        while not (partitions := self._log_ends.partitions(self.name)):
            if machine.monotonic() > deadline:
                raise ConnectionError(f"{self.name} has no partitions")
            machine.sleep(WAIT_S)
        self.positions = dict.fromkeys(partitions, 0)

    def _begin_others(self) -> None:
        """Begin with partitions that are not read yet.

        A partition without a leader does not hold up the others.
        """
        now_s = machine.monotonic()
        others = sorted(self.positions.keys() - self._readers.keys())
        due = [each for each in others if self._not_before.get(each, now_s) <= now_s]
        told = self._log_ends.told_begins([(self.name, each) for each in due])
        for (_, partition), begin in told.items():
            self._begin(partition, begin)
        for each in due:
            if (self.name, each) not in told and not self._begun(each):
                return

    def _begun(self, partition: int) -> bool:
        """Ask the leader of one partition alone, and begin; returns whether it answered."""
        where = self.name, partition
        try:
            begin, _ = self._log_ends.ends(*where, BEGIN_S if self._readers else REQUEST_S)
        except ConnectionError as error:
            if not self._readers:
                raise
            self._not_before[partition] = machine.monotonic() + AGAIN_S
            log.warning("policies not read", partition=partition, reason=str(error))
            return False
        self._begin(partition, begin)
        return True

    def _begin(self, partition: int, begin: int) -> None:
        """Read a partition from its begin."""
        self._readers[partition] = BatchReader((self.name, partition), begin)
        self._followed = False

    def read(self) -> PolicyBatch | None:
        """The next records of some partition; None after `WAIT_S` without any.

        Raises ConnectionError where no leader answers, or a partition may not be read.
        """
        self._begin_others()
        if not self._followed:
            self._follow()
        left = (each for each, reader in self._readers.items() if not reader.empty)
        partition = next(left, None)
        if partition is None:
            answer = self._fetcher.take(WAIT_S)
            if answer is None:
                return None
            partition = answer.where[1]
            if not self._added(partition, answer):
                return None
        reader = self._readers[partition]
        records = reader.take(READ_RECORDS)
        return PolicyBatch(partition, records, reader.position)

    def _follow(self) -> None:
        """Fetch for all readers, from the position of each."""
        self._followed = True
        self._fetcher.follow({(self.name, p): each.fetched for p, each in self._readers.items()})

    def _added(self, partition: int, answer: Fetched) -> bool:
        """Take an answer in; False where the log was cut off, and is read anew."""
        if isinstance(answer.error, OffsetGone):
            log.warning("policies are read from their begin", reason=str(answer.error))
            del self._readers[partition]
            # Offsets that were cut off are given to new records: a caller that waits for them has
            # to wait.
            self.positions[partition] = 0
            return False
        if answer.error is not None:
            raise answer.error
        self._readers[partition].add(answer)
        return True

    def passed(self, batch: PolicyBatch) -> None:
        """Note that policies were carried out, up to and with this batch."""
        self.positions[batch.partition] = max(self.positions[batch.partition], batch.behind)
        self.moved.set()

    def close(self) -> None:
        """Stop reading."""
        self._fetcher.close()
        self._log_ends.close()

    def catch_up(self) -> None:
        """Wait until all that can be read now has been read; ConnectionError if it is not.

        Called at each take-over by the thread of the partition, and by HTTP before it writes.  One
        question asks for all ends, and callers at the same time share its answer: one by one, the
        take-overs of a worker that begins with 64 partitions would cost 8 192 requests.
        """
        ends = self._ends()
        deadline = machine.monotonic() + CATCH_UP_S
        while any(self.positions[each] < end for (_, each), end in ends.items()):
            if machine.monotonic() > deadline:
                raise ConnectionError(f"{self.name} was not read to its end in {CATCH_UP_S} s")
            self.moved.clear()
            self.moved.wait(WAIT_S)

    def _ends_now(self) -> dict[Where, int]:
        """The offsets where readers of committed records stop now."""
        return self._log_ends.all_readable([(self.name, each) for each in self.positions])
