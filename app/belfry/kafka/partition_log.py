"""Reading one partition of a topic, `read_committed`, without a group.

The position moves with every batch, also with control records only, so that "read to the end" never
waits for a record that does not come.
"""

from __future__ import annotations

from typing import Any, Final

from confluent_kafka import KafkaError, Message, TopicPartition

from belfry.kafka import librdkafka
from belfry.kafka.log_bounds import LogReader, OutOfRange
from belfry.kafka.log_ends import LogEnds, asked

_READS: Final[dict[str, Any]] = {
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
}


class PartitionLog(LogReader["Message"]):
    """A reader of one partition that workers write, from a position on.

    One thread uses it, and closes it after use. `position` is the offset to be read next.
    """

    def __init__(
        self,
        properties: dict[str, Any],
        topic: str,
        partition: int,
        log_ends: LogEnds | None = None,
    ) -> None:
        """`properties` are librdkafka's; `log_ends` gives the end that is held back."""
        super().__init__(properties, topic, partition, log_ends)
        self._consumer = librdkafka.Consumer({**self._properties, **_READS})
        self._failed: Exception | None = None
        self.position = 0

    def ends(self) -> tuple[int, int]:
        """First offset of the log, and the first one that an open transaction holds back."""
        return asked(self._consumer, self._name)

    def seek(self, offset: int) -> None:
        """Read from this offset on; LostRange if the log begins later."""
        self.check(offset)
        self._failed = None
        self.position = offset
        self._consumer.assign([TopicPartition(self._name.topic, self._name.partition, offset)])

    def read(self, at_most: int, wait_s: float) -> list[Message]:
        """The next records, at most `at_most`; `position` moves behind them.

        An error that comes with records is raised by the next call, so a caller that reads on after
        it has lost none of them.
        """
        self._raise_failure()
        first = self._consumer.poll(wait_s)
        if first is None:
            return []
        messages = [first, *self._consumer.consume(at_most - 1, 0.002)] if at_most > 1 else [first]
        records = [message for message in messages if message.error() is None]
        if len(records) != len(messages):
            self._failed = self._pass_ends(messages)
        if not records:
            self._raise_failure()
        else:
            self._note(records)
        return records

    def _note(self, records: list[Message]) -> None:
        """Move behind these records."""
        last = records[-1].offset()
        assert last is not None
        self.position = max(self.position, last + 1)

    def _raise_failure(self) -> None:
        failed, self._failed = self._failed, None
        if failed is None:
            return
        try:
            raise failed
        finally:
            # An error that its own frame refers to would keep all frames that it passes through.
            del failed

    def _pass_ends(self, messages: list[Message]) -> Exception | None:
        """Move behind ends that were reached; returns the last error that is not just an end."""
        failed: Exception | None = None
        for message in messages:
            error = message.error()
            if error is None:
                continue
            if error.code() == KafkaError._PARTITION_EOF:
                self.position = max(self.position, message.offset() or 0)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                failed = OutOfRange(f"{self._name.topic}/{self._name.partition}: {error.str()}")
            elif error.fatal() or not error.retriable():
                failed = ConnectionError(f"{self._name.topic}: {error.str()}")
        return failed

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()
