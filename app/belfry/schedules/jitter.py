"""Jitter: spreads schedules of one instant, the same way at every attempt.

    jitter 60 s, three schedules that are nominally due at 09:00:00.000

    09:00:00     09:00:08.228     09:00:12.223     09:00:20.239     09:01:00
    │                 ● order-1        ● order-0        ● order-2       │

The delay is a hash and not a random number, so an attempt after a crash, a replay and a preview of
the due instant all find the same one.  It differs from one occurrence to the next, so no schedule
is always the last.  Jitter only ever delays: an event never fires before its nominal instant.

Frozen: another hash would move schedules that wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise


def jitter_ms(schedule: bytes, nominal_ms: int, most_ms: int) -> int:
    """Delay of 0 to `most_ms` milliseconds, a function of the schedule and its nominal instant.

    `schedule` is ``tenant/schedule_id``, `nominal_ms` epoch milliseconds.  The hash has 64 bits and
    the longest jitter is a year, so the remainder favours no delay that could be measured.
    """
    digest = blake2b(b"%b\0%d" % (schedule, nominal_ms), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (most_ms + 1)


def distance_within(most_ms: int, instants: Sequence[int]) -> int | None:
    """The shortest distance of two nominal instants, if the jitter is longer; else None.

    With such a jitter an occurrence may be due before its predecessor, behind which it fires.
    """
    distance = min((later - each for each, later in pairwise(instants)), default=most_ms)
    return distance if distance < most_ms else None
