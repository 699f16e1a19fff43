"""Partitions of a ring whose groups move, verified together."""

from __future__ import annotations

from typing import Any, Final

from belfry.verification.coverage import Coverage
from belfry.verification.findings import Breached, CheckCounts, Spot
from belfry.verification.key_groups import MovingGroups
from belfry.verification.memory import Memory
from belfry.verification.move_check import MoveCheck, MovePass
from belfry.verification.outputs import OutputVerifier
from belfry.verification.overdue import OverdueSchedules
from belfry.verification.partition import PartitionVerifier
from belfry.verification.standing import Standing
from tests.unit.engine.driver import FIRED
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing
from tests.unit.verification.trace import MemoryInProcess, Trace

TENANT: Final = "demo"


class Cluster:
    """All partitions of a ring, verified together, round after round."""

    def __init__(
        self,
        traces: list[Trace],
        memory: Memory | None = None,
        standings: list[Standing] | None = None,
    ) -> None:
        """`standings` are those of an earlier run over the same traces."""
        self.counts = CheckCounts()
        self.memory = MemoryInProcess() if memory is None else memory
        self.spread: frozenset[str] = frozenset()
        self._traces = traces
        self._outputs = OutputVerifier(self.memory, self.counts)
        self._overdue = OverdueSchedules(self.memory, self.counts)
        self._overdue.moving = MovingGroups(self.memory, len(traces))
        self.findings: list[Breached] = []
        self._seen = [0] * len(traces)
        self.standings = standings or [Standing() for _ in traces]
        self.partitions = [
            PartitionVerifier(
                Spot("belfry.changelog", number, 0), self.memory, self.counts, standing
            )
            for number, standing in enumerate(self.standings)
        ]
        for each, trace in zip(self.partitions, traces, strict=True):
            each.move_among(len(traces))
            each.wholeness.is_void = trace.is_void

    def round(self, until_ms: int = 0) -> None:
        coverage = Coverage(FIRED, {FIRED + TENANT: -1}, spread=self.spread)
        self._outputs.begin(coverage)
        for number, trace in enumerate(self._traces):
            for fire in trace.fired[self._seen[number] :]:
                # Two partitions of these traces share one output topic.
                spot = fire.spot._replace(offset=fire.spot.offset * PARTITIONS + number)
                self._outputs.fired(fire._replace(spot=spot))
            self._seen[number] = len(trace.fired)
        for trace, verifier in zip(self._traces, self.partitions, strict=True):
            since = verifier.standing.next_offset
            verifier.begin(coverage)
            verifier.feed([each for each in trace.changelog if each.offset >= since])
            verifier.go_on(final=True)
            verifier.end()
            self.findings += verifier.findings
            verifier.findings = []
        blind_ms = max(each.standing.blind_until_ms for each in self.partitions)
        self._outputs.end(blind_ms, self._outputs.round - 1)
        if until_ms:
            suspects = self._overdue.suspects(range(len(self._traces)), until_ms, coverage)
            self.findings += self._overdue.tell("belfry.changelog", suspects)
        moved = MovePass("belfry.changelog", len(self._traces), self.spread)
        self.findings += MoveCheck(self.memory, self.counts, moved).tell()
        self.findings += self._outputs.findings
        self._outputs.findings = []


def traces(ring: MovingRing) -> list[Trace]:
    found: list[Any] = ring.drivers
    return [each.trace for each in found]


def verified(ring: MovingRing, memory: Memory | None = None) -> Cluster:
    made = Cluster(traces(ring), memory)
    made.round()
    made.round()
    return made
