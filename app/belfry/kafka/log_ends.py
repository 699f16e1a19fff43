"""Where logs begin and end, asked by clients that a whole worker shares.

Leaders move while brokers are restarted.  A client goes on asking the one that it knows until the
time of the question is over, also where that broker is gone.  So a question is a few short tries,
and between them the brokers are asked who leads:

    12:00:00.0  where does 3 end?  broker 1, which stops just now
    12:00:00.5  no answer: who leads 3?  broker 2
    12:00:00.6  broker 2 says where it ends: a take-over has waited for 0.6 s, and not for 10 s

Who looks again and again at many partitions asks of all in one question.  That is a request to each
broker that leads some of them, and what it does not tell is asked for alone, as above:

    [("belfry.changelog", 0), …] ─► ListOffsets, once to each leader ─► the end of each
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, TopicPartition

from belfry.host import machine
from belfry.kafka import librdkafka, offset_client
from belfry.kafka.fetch_position import Where

# Seconds for one answer, and for the first try; each further one has twice as long, since a broker
# that is slow is not gone.
REQUEST_S: Final = 10.0
TRY_S: Final = 0.5
# Seconds between two looks for a partition's leader.
LOOK_S: Final = 0.1
# What a rolling restart may answer: asked again for as long as a question may take, since a term
# that ended by it would have to open and read everything once more.
_PASSING: Final = (
    KafkaError._TIMED_OUT,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    # What librdkafka says itself, where the connection to the former leader ends amid the question.
    KafkaError._TRANSPORT,
    KafkaError._DESTROY,
    KafkaError._DESTROY_BROKER,
)


class LogEnds:
    """Where logs begin and end; two clients for a whole worker, for any thread."""

    def __init__(self, properties: dict[str, Any]) -> None:
        """`properties` are librdkafka's."""
        self._clients = {
            isolation: offset_client.OffsetClient({**properties, "isolation.level": isolation})
            for isolation in ("read_committed", "read_uncommitted")
        }

    def ends(self, topic: str, partition: int, wait_s: float = REQUEST_S) -> tuple[int, int]:
        """First offset of a log, and the first one that an open transaction holds back.

        Raises ConnectionError where nobody answers in so many seconds.
        """
        return self._asked("read_committed", TopicPartition(topic, partition), wait_s)

    def end(self, topic: str, partition: int, wait_s: float = REQUEST_S) -> int:
        """The offset after the last record, whether it is held back or not; raises as `ends`."""
        return self._asked("read_uncommitted", TopicPartition(topic, partition), wait_s)[1]

    def bounds(self, topic: str, partition: int, wait_s: float = REQUEST_S) -> tuple[int, int]:
        """First offset of a log, and that after the last record, held back or not; as above."""
        return self._asked("read_uncommitted", TopicPartition(topic, partition), wait_s)

    def all_ends(self, places: Sequence[Where], wait_s: float = REQUEST_S) -> dict[Where, int]:
        """`end` of each of these logs, in one question; raises as `ends` does of the first."""
        return self._all("read_uncommitted", places, wait_s)

    def all_readable(self, places: Sequence[Where], wait_s: float = REQUEST_S) -> dict[Where, int]:
        """The first offset of each that an open transaction holds back, or its end; as above."""
        return self._all("read_committed", places, wait_s)

    def told_begins(self, places: Sequence[Where]) -> dict[Where, int]:
        """The first offset of each of these logs, of which one short question tells it."""
        return self._told("read_uncommitted", places, OFFSET_BEGINNING) if places else {}

    def told_held_back(self, places: Sequence[Where]) -> dict[Where, int] | None:
        """Where readers of committed records stop, of those of these logs that have a later end.

        Two short questions tell it, of many logs; what they do not tell is left out.  None where
        they tell nothing.
        """
        # In this order: what is appended in between does not look like something hidden.
        ends = self._told("read_uncommitted", places) if places else {}
        readable = self._told("read_committed", places) if ends else {}
        if places and not readable:
            return None
        return {place: at for place, at in readable.items() if at < ends.get(place, at)}

    def partitions(self, topic: str, wait_s: float = REQUEST_S) -> list[int]:
        """The partitions of a topic; none where there is no such topic. Raises KafkaException."""
        client, until = self._clients["read_uncommitted"], machine.monotonic() + wait_s
        while True:
            left_s = max(until - machine.monotonic(), LOOK_S)
            try:
                found = client.list_topics(topic, left_s).topics.get(topic)
            except KafkaException as error:
                # Brokers that take no connections may be starting.
                if error.args[0].code() not in _PASSING or machine.monotonic() >= until:
                    raise
                machine.sleep(LOOK_S)
            else:
                return [] if found is None else sorted(found.partitions)

    def _all(self, isolation: str, places: Sequence[Where], wait_s: float) -> dict[Where, int]:
        told = self._told(isolation, places) if places else {}
        for place in places:
            if place not in told:
                told[place] = self._asked(isolation, TopicPartition(*place), wait_s)[1]
        return told

    def _told(
        self, isolation: str, places: Sequence[Where], which: int = OFFSET_END
    ) -> dict[Where, int]:
        """What one short question tells; nothing where not all brokers answer in time."""
        asked_for = [TopicPartition(*place, which) for place in places]
        try:
            answers = self._clients[isolation].offsets_for_times(asked_for, TRY_S)
        except KafkaException:
            return {}
        return {
            (str(each.topic), each.partition): each.offset for each in answers if each.offset >= 0
        }

    def _asked(self, isolation: str, where: TopicPartition, wait_s: float) -> tuple[int, int]:
        client = self._clients[isolation]
        try:
            return asked(client, where, wait_s)
        except ConnectionError:
            # A connection may lead nowhere: the next question makes another one.
            client.close()
            raise

    def close(self) -> None:
        """Close the connections; another question opens others."""
        for client in self._clients.values():
            client.close()


def asked(
    client: librdkafka.Consumer | offset_client.OffsetClient,
    where: TopicPartition,
    wait_s: float = REQUEST_S,
) -> tuple[int, int]:
    """Where a partition begins and ends, as a consumer's isolation has it; or ConnectionError."""
    until, try_s = machine.monotonic() + wait_s, TRY_S
    while True:
        most_s = min(try_s, max(until - machine.monotonic(), LOOK_S))
        why, passes = f"no answer within {wait_s} s", True
        try:
            ends = client.get_watermark_offsets(where, most_s, cached=False)
            if ends is not None:
                return ends[0], ends[1]
        except KafkaException as error:
            why, passes = error.args[0].str(), error.args[0].code() in _PASSING
        if not passes or machine.monotonic() >= until:
            raise ConnectionError(f"{where.topic}: {why}")
        machine.sleep(LOOK_S)
        with suppress(KafkaException):
            client.list_topics(where.topic, most_s)
        try_s *= 2
