"""What the runner of a partition has of its worker: given once, used by its loop and its steps.

opener, guard, outputs,    shared by all partitions of the worker (`process/sharing.py`)
threads, room
worker                     whom a runner tells, and asks (`assembly.py`)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from belfry.balance.take_overs import TakenOver
from belfry.firing.clock_guard import ClockGuard
from belfry.host.loop_threads import LoopThreads
from belfry.outputs.readiness import Outputs
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.step_shares import StepRoom
from belfry.wire.accepted import Told
from belfry.wire.batch import SourceBatch


class TakesBatches(Protocol):
    """Who gets the batches of a partition: its runner."""

    partition: int

    def deliver(self, term: int, batch: SourceBatch) -> None:
        """Hand a batch over; those of an earlier term are not taken in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPort:
    """What the loop of a partition tells its worker, and asks it; called in a turn of the loop.

    `hand_over` gives a batch that was read to the agent, with the runner and the number of the term
    that it was read in; `refused` says why this worker must not run; `committed` hears of the
    outcomes of each commit; `is_asked_often` says whether many calls come in at the HTTP port just
    now; `took_over` hears of each take-over.
    """

    hand_over: Callable[[TakesBatches, int, SourceBatch], None]
    refused: Callable[[str], None]
    committed: Callable[[Sequence[Told]], None]
    is_asked_often: Callable[[], bool]
    took_over: Callable[[TakenOver], None] = lambda _taken: None


class RunnerDependencies(NamedTuple):
    """What all runners of a worker are given."""

    # Opens what a partition needs.
    opener: PartitionOpener
    # One machine has one clock, so its partitions share what was found out about it.
    guard: ClockGuard
    outputs: Outputs
    # Where loops have their turns.
    threads: LoopThreads
    # What steps may hold together.
    room: StepRoom
    worker: WorkerPort
