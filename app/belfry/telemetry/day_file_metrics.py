"""Day files as metrics: files by their outcome, payloads that went and came back.

    belfry_day_files_awaited > 0                        something due waits for a file to be read
    rate(belfry_day_files_total{outcome="read_failed"}[5m])       tries that have failed

A payload is counted once its row is committed.
"""

from __future__ import annotations

from typing import Final

from belfry.telemetry.metric_maker import MetricMaker

OUTCOMES: Final = ("written", "write_failed", "read", "read_failed", "damaged")
WAYS: Final = ("aside", "back")


class DayFileMetrics:
    """Counts day files; safe from any thread."""

    def __init__(self, make: MetricMaker) -> None:
        self._files = make.outcomes("belfry_day_files_total", *OUTCOMES)
        self._payloads = make.outcomes("belfry_day_file_payloads_total", *WAYS)
        self._awaited = make.gauge("belfry_day_files_awaited")

    def files(self, outcome: str) -> None:
        """Count a file, by one of `OUTCOMES`."""
        self._files.labels(outcome).inc()

    def payloads(self, way: str, number: int) -> None:
        """Count payloads that went into files, or came back, by one of `WAYS`."""
        if number:
            self._payloads.labels(way).inc(number)

    def awaited(self, partition: int, files: int) -> None:
        """Show how many files something due waits for."""
        self._awaited.labels(str(partition)).set(files)

    def lost(self, partition: int) -> None:
        """Take back the figure of a partition: its new owner shows it."""
        self._awaited.remove_by_labels({"partition": str(partition)})
