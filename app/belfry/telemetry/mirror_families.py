"""What `belfry mirror run` measures of itself; no worker shows it."""

from __future__ import annotations

from typing import Final

from belfry.telemetry.family import Family

OF_MIRROR: Final = (
    Family(
        "belfry_mirror_carried_records_total",
        "counter",
        "Records that `belfry mirror run` has carried to its cluster since it was started.",
    ),
    Family(
        "belfry_mirror_failures_total",
        "counter",
        "What failed of it and is tried again, as where no broker answers.",
    ),
    Family(
        "belfry_mirror_behind_records",
        "gauge",
        "Offsets of the source that are not carried yet, of all topics, as it saw last.",
    ),
    Family(
        "belfry_mirror_behind_seconds",
        "gauge",
        "How old the instant is up to which all is carried, of the partition furthest behind.",
    ),
    Family(
        "belfry_mirror_last_look_timestamp_seconds",
        "gauge",
        "When it saw last how far behind it is, in epoch seconds; at first, when it was started.",
    ),
)
