"""Jitter: spreads schedules of one instant, the same way at every attempt."""

from __future__ import annotations

from hashlib import blake2b


def jitter_ms(schedule: bytes, nominal_ms: int, most_ms: int) -> int:
    """Delay of 0 to `most_ms` milliseconds, a function of the schedule and its nominal instant."""
    digest = blake2b(b"%b\0%d" % (schedule, nominal_ms), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (most_ms + 1)
