"""What a benchmark is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EXACTLY_ONCE: Final = "EXACTLY_ONCE"
COMMON_TOPIC: Final = "common"


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """One benchmark: what, how much, on what."""

    bench: str
    events: int = 400_000
    workers: int = 1
    partitions: int = 4
    tenants: int = 97
    payload_bytes: int = 400
    rate: int = 5_000
    seconds: int = 20
    pending: int = 0
    with_ids: bool = False
    kind: str = "AT"
    guarantee: str = EXACTLY_ONCE
    common_topic: bool = False
