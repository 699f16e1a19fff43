"""Parts of the worker that the runner of a partition uses, in its loop and in its steps.

opener, guard, outputs,    shared by all partitions of the worker (`process/sharing.py`)
threads, room
worker                     callbacks of the worker (`assembly.py`)
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
    """The receiver of a partition's batches: its runner."""

    partition: int

    def deliver(self, term: int, batch: SourceBatch) -> None:
        """Hand a batch over; a batch of an earlier term is not taken in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPort:
    """Callbacks of the worker for the loop of a partition; called in a turn of the loop.

    `hand_over` gives a batch that was read to the agent, with the runner and the number of the term
    that it was read in. `refused` gets the reason why this worker must not run, `committed` the
    outcomes of each commit, and `took_over` each take-over. `is_asked_often` returns whether many
    calls come in at the HTTP port just now.
    """

    hand_over: Callable[[TakesBatches, int, SourceBatch], None]
    refused: Callable[[str], None]
    committed: Callable[[Sequence[Told]], None]
    is_asked_often: Callable[[], bool]
    took_over: Callable[[TakenOver], None] = lambda _taken: None


class RunnerDependencies(NamedTuple):
    """The parts that all runners of a worker are given."""

    # Opens the parts of a partition.
    opener: PartitionOpener
    # One machine has one clock, so its partitions share one guard.
    guard: ClockGuard
    outputs: Outputs
    # The threads in which loops have their turns.
    threads: LoopThreads
    # The room that all steps share.
    room: StepRoom
    worker: WorkerPort
