"""The declaration of a metric: a name that people rely on, a kind, a meaning, and labels.

    belfry_waiting_seconds   gauge   partition, waiting_for   "The same by what is waited for: …"

Dashboards, alerts and other people's queries know the name and the labels, so both are part of the
public contract: a metric may be added, and none is renamed.  The meaning is one sentence for
people, shown beside the metric at `/metrics` and in docs/metrics.md.

The unit is the last word of a name: `_seconds`, `_bytes`, `_records`; a counter ends in `_total`.
Labels have few values, all of them known beforehand or bounded: a series lives as long as the
process.  So no schedule is ever one, and tenants are in `tenant_metrics.py` alone.
"""

from __future__ import annotations

from typing import NamedTuple


class Family(NamedTuple):
    """One metric: its public name, its kind, its meaning and its labels."""

    name: str
    kind: str
    meaning: str
    labels: tuple[str, ...] = ()
