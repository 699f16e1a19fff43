"""One run of reading a partition's tenants' own topics: in turn, and handed over in transactions.

    fetcher ─► one reader a topic ─┬ in turn: some of each ─► one transaction: requests forwarded,
                                   │                          and the positions behind them
                                   └ a topic that is lost, or denied, holds up no other

The positions are offsets of a consumer group without members, committed by the same transaction, as
those of added partitions are.  The fence is a transactional id of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from threading import Event
from typing import Final

from confluent_kafka import KafkaException, TopicPartition

from belfry.engine.effects import Effects
from belfry.engine.forward import TenantInput, forward_requests
from belfry.kafka import fetcher, librdkafka
from belfry.kafka.batch_reader import BatchReader
from belfry.kafka.client_properties import untold
from belfry.kafka.fetch_position import Fetched, OffsetGone, Where
from belfry.kafka.log_ends import asked
from belfry.partitions.forwarding import RENEW_MS
from belfry.partitions.tenant_dependencies import TenantInputDependencies
from belfry.telemetry.limited import LimitedLogger
from belfry.wire.record import SourceRecord

READ_RECORDS: Final = 2_000
# The bytes of an answer of one topic; a partition may read many topics.
ANSWER_BYTES: Final = 1024 * 1024
WAIT_S: Final = 0.2
MORE_S: Final = 0.002
SIP_S: Final = 0.02
SIP_RECORDS: Final = 500
ASK_S: Final = 10.0


class TenantInputReading:
    """One run of reading, from the fence to the first failure."""

    def __init__(self, home: int, means: TenantInputDependencies, said: LimitedLogger) -> None:
        self._home = home
        self._means = means
        self._log = said
        self._producer = means.producer()
        self._fetcher = fetcher.Fetcher(means.consumer_properties, ANSWER_BYTES)
        # Only asks for positions.
        self._consumer = librdkafka.Consumer(
            {**untold(means.consumer_properties), "group.id": self._producer.group}
            | {"enable.auto.commit": False, "isolation.level": "read_committed"}
        )
        self._tenant_inputs: dict[Where, TenantInput] = {}
        self._positions: dict[Where, int] = {}
        self._readers: dict[Where, BatchReader] = {}
        # Records that were read and not handed over yet.
        self._read: dict[Where, deque[SourceRecord]] = {}
        self._ended: set[Where] = set()
        self._lost: set[Where] = set()
        self._followed: frozenset[TenantInput] = frozenset()
        self._renewed_ms = means.clock.monotonic_ms()

    @property
    def at_ends(self) -> bool:
        """Whether the end of each topic has been met since it was found."""
        return self._tenant_inputs.keys() <= self._ended | self._lost

    @property
    def ended(self) -> list[Where]:
        """The topics whose end has been met."""
        return [where for where in self._tenant_inputs if where not in self._lost]

    def has_passed(self, ends: Mapping[Where, int]) -> bool:
        """Whether all records before these ends have been handed over."""
        left = [where for where in self.ended if where in ends]
        return all(self._positions.get(where, 0) >= ends[where] for where in left)

    def open(self) -> None:
        """Fence the former owner: positions that are read after that are final."""
        self._producer.open()
        self._follow()

    def close(self) -> None:
        """Close the connections."""
        self._producer.close()
        self._consumer.close()
        self._fetcher.close()

    def turn(self, stopping: Event) -> None:
        """Hand the new requests over, in one transaction."""
        if self._means.topics.of(self._home) != self._followed:
            self._follow()
        count, effects = self._hand_over_some(stopping)
        behind = self._behind()
        now_ms = self._means.clock.monotonic_ms()
        if now_ms - self._renewed_ms >= RENEW_MS:
            self._renewed_ms = now_ms
            behind = {**self._positions, **behind}
        if behind:
            self._commit(effects, behind)
            self._positions.update(behind)
            if count < SIP_RECORDS:
                stopping.wait(SIP_S)

    def _hand_over_some(self, stopping: Event) -> tuple[int, Effects]:
        """Gather new requests until a transaction has enough; returns their number and effects."""
        effects = Effects(room=self._means.step_bytes)
        count, wait_s = 0, WAIT_S
        while effects.room > 0 and count < READ_RECORDS:
            readable = self._readable()
            answer = self._fetcher.take(0.0 if readable else wait_s, readable)
            if answer is not None:
                if not self._came_through(answer, stopping):
                    break
                self._take(answer)
                wait_s = MORE_S
            elif not readable:
                break
            for where in readable[:1]:
                count += self._add(where, effects)
                # The other topics come before it the next time.
                self._readers[where] = self._readers.pop(where)
        return count, effects

    def _came_through(self, answer: Fetched, stopping: Event) -> bool:
        """Whether the answer has come through the agent; False if asked to stop."""
        if not answer.data:
            return True
        return self._means.through(*answer.where, answer.offset, stopping)

    def _readable(self) -> list[Where]:
        """Topics with records to hand over; the one that was read longest ago comes first."""
        return [w for w, each in self._readers.items() if self._read[w] or not each.empty]

    def _follow(self) -> None:
        """Read the topics that there are now, each from where its last reader left off."""
        self._followed = self._means.topics.of(self._home)
        by_place = {(each.place.topic, each.place.partition): each for each in self._followed}
        # In the order of their names: the order of a set differs from process to process.
        self._tenant_inputs = dict(sorted(by_place.items()))
        self._positions = {w: at for w, at in self._positions.items() if w in self._tenant_inputs}
        fresh = [where for where in self._tenant_inputs if where not in self._positions]
        asked = [TopicPartition(*where) for where in fresh]
        for found in self._consumer.committed(asked, ASK_S) if asked else ():
            if found.error is not None:
                raise KafkaException(found.error)
            if found.offset >= 0:
                self._positions[found.topic, found.partition] = found.offset
        self._ended -= set(fresh)
        for where in fresh:
            self._readers.pop(where, None)
        for where in self._tenant_inputs:
            if where not in self._readers:
                self._read_from(where, self._positions.get(where, 0))
        self._readers = {w: each for w, each in self._readers.items() if w in self._tenant_inputs}
        self._fetch()

    def _read_from(self, where: Where, offset: int) -> None:
        self._readers[where] = BatchReader(where, offset, self._log)
        self._read[where] = deque()

    def _fetch(self) -> None:
        self._fetcher.follow(
            {w: each.fetched for w, each in self._readers.items() if w not in self._lost}
        )

    def _is_new(self, where: Where) -> bool:
        """Whether no record of a topic has been read: it is read from its begin."""
        reader = self._readers.get(where)
        return reader is not None and reader.position == 0 and where not in self._positions

    def _behind(self) -> dict[Where, int]:
        """The position behind the last record handed over of each topic, where it has moved."""
        behind = {}
        for where, reader in self._readers.items():
            left = self._read[where]
            at = left[0][0] if left else reader.position
            if at > self._positions.get(where, -1) and (at or where in self._positions):
                behind[where] = at
        return behind

    def _add(self, where: Where, effects: Effects) -> int:
        """Add records of a topic to a step's effects; returns how many."""
        now_ms = int(self._means.clock.wall_ms())
        left, reader = self._read[where], self._readers[where]
        if not left:
            records = reader.take(READ_RECORDS)
            # Where a tenant sets the timestamps of its topic, the instant of reading counts
            # instead.
            left += records if reader.appended else [(r[0], now_ms, *r[2:]) for r in records]
        tenant_input = self._tenant_inputs[where]
        tenant_input = tenant_input._replace(
            secret=self._means.tenants.secret_of(tenant_input.tenant)
        )
        count = 0
        while left and effects.room > 0:
            forward_requests([left.popleft()], tenant_input, now_ms, effects)
            count += 1
        return count

    def _commit(self, effects: Effects, behind: dict[Where, int]) -> None:
        """Commit; requests of a transaction that failed, or may have failed, are read again."""
        clock = self._means.clock
        started_ms = clock.monotonic_ms()
        self._producer.positions = behind
        self._producer.commit(effects)
        self._means.metrics.committed(effects, (clock.monotonic_ms() - started_ms) / 1000)

    def _take(self, answer: Fetched) -> None:
        """Take an answer in; note an end of a topic, and log a topic that cannot be read."""
        where, error = answer.where, answer.error
        if isinstance(error, OffsetGone) and self._is_new(where):
            self._read_from(where, asked(self._consumer, TopicPartition(*where), ASK_S)[0])
            self._fetch()
        elif isinstance(error, OffsetGone):
            self._lost.add(where)
            self._log.error(
                f"lost {where}",
                "requests are gone before they were read: this topic is read no further; set the"
                " group's offset to where to go on, and restart the worker",
                topic=where[0], of=where[1], position=self._positions.get(where),
                group=self._producer.group, cause=str(error),
            )  # fmt: skip
        elif error is not None:
            self._log.warning(f"error {where}", "topic not read", topic=where[0], cause=str(error))
        elif where in self._readers:
            self._readers[where].add(answer)
            if not answer.data:
                self._ended.add(where)
