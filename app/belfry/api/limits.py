"""How much the HTTP port lets in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What the port lets in; `hosts` and `origins` are allowed besides names of this machine.

    A body may have `body_bytes`, JSON lines `bulk_bytes`, and those under way `bodies_bytes`
    together; `unwanted_bytes` are read of one that is refused.
    """

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    body_bytes: int = 1_100_000
    bulk_bytes: int = 16_000_000
    unwanted_bytes: int = 32_000_000
    bodies_bytes: int = 256_000_000
    under_way: int = 1_000
    body_s: float = 10.0
    answer_s: float = 30.0
