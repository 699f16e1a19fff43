"""Groups of plain consumers, as Kafka's coordinator keeps them: dispatchers are members of two.

    join       a new member, or the same static one again: that one gets back what it had (KIP-345)
    rebalance  all members give up what they have and join anew; then a new generation is dealt
    silence    who says nothing for a session is dropped, and learns of it when it asks again
    commit     in a transaction, by a member of this generation alone: others are refused (KIP-447)

Members are heard by tasks of their own, as librdkafka's are by its threads: they go on while the
shell's thread is busy, and stop with the process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import OFFSET_INVALID, KafkaError, TopicPartition

from tests.simulation import clients
from tests.simulation.broker import OFFSETS, Broker
from tests.simulation.clients import SimProducer, failure
from tests.simulation.machine import Machine
from tests.simulation.readers import SimConsumer
from tests.simulation.replication import LOOK_MS
from tests.simulation.stage import here

SESSION_MS: Final = 6_000.0
HEARTBEAT_MS: Final = 500.0
# A rebalance waits so long for further members.
GATHERS_MS: Final = 300.0
# Groups of consumers: what they are called besides the name of the application.
GROUP: Final = ".deliver"
Place = tuple[str, int]


@dataclass(eq=False, slots=True)
class Joined:
    """One member: `generation` is the last one that it was told of, -1 for none."""

    instance: str
    seen_ms: float
    generation: int = -1
    waits: bool = True
    partitions: list[int] = field(default_factory=list)


class Coordinator:
    """One group on the broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._members: dict[str, Joined] = {}
        self._topic = ""
        self._began_ms = 0.0
        self._looks = False
        self.rebalances = False
        self.generation = 0

    def join(self, instance: str, topic: str) -> Joined:
        """A member joins; one that was there before takes its own place."""
        self._topic = topic
        before = self._members.get(instance)
        member = self._members[instance] = Joined(instance, self._broker.stage.now_ms)
        if before is None:
            self._rebalance()
        elif not before.waits and not self.rebalances:
            member.waits, member.partitions = False, before.partitions
        if not self._looks:
            self._looks = True
            self._broker.stage.later(LOOK_MS, self._look)
        return member

    def knows(self, member: Joined) -> bool:
        """Whether it is a member, and nobody has taken its place."""
        return self._members.get(member.instance) is member

    def _rebalance(self) -> None:
        if not self.rebalances:
            self.rebalances, self._began_ms = True, self._broker.stage.now_ms
            for member in self._members.values():
                member.waits = member.generation < 0

    def _look(self) -> None:
        now_ms = self._broker.stage.now_ms
        silent = [n for n, m in self._members.items() if now_ms - m.seen_ms > SESSION_MS]
        for name in silent:
            del self._members[name]
        if silent:
            self._rebalance()
        all_wait = all(member.waits for member in self._members.values())
        if self.rebalances and all_wait and now_ms - self._began_ms >= GATHERS_MS:
            self._deal()
        self._looks = bool(self._members)
        if self._looks:
            self._broker.stage.later(LOOK_MS, self._look)

    def _deal(self) -> None:
        self.rebalances = False
        self.generation += 1
        names = sorted(self._members)
        self._broker.stage.random.shuffle(names)
        for name in names:
            self._members[name].partitions = []
            self._members[name].waits = False
        for log in self._broker.topics.get(self._topic, ()) if names else ():
            self._members[names[log.partition % len(names)]].partitions.append(log.partition)


def coordinator(broker: Broker, group: str) -> Coordinator:
    """Who coordinates a group."""
    found: Coordinator | None = broker.parts.get(group)
    if found is None:
        found = broker.parts[group] = Coordinator(broker)
    return found


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """What a transaction that commits a member's offsets is told of it."""

    group: str
    member: Joined
    generation: int


class GroupConsumer(SimConsumer):
    """`Consumer` that subscribes to a topic as a static member."""

    def __init__(self, properties: dict[str, Any], **_: Any) -> None:
        super().__init__(properties)
        self._instance = str(properties["group.instance.id"])
        self._coordinator = coordinator(self._machine.broker, str(self._group))
        self._topic = ""
        self._member: Joined | None = None
        self._assigned: list[int] = []
        self._told: dict[str, Any] = {}
        self._paused = self._closed = False

    def subscribe(self, topics: list[str], **told: Any) -> None:
        """Join with the next `consume`; callbacks are called amid it."""
        here().check()
        (self._topic,), self._told = topics, told
        here().spawn(f"{self._machine.name} heartbeats", self._beat)

    def _beat(self) -> None:
        while not self._closed:
            member = self._member
            if member is not None and not self._machine.cut and self._coordinator.knows(member):
                member.seen_ms = here().now_ms
            here().sleep(HEARTBEAT_MS)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[clients.SimMessage]:
        """Hear what the group wants, then read."""
        here().check()
        if not self._machine.cut:
            self._hear()
        return super().consume(num_messages, timeout)

    def _hear(self) -> None:
        member, group = self._member, self._coordinator
        if member is None:
            self._member = group.join(self._instance, self._topic)
        elif not group.knows(member):
            # Its session is over: what it had is others' already.
            self._give_up("on_lost")
            self._member = group.join(self._instance, self._topic)
        elif group.rebalances and not member.waits:
            self._give_up("on_revoke")
            member.waits = True
        elif not group.rebalances and member.generation != group.generation:
            member.generation = group.generation
            self._assigned = list(member.partitions)
            hooks = self._machine.hooks
            if hooks is not None and str(self._group).endswith(GROUP):
                hooks.given.append((self._machine, self._assigned, here().now_ms))
            self._told["on_assign"](self, self.assignment())

    def _give_up(self, callback: str) -> None:
        given, self._places = self.assignment(), []
        if self._member is not None and self._member.generation >= 0:
            self._told[callback](self, given)
        self._assigned = []

    def assignment(self) -> list[TopicPartition]:
        """What it has been given."""
        return [TopicPartition(self._topic, number) for number in self._assigned]

    def consumer_group_metadata(self) -> Any:
        """Who it is, by the generation that it has been told of."""
        assert self._member is not None
        return GroupMetadata(str(self._group), self._member, self._member.generation)

    def committed(self, places: list[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        """Offsets of its group with their texts, once no transaction has them undecided."""
        super().committed(places, timeout)
        kept, found = self._machine.broker.offsets, []
        for each in places:
            key = (str(self._group), each.topic, each.partition)
            offset, text = kept.get(key, (OFFSET_INVALID, ""))
            found.append(TopicPartition(each.topic, each.partition, offset, text))
        return found

    def pause(self, _partitions: list[TopicPartition]) -> None:
        """Read nothing."""
        self._paused = True

    def resume(self, _partitions: list[TopicPartition]) -> None:
        """Read on."""
        self._paused = False

    def _fetch(self, place: Any, count: int) -> list[clients.SimMessage]:
        return [] if self._paused else super()._fetch(place, count)

    def close(self) -> None:
        """Say nothing more; a static member does not leave."""
        self._closed = True


class GroupProducer(SimProducer):
    """`Producer` whose transactions commit offsets of a member of a group."""

    def send_offsets_to_transaction(self, positions: Any, group: Any, timeout: float = -1) -> None:
        """Commit offsets with the transaction; refused of one who is no member any more."""
        self._alive()
        while self._broker.busy(self._name):
            here().sleep(2.0)
        if not self._machine.travel(timeout * 1000):
            raise failure(KafkaError._TIMED_OUT, "offsets timed out", retriable=True)
        known = coordinator(self._broker, group.group)
        if not known.knows(group.member) or group.generation != known.generation:
            self._machine.struck.append("a former member refused")
            raise failure(KafkaError.ILLEGAL_GENERATION, "no member any more", abort=True)
        if OFFSETS not in self._broker.topics:
            self._broker.create(OFFSETS, 1)
        kept = {
            (group.group, each.topic, each.partition): (each.offset, each.metadata or "")
            for each in positions
        }
        self._send_batch(OFFSETS, 0, [((group.group.encode(), repr(kept).encode(), None), None)])
        if self._error is not None:
            raise self._error
        self._broker.begin((self._name, self._epoch), self._timeout_ms).offsets |= kept


def consumer(properties: dict[str, Any], **options: Any) -> SimConsumer:
    """A `Consumer` of a group, or one whose partitions are assigned by hand."""
    kind = GroupConsumer if "group.instance.id" in properties else SimConsumer
    return kind(properties, **options)


def own_id(machine: Machine, apart: str) -> str:
    """The name of a data directory, which outlives its process."""
    return f"{machine.name}{apart}"
