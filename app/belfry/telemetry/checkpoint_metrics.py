"""Checkpoints as metrics: those that were made, and where partitions' state came from.

    rate(belfry_checkpoint_sent_bytes_total[1h])                    what they cost in traffic
    time() - max by (partition) (belfry_checkpoint_timestamp_seconds)   how old the newest is

Several workers may know of one and the same checkpoint, so ages are compared, and never added up.
"""

from __future__ import annotations

from belfry.telemetry.metric_maker import MetricMaker


class CheckpointMetrics:
    """Counts checkpoints and restores; safe from any thread."""

    def __init__(self, make: MetricMaker) -> None:
        self._checkpoints = make.outcomes("belfry_checkpoints_total", "made", "failed", "refused")
        self._sent = make.counter("belfry_checkpoint_sent_bytes_total")
        self._newest = make.gauge("belfry_checkpoint_timestamp_seconds")
        self._restores = make.outcomes("belfry_restores_total", "local", "checkpoint", "changelog")

    def made(self, sent_bytes: int) -> None:
        """Count a checkpoint that was made, and what was sent for it."""
        self._checkpoints.labels("made").inc()
        self._sent.inc(sent_bytes)

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
        """Count a store that was opened, by source: ``local``, ``checkpoint``, ``changelog``."""
        self._restores.labels(source).inc()
