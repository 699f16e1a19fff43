"""The topic of policies as its reader sees it: where it stands, and where the topic ends now.

    records        │ 0 … 57 │ 58 (an open transaction) │ 59 │
    position       58      a reader of committed records stops here
    end            58      and so does the question for the end: nothing is waited for that cannot
                           be read

`catch_up` asks for the ends and waits until the reader has come there.

A consumer tells the end of a partition as an event (`enable.partition.eof`), so a partition that
holds nothing but records of aborted transactions is passed as well.
"""

from __future__ import annotations

from typing import Any, Final

import structlog
from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition

from belfry.host import machine
from belfry.kafka import librdkafka
from belfry.kafka.log_bounds import LogEnds
from belfry.settings import Settings

READ_RECORDS: Final = 10_000
WAIT_S: Final = 0.2
REQUEST_S: Final = 10.0
CATCH_UP_S: Final = 30.0

log = structlog.get_logger(__name__)


class PolicyTopic:
    """Reads the topic from its beginning, without a group; `name` is the topic's.

    One thread reads and passes; any thread may `catch_up`.
    """

    def __init__(self, settings: Settings) -> None:
        self.name = settings.topic("tenants")
        # The offset that comes next, by partition.
        self.positions: dict[int, int] = {}
        properties = {
            "fetch.wait.max.ms": 100,
            **settings.kafka_properties(),
            "group.id": "belfry-reads-without-a-group",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
        self.consumer = librdkafka.Consumer(properties)
        self._log_ends = LogEnds(properties)
        self.moved = machine.Event()

    def assign(self) -> None:
        """Begin with the first record of each partition."""
        partitions = self.consumer.list_topics(self.name, REQUEST_S).topics[self.name]
        self.positions = dict.fromkeys(partitions.partitions, 0)
        self.consumer.assign(
            [TopicPartition(self.name, each, OFFSET_BEGINNING) for each in self.positions]
        )

    def read(self) -> list[Any]:
        """The next messages, errors and ends among them; none after `WAIT_S` without any."""
        first = self.consumer.poll(WAIT_S)
        return [] if first is None else [first, *self.consumer.consume(READ_RECORDS, 0.005)]

    def passed(self, messages: list[Any]) -> None:
        """What was read has been carried out, up to and with these messages."""
        for message in messages:
            self._pass(message)
        self.moved.set()

    def close(self) -> None:
        """Read no more."""
        self.consumer.close()
        self._log_ends.close()

    def catch_up(self) -> None:
        """Wait until all that can be read now has been read; ConnectionError if it is not.

        Called at each take-over by the thread of the partition, and by HTTP before it writes.
        """
        ends = {each: self._log_ends.ends(self.name, each)[1] for each in self.positions}
        deadline = machine.monotonic() + CATCH_UP_S
        while any(self.positions[each] < end for each, end in ends.items()):
            if machine.monotonic() > deadline:
                raise ConnectionError(f"{self.name} was not read to its end in {CATCH_UP_S} s")
            self.moved.clear()
            self.moved.wait(WAIT_S)

    def _pass(self, message: Any) -> None:
        error = message.error()
        partition, offset = message.partition(), message.offset()
        if error is None:
            self.positions[partition] = max(self.positions[partition], offset + 1)
        elif error.code() == KafkaError._PARTITION_EOF:
            self.positions[partition] = max(self.positions[partition], offset)
        else:
            log.warning("policies not read", reason=error.str())
