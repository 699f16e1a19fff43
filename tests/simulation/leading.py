"""A group whose leader shares by the shipped assignor: owners, and standbys beside them.

    a member is new, silent, or asks   ─► another generation: each says what it holds as it beats
    the last of them has said it       ─► the leader's assignor computes what each is told
    each hears its part as it beats    ─► it owns, stands by, watches heartbeats

`group.Group` deals partitions by chance, and nobody stands by.  This one runs what a group of
Kafka's carries for belfry: metadata of members, the leader's answer, and wishes to share anew, of
which the ones that come amid a rebalance are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from belfry.balance.owners import ASSIGNERS
from belfry.group.assignment_map_client import assignment_map_of
from belfry.group.assignor import assignor_of
from belfry.group.group import Group as AssignedMember
from belfry.placement.partition_count import PartitionCount
from tests.simulation.broker import Broker
from tests.simulation.group import LOOK_MS
from tests.simulation.machine import Machine

TOPIC: Final = "belfry.schedules"


class _Cluster:
    """What an assignor asks of the cluster."""

    def __init__(self, partitions: int) -> None:
        self._partitions = set(range(partitions))

    def partitions_for_topic(self, topic: str) -> set[int]:
        """The numbers of a topic's partitions."""
        assert topic == TOPIC
        return self._partitions


@dataclass(eq=False, slots=True)
class Joined:
    """A member: what it said, in which generation, and what it was told."""

    name: str
    assignor: Any
    seen_ms: float
    # The broker that its client asks, and how many partitions it knows of.
    asks: int = 0
    knows: int = 0
    said: Any = None
    said_in: int = 0
    answer: Any = None
    told: int = 0


class LedGroup:
    """The coordinator of one group, and its leader's part."""

    def __init__(self, broker: Broker, session_ms: float, standbys: int) -> None:
        self._broker, self._stage = broker, broker.stage
        self._session_ms = session_ms
        self._standbys = standbys
        self._members: dict[Machine, Joined] = {}
        self._joined = 0
        self.generation = 0
        self._settled = 0

    def beat(
        self, machine: Machine, entry: AssignedMember, counted: PartitionCount
    ) -> list[int] | None:
        """A heartbeat, which joins where that is due; the partitions to own, where that changed."""
        member = self._members.get(machine) or self._join(machine, entry, counted)
        member.seen_ms = self._stage.now_ms
        if member.said_in < self.generation:
            generation = self.generation
            # Others have their turns while it is asked.
            said = member.assignor.metadata([TOPIC])
            member.said, member.said_in = said, generation
            self._settle()
        if member.told == self._settled or self._settled != self.generation:
            return None
        member.told, answer = self._settled, member.answer
        member.assignor.on_assignment(answer)
        return [partition for _, told in answer.assignment for partition in told]

    def tell(self, entry: AssignedMember) -> None:
        """Tell a member who is in a group at rest, as the broker that keeps it does when asked."""
        members = self._members.values()
        if self._settled == self.generation and all(each.answer for each in members):
            told = [(each.said.encode(), each.answer.encode()) for each in members]
            entry.met(assignment_map_of(told))

    def members(self) -> list[Machine]:
        """Who is a member, whether it lives or not."""
        return list(self._members)

    def leave(self, machine: Machine) -> None:
        """A member leaves in order."""
        if self._members.pop(machine, None) is not None:
            self.rebalance()

    def rejoin(self, machine: Machine) -> None:
        """A member asks to share anew; dropped while that is under way."""
        if machine in self._members and self._settled == self.generation:
            self.rebalance()

    def grow(self) -> None:
        """One more partition is there to be owned; nobody stands by for it."""
        for member in self._members.values():
            member.knows = len(self._broker.topics[TOPIC])
        self.rebalance()

    def look_again(self, machine: Machine) -> None:
        """A member's client looks how many partitions there are; more are shared out."""
        member = self._members.get(machine)
        if member is not None and (there := self._told(member.asks)) > member.knows:
            member.knows = there
            self.rebalance()

    def _told(self, by: int) -> int:
        return len(self._broker.known(by)[TOPIC])

    def rebalance(self) -> None:
        """Begin another generation."""
        self.generation += 1

    def _join(self, machine: Machine, entry: AssignedMember, counted: PartitionCount) -> Joined:
        assignor = assignor_of(entry, ASSIGNERS["even"], counted, self._standbys)
        self._joined += 1
        name = f"{machine.name}-{self._joined}"
        asks = self._broker.some()
        member = Joined(name, assignor, self._stage.now_ms, asks, self._told(asks))
        if not self._members:
            self._stage.later(LOOK_MS, self._look)
        self._members[machine] = member
        self.rebalance()
        return member

    def _settle(self) -> None:
        """Let the leader answer, once all have said what they hold."""
        members = list(self._members.values())
        if not members or any(each.said_in != self.generation for each in members):
            return
        said = {each.name: each.said for each in members}
        answers = members[0].assignor.assign(_Cluster(members[0].knows), said)
        for each in members:
            each.answer = answers[each.name]
        self._settled = self.generation

    def _look(self) -> None:
        now_ms = self._stage.now_ms
        silent = [
            m for m, each in self._members.items() if now_ms - each.seen_ms > self._session_ms
        ]
        for machine in silent:
            del self._members[machine]
        if silent:
            self.rebalance()
        if self._members:
            self._stage.later(LOOK_MS, self._look)
