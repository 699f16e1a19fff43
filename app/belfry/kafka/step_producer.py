"""The port of a producer that commits a partition's steps, and its receipt of a step.

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
    """The objects that all producers of a worker share."""

    output_topics: OutputTopics
    clock: SystemClock
    failpoints: Failpoints


@dataclass(frozen=True, slots=True)
class Receipt:
    """A committed step: the changelog offset after it, and the instants of its manifest.

    The manifest was sent, appended (by the broker's clock, None without a manifest) and
    acknowledged at these instants, in epoch ms; the acknowledgement is by the monotonic clock as
    well.
    """

    next_offset: int
    sent_ms: float
    appended_ms: int | None
    acknowledged_ms: float
    acknowledged_at_ms: float


class StepProducer(Protocol):
    """Commits the steps of one partition: one of the two writers.

    `signer` signs the rows, if workers sign; it is set together with the partition.
    """

    signer: RowSigner | None
    lease: ReadLease

    def connect(self) -> None:
        """Learn of the cluster ahead of time; raises ConnectionError."""

    def open(self) -> None:
        """Fence the former owner; raises Fenced or Unknown."""

    def commit(self, effects: Effects) -> Receipt:
        """Commit a sealed step's effects; raises Aborted, Fenced or Unknown."""

    def serve(self) -> None:
        """Let its clients report waiting events, such as figures; called while nothing commits.

        Returns at once.
        """

    def close(self) -> None:
        """Give the producer up; an open transaction is left to the next owner's fence."""
