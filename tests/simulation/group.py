"""The group: who is a member, and which partitions each of them is told to own.

As with Kafka's: a member that is silent for a session is dropped, and whoever owned its partitions
in the meantime is not asked.  Members learn of an assignment with their next heartbeat, so two may
believe that they own a partition; that is what fences are for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.simulation.machine import Machine
from tests.simulation.stage import Stage

LOOK_MS: Final = 200.0


@dataclass(eq=False, slots=True)
class Member:
    """One member; `told` is the generation whose assignment it has been given."""

    machine: Machine
    seen_ms: float
    told: int = 0
    partitions: list[int] = field(default_factory=list)


class Group:
    """The coordinator of one group."""

    def __init__(self, stage: Stage, random: Random, partitions: int, session_ms: float) -> None:
        self._stage = stage
        self._random = random
        self._partitions = partitions
        self._session_ms = session_ms
        self._members: dict[str, Member] = {}
        self.generation = 0

    def beat(self, machine: Machine, *_asked: object) -> list[int] | None:
        """A heartbeat; the partitions to own, where that has changed."""
        member = self._members.get(machine.name)
        if member is None or member.machine is not machine:
            member = self._members[machine.name] = Member(machine, self._stage.now_ms)
            self.rebalance()
            if len(self._members) == 1:
                self._stage.later(LOOK_MS, self._look)
        member.seen_ms = self._stage.now_ms
        if member.told == self.generation:
            return None
        member.told = self.generation
        return member.partitions

    def leave(self, machine: Machine) -> None:
        """A member leaves in order."""
        if self._members.pop(machine.name, None) is not None:
            self.rebalance()

    def rejoin(self, _machine: Machine) -> None:
        """A member asks to deal anew."""
        self.rebalance()

    def look_again(self, _machine: Machine) -> None:
        """A member asks how many partitions there are: `grow` tells, as soon as there are more."""

    def grow(self) -> None:
        """One more partition is there to be dealt."""
        self._partitions += 1
        self.rebalance()

    def rebalance(self) -> None:
        """Deal the partitions anew."""
        self.generation += 1
        names = sorted(self._members)
        for name in names:
            self._members[name].partitions = []
        self._random.shuffle(names)
        for partition in range(self._partitions):
            if names:
                self._members[names[partition % len(names)]].partitions.append(partition)

    def _look(self) -> None:
        now_ms = self._stage.now_ms
        silent = [n for n, m in self._members.items() if now_ms - m.seen_ms > self._session_ms]
        for name in silent:
            del self._members[name]
        if silent:
            self.rebalance()
        if self._members:
            self._stage.later(LOOK_MS, self._look)
