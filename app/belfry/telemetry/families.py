"""The names and meanings of all metrics.

The contract, `docs/metrics.md`, the dashboards and the alerts rely on this list, and tests hold
them to it: what is shown is declared here, what is declared is shown, and each stands on a
dashboard.  Durations are seconds.

    event_families.py        requests and events: what was asked, what fired, how late, for whom
    partition_families.py    partitions: what they wait for, how far they have read, their stores
    process_families.py      a process: health, port, clients, machine; and those of `belfry verify`
                             and `belfry mirror run`

A new metric is a line in the one whose subject it has; `metrics.py` and its parts count it.
"""

from __future__ import annotations

from typing import Final

from belfry.telemetry.event_families import OF_EVENTS
from belfry.telemetry.partition_families import OF_PARTITIONS
from belfry.telemetry.process_families import OF_MIRROR, OF_PROCESSES, OF_VERIFICATION

FAMILIES: Final = (*OF_EVENTS, *OF_PARTITIONS, *OF_PROCESSES, *OF_VERIFICATION, *OF_MIRROR)
BY_NAME: Final = {family.name: family for family in FAMILIES}
