"""Checkpoints as metrics: those that were made, and where partitions' state came from.

    rate(belfry_checkpoint_sent_bytes_total[1h])                    the traffic they cost
    rate(belfry_checkpoint_served_bytes_total[5m])                  what others fetch here
    time() - max by (partition) (belfry_checkpoint_timestamp_seconds)   how old the newest is

Several workers may know of one and the same checkpoint, so ages are compared, and never added up.
"""

from __future__ import annotations

from typing import Final

from belfry.telemetry.metric_maker import MetricMaker

OUTCOMES: Final = ("made", "kept", "failed", "refused")
# Where the state of a store came from, and those of which something is fetched.
SOURCES: Final = ("local", "peer", "checkpoint", "changelog")
FETCHED_FROM: Final = ("peer", "checkpoint")


class CheckpointMetrics:
    """Counts checkpoints and restores; safe from any thread."""

    def __init__(self, make: MetricMaker) -> None:
        self._checkpoints = make.outcomes("belfry_checkpoints_total", *OUTCOMES)
        self._sent = make.counter("belfry_checkpoint_sent_bytes_total")
        self._served = make.counter("belfry_checkpoint_served_bytes_total")
        self._fetched = make.outcomes("belfry_checkpoint_fetched_bytes_total", *FETCHED_FROM)
        self._newest = make.gauge("belfry_checkpoint_timestamp_seconds")
        self._restores = make.outcomes("belfry_restores_total", *SOURCES)

    def made(self, sent_bytes: int) -> None:
        """Count a checkpoint that went to the store, and what was sent for it."""
        self._checkpoints.labels("made").inc()
        self._sent.inc(sent_bytes)

    def kept(self) -> None:
        """Count a checkpoint that is kept for other workers."""
        self._checkpoints.labels("kept").inc()

    def served(self, size: int) -> None:
        """Count bytes that another worker was given."""
        self._served.inc(size)

    def fetched(self, source: str, size: int) -> None:
        """Count bytes of a checkpoint that was restored, by source: ``peer``, ``checkpoint``."""
        self._fetched.labels(source).inc(size)

    def failed(self) -> None:
        """Count one that was not made, by an error."""
        self._checkpoints.labels("failed").inc()

    def refused(self) -> None:
        """Count one that was to be restored, and was damaged, missing or not to be believed."""
        self._checkpoints.labels("refused").inc()

    def newest(self, partition: int, written_s: float) -> None:
        """Show when the newest checkpoint of a partition was written, epoch seconds."""
        self._newest.labels(str(partition)).set(written_s)

    def restored(self, source: str) -> None:
        """Count a store that was opened, by one of `SOURCES`."""
        self._restores.labels(source).inc()
