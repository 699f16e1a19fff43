"""The plan of a benchmark, its progress, and curves, which vary one value of a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

# Called with the counted noun, how many there are by now, and how many there will be.
Tell = Callable[[str, int, int], None]
# Guarantee of a tenant without a policy.
EXACTLY_ONCE: Final = "EXACTLY_ONCE"
COMMON_TOPIC: Final = "fired"
# By the name of a curve: the field of the plan that it varies, and its usual values.
SWEEPS: dict[str, tuple[str, tuple[int, ...]]] = {
    "pending": ("pending", (0, 10_000, 100_000, 1_000_000, 5_000_000, 10_000_000)),
    "payload": ("payload_bytes", (16, 100, 400, 2_000, 10_000)),
    "partitions": ("partitions", (1, 2, 4, 8, 16)),
    "tenants": ("tenants", (1, 10, 100, 1_000)),
}
# Least and most that each of these fields may be, on a command line as well.
BOUNDS: dict[str, tuple[int, int]] = {
    "pending": (0, 50_000_000),
    "payload_bytes": (16, 500_000),
    "partitions": (1, 256),
    "tenants": (1, 10_000),
}


def silent(_what: str, _done: int, _of: int) -> None:
    """Ignores the progress of a benchmark."""


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """One benchmark: its name, its amounts, and its belfry."""

    bench: str
    # Requests of a run; `lateness` has `rate` × `seconds` instead.
    events: int = 400_000
    workers: int = 1
    partitions: int = 4
    tenants: int = 97
    payload_bytes: int = 400
    # Requests a second of `lateness`, for so many seconds.
    rate: int = 5_000
    seconds: int = 20
    # Pending schedules at the begin of `ingest`, `fire` or `lateness`.
    pending: int = 0
    # Each request has an id, so a verdict is written for each.
    with_ids: bool = False
    # AT, EVERY or CRON: due once, or every day.
    kind: str = "AT"
    guarantee: str = EXACTLY_ONCE
    # All tenants' events go to one topic.
    common_topic: bool = False
    # `raw` has two producers in turn.
    pipelined: bool = False


def curve(plan: BenchPlan, sweep: str, steps: tuple[int, ...] = ()) -> list[tuple[BenchPlan, int]]:
    """The plans of a curve, each with its varied value: of ingest, or of fire for tenants.

    Raises `ValueError`, which names the bounds, for a step outside of them.
    """
    name, usual = SWEEPS[sweep]
    least, most = BOUNDS[name]
    for each in steps:
        if not least <= each <= most:
            raise ValueError(f"{each} is not allowed: {least} to {most}.")
    bench = "fire" if sweep == "tenants" else "ingest"
    changes: list[dict[str, Any]] = [{name: value} for value in steps or usual]
    return [(replace(plan, bench=bench, **change), change[name]) for change in changes]
