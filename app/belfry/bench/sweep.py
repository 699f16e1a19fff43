"""Runs of a plan, and curves: the same benchmark with one thing varied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from belfry.bench.cluster import BenchCluster
from belfry.bench.plan import BenchPlan
from belfry.bench.result import Result
from belfry.bench.runs import BENCHES
from belfry.settings import Settings

SWEEPS: dict[str, tuple[str, tuple[int, ...]]] = {
    "pending": ("pending", (0, 10_000, 100_000, 1_000_000, 5_000_000, 10_000_000)),
    "payload": ("payload_bytes", (16, 100, 400, 2_000, 10_000)),
    "partitions": ("partitions", (1, 2, 4, 8, 16)),
    "tenants": ("tenants", (1, 10, 100, 1_000)),
}


def repeat(settings: Settings, plan: BenchPlan, runs: int) -> Iterator[Result]:
    """So many runs of a plan, each on a belfry of its own."""
    for _ in range(runs):
        with BenchCluster(settings, plan.workers, plan.partitions) as cluster:
            yield BENCHES[plan.bench](cluster, plan)


def curve(plan: BenchPlan, sweep: str, steps: tuple[int, ...] = ()) -> list[tuple[BenchPlan, int]]:
    """The plans of a curve with the value that each varies: ingest, or fire for tenants.

    Raises `ValueError` where there is no such curve.
    """
    if sweep not in SWEEPS:
        raise ValueError(f"sweep {sweep!r}: choose one of {', '.join(SWEEPS)}")
    name, usual = SWEEPS[sweep]
    bench = "fire" if sweep == "tenants" else "ingest"
    changes: list[dict[str, Any]] = [{name: value} for value in steps or usual]
    return [(replace(plan, bench=bench, **change), change[name]) for change in changes]
