"""The begins and ends of logs, asked by clients that a whole worker shares.

Leaders move while brokers are restarted. A client goes on asking the leader that it knows until the
time of the request is over, even if that broker is gone. So a request is a few short tries, and
between them the leader is looked up:

    12:00:00.0  where does 3 end?  broker 1, which stops just now
    12:00:00.5  no answer: which broker leads 3?  broker 2
    12:00:00.6  broker 2 gives the end: a take-over has waited for 0.6 s, and not for 10 s

A caller that looks at many partitions again and again asks for all at once. That is one request to
each broker that leads some of them; ends that are missing in the answers are asked for one by one,
as above:

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

# Seconds for one answer, and for the first try; each further try has twice as long, since a slow
# broker is not gone.
REQUEST_S: Final = 10.0
TRY_S: Final = 0.5
# Seconds between two looks for a partition's leader.
LOOK_S: Final = 0.1
# Errors of a rolling restart: the request is repeated until its time is over, since a term that
# ended by such an error would have to open and read everything once more.
_PASSING: Final = (
    KafkaError._TIMED_OUT,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    # librdkafka's own error if the connection to the former leader ends amid the request.
    KafkaError._TRANSPORT,
    KafkaError._DESTROY,
    KafkaError._DESTROY_BROKER,
)


class LogEnds:
    """Begins and ends of logs; it has two clients for a whole worker, for any thread."""

    def __init__(self, properties: dict[str, Any]) -> None:
        """`properties` are librdkafka's."""
        self._clients = {
            isolation: offset_client.OffsetClient({**properties, "isolation.level": isolation})
            for isolation in ("read_committed", "read_uncommitted")
        }

    def ends(self, topic: str, partition: int, wait_s: float = REQUEST_S) -> tuple[int, int]:
        """First offset of a log, and the first one that an open transaction holds back.

        Raises ConnectionError if no broker answers within `wait_s` seconds.
        """
        return self._asked("read_committed", TopicPartition(topic, partition), wait_s)

    def end(self, topic: str, partition: int, wait_s: float = REQUEST_S) -> int:
        """The offset after the last record, whether it is held back or not; raises like `ends`."""
        where = TopicPartition(topic, partition)
        return self._asked("read_uncommitted", where, wait_s, end_alone=True)[1]

    def bounds(self, topic: str, partition: int, wait_s: float = REQUEST_S) -> tuple[int, int]:
        """First offset of a log, and the one after the last record, held back or not; as above."""
        return self._asked("read_uncommitted", TopicPartition(topic, partition), wait_s)

    def all_ends(self, places: Sequence[Where], wait_s: float = REQUEST_S) -> dict[Where, int]:
        """`end` of each of these logs, asked at once; raises like `ends` for the first failure."""
        return self._all("read_uncommitted", places, wait_s)

    def all_readable(self, places: Sequence[Where], wait_s: float = REQUEST_S) -> dict[Where, int]:
        """The end of each for readers of committed records; as above."""
        return self._all("read_committed", places, wait_s)

    def told_begins(self, places: Sequence[Where]) -> dict[Where, int]:
        """First offsets of these logs, as far as one short request gives them."""
        return self._told("read_uncommitted", places, OFFSET_BEGINNING) if places else {}

    def told_held_back(self, places: Sequence[Where]) -> dict[Where, int] | None:
        """The offsets at which readers stop, of the logs whose ends an open transaction holds back.

        Two short requests ask for many logs; logs without an answer are left out. None if there is
        no answer at all.
        """
        # In this order: a record that is appended in between does not count as held back.
        ends = self._told("read_uncommitted", places) if places else {}
        readable = self._told("read_committed", places) if ends else {}
        if places and not readable:
            return None
        return {place: at for place, at in readable.items() if at < ends.get(place, at)}

    def partitions(self, topic: str, wait_s: float = REQUEST_S) -> list[int]:
        """The partitions of a topic; empty if there is no such topic. Raises KafkaException."""
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
        """The answers to one short request; empty if not all brokers answer in time."""
        asked_for = [TopicPartition(*place, which) for place in places]
        try:
            answers = self._clients[isolation].offsets_for_times(asked_for, TRY_S)
        except KafkaException:
            return {}
        return {
            (str(each.topic), each.partition): each.offset for each in answers if each.offset >= 0
        }

    def _asked(
        self, isolation: str, where: TopicPartition, wait_s: float, *, end_alone: bool = False
    ) -> tuple[int, int]:
        client = self._clients[isolation]
        try:
            return asked(client, where, wait_s, end_alone=end_alone)
        except ConnectionError:
            # The connection may be dead: the next request makes another one.
            client.close()
            raise

    def close(self) -> None:
        """Close the connections; the next request opens others."""
        for client in self._clients.values():
            client.close()


def asked(
    client: librdkafka.Consumer | offset_client.OffsetClient,
    where: TopicPartition,
    wait_s: float = REQUEST_S,
    *,
    end_alone: bool = False,
) -> tuple[int, int]:
    """Begin and end of a partition, by a consumer's isolation; or ConnectionError.

    With `end_alone`, which librdkafka's clients do not know, the begin is not asked for.
    """
    until, try_s = machine.monotonic() + wait_s, TRY_S
    how = {"end_alone": True} if end_alone else {}
    while True:
        most_s = min(try_s, max(until - machine.monotonic(), LOOK_S))
        why, passes = f"no answer within {wait_s} s", True
        try:
            ends = client.get_watermark_offsets(where, most_s, cached=False, **how)
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
