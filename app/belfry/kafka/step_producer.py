"""What makes the steps of a partition true, for each kind of writer, and what it tells of one.

There are two writers: `transactions.py` by librdkafka, and belfry's own (`transactions/`).

    connect ─► open, which fences the former owner ─► commit ─┬─► Receipt
                                                              ├─► Aborted: the next step may begin
                                                              └─► Fenced, Unknown: it is closed
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from belfry.engine.effects import Effects
from belfry.engine.read_lease import ReadLease
from belfry.host.clock import SystemClock
from belfry.host.failpoints import Failpoints
from belfry.kafka.row_signing import RowSigner
from belfry.kafka.step_records import OutputTopics


@dataclass(frozen=True, slots=True)
class ProducerSurroundings:
    """What every producer of a worker shares."""

    output_topics: OutputTopics
    clock: SystemClock
    failpoints: Failpoints


@dataclass(frozen=True, slots=True)
class Receipt:
    """A committed step: the changelog offset after it, and when its manifest was sent,
    appended (by the broker's clock, None without a manifest) and acknowledged, in epoch ms; the
    acknowledgement by the monotonic clock as well."""

    next_offset: int
    sent_ms: float
    appended_ms: int | None
    acknowledged_ms: float
    acknowledged_at_ms: float


class StepProducer(Protocol):
    """What makes the steps of one partition true: one of the two writers.

    `signer` signs the rows, where workers do, and is given with the partition.
    """

    signer: RowSigner | None
    lease: ReadLease

    def connect(self) -> None:
        """Learn of the cluster ahead of time; raises ConnectionError."""

    def open(self) -> None:
        """Fence the former owner; raises Fenced or Unknown."""

    def commit(self, effects: Effects) -> Receipt:
        """Make a sealed step's effects true; raises Aborted, Fenced or Unknown."""

    def serve(self) -> None:
        """Let its clients tell what waits in them, such as figures; called while nothing commits.

        Returns at once.
        """

    def close(self) -> None:
        """Give the producer up; an open transaction is left to the next owner's fence."""
