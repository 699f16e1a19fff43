"""Secrets by reference: ``env:NAME`` or ``file:PATH``, one secret in each line.

Several lines are for a change of secrets: any of them is accepted, and workers use the first.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

LEAST_BYTES: Final = 16


def secrets_at(reference: str) -> tuple[bytes, ...]:
    """The secrets that a reference leads to; OSError or ValueError where there are none."""
    kind, _, place = reference.partition(":")
    text = os.environ.get(place, "").encode() if kind == "env" else Path(place).read_bytes()
    found = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not found:
        raise ValueError(f"{reference} is empty or not set: put a secret there, one in a line.")
    short = min(map(len, found))
    if short < LEAST_BYTES:
        raise ValueError(
            f"a secret of {reference} has {short} bytes; at least {LEAST_BYTES} are needed."
        )
    return found
