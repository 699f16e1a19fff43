"""Metrics of `belfry verify` that goes on for ever: what it found, and how far it has come.

It is a process of its own, so no worker shows them, and they stand apart from a worker's:

    belfry_verify_findings_total{kind="lost"}         0 from the start, for each kind
    belfry_verify_passes_total{outcome="complete"}    passes over all topics; failed: no broker, say
    belfry_verify_last_complete_timestamp_seconds     an alert watches how long ago that is
    belfry_verify_behind_records                      what of the changelog is still to be read

A finding is counted once, as it is told of once.  So an alert on any count above 0 lasts until the
process is started again, by somebody who has read what it found.
"""

from __future__ import annotations

from typing import Final

from belfry.telemetry.family import Family

OF_VERIFICATION: Final = (
    Family(
        "belfry_verify_findings_total",
        "counter",
        "Findings of `belfry verify`, by kind, since it was started; each is told once.",
        ("kind",),
    ),
    Family(
        "belfry_verify_passes_total",
        "counter",
        "Its passes over all topics: complete, or failed, as where no broker answers.",
        ("outcome",),
    ),
    Family(
        "belfry_verify_last_complete_timestamp_seconds",
        "gauge",
        "When its last complete pass ended, in epoch seconds; before the first one, when it was"
        " started.",
    ),
    Family(
        "belfry_verify_behind_records",
        "gauge",
        "Offsets of the changelog that it has not read yet, up to the ends that it saw last.",
    ),
)
