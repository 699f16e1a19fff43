"""The topic of policies as its reader sees it: where it stands, and where the topic ends now.

    records        │ 0 … 57 │ 58 (an open transaction) │ 59 │
    position       58      a reader of committed records stops here
    end            58      and so does the question for the end: nothing is waited for that cannot
                           be read

`catch_up` asks for the ends and waits until the reader has come there.

The offset behind what was fetched is known also where it holds nothing but records of aborted
transactions, so these are passed as well.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import structlog

from belfry.host import machine
from belfry.host.joined import Joined
from belfry.kafka import fetcher
from belfry.kafka.batch_reader import BatchReader
from belfry.kafka.client_properties import untold
from belfry.kafka.fetch_position import Fetched, OffsetGone, Where
from belfry.kafka.log_ends import REQUEST_S, LogEnds
from belfry.settings import Settings
from belfry.wire.record import SourceRecord

READ_RECORDS: Final = 10_000
WAIT_S: Final = 0.2
CATCH_UP_S: Final = 30.0
# Seconds to learn where one partition begins while others are read, and until the next try.
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
        self._fetcher = fetcher.Fetcher(properties)
        self._log_ends = LogEnds(properties)
        self._readers: dict[int, BatchReader] = {}
        # Whether the fetcher has been told of all of them.
        self._followed = True
        # When to begin with a partition that nobody told of, at the earliest.
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

        One that nobody leads keeps the policies of the others from nobody.
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
        """Begin with one whose leader did not tell with the others; whether it tells now."""
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
        """Read a partition from where it begins now."""
        self._readers[partition] = BatchReader((self.name, partition), begin)
        self._followed = False

    def read(self) -> PolicyBatch | None:
        """What comes next of some partition; None after `WAIT_S` without anything.

        Raises ConnectionError where no partition is told of, or one may not be read.
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
        """Fetch what is read, from where each reader stands."""
        self._followed = True
        self._fetcher.follow({(self.name, p): each.fetched for p, each in self._readers.items()})

    def _added(self, partition: int, answer: Fetched) -> bool:
        """Take in what was fetched; False where the log has changed, and is read anew."""
        if isinstance(answer.error, OffsetGone):
            log.warning("policies are read from where they begin", reason=str(answer.error))
            del self._readers[partition]
            # Offsets that were cut off are given anew: a caller that waits for them has to wait.
            self.positions[partition] = 0
            return False
        if answer.error is not None:
            raise answer.error
        self._readers[partition].add(answer)
        return True

    def passed(self, batch: PolicyBatch) -> None:
        """What was read has been carried out, up to and with this batch."""
        self.positions[batch.partition] = max(self.positions[batch.partition], batch.behind)
        self.moved.set()

    def close(self) -> None:
        """Read no more."""
        self._fetcher.close()
        self._log_ends.close()

    def catch_up(self) -> None:
        """Wait until all that can be read now has been read; ConnectionError if it is not.

        Called at each take-over by the thread of the partition, and by HTTP before it writes.  All
        ends are asked for together, and once for all who ask: one after the other, the take-overs
        of a worker that begins with 64 partitions would cost 8 192 requests.
        """
        ends = self._ends()
        deadline = machine.monotonic() + CATCH_UP_S
        while any(self.positions[each] < end for (_, each), end in ends.items()):
            if machine.monotonic() > deadline:
                raise ConnectionError(f"{self.name} was not read to its end in {CATCH_UP_S} s")
            self.moved.clear()
            self.moved.wait(WAIT_S)

    def _ends_now(self) -> dict[Where, int]:
        """Where readers of committed records stop today."""
        return self._log_ends.all_readable([(self.name, each) for each in self.positions])
